// Elements made from names, attributes and children. A string is always text: nothing here reads markup, so whatever
// users or servers send can be shown.

const SVG = "http://www.w3.org/2000/svg";

/**
 * @template {Element} T
 * @param {T} made
 * @param {Record<string, string | number>} attributes
 * @param {(Node | string)[]} children
 * @returns {T}
 */
function fill(made, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  made.append(...children);
  return made;
}

/**
 * Return a new HTML element.
 * @param {string} name
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 */
export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/**
 * Return a new SVG element.
 * @param {string} name
 * @param {Record<string, string | number>} [attributes]
 * @param {...(Node | string)} children
 */
export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

/**
 * Return the element of the page with an id.
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Return a label as text with its prefix in an element of its own, which is drawn less loudly.
 * @param {string} label
 * @param {typeof html | typeof svg} make
 */
export function labelParts(label, make) {
  const at = label.indexOf(":") + 1;
  const name = make === svg ? "tspan" : "span";
  return at ? [make(name, { class: "prefix" }, label.slice(0, at)), label.slice(at)] : [label];
}

/**
 * Return a share of one as a percentage.
 * @param {number} share
 */
export function percent(share) {
  const rounded = Math.round(share * 100);
  return rounded === 0 && share > 0 ? "< 1 %" : `${rounded} %`;
}
