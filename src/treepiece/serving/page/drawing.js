// The tree as SVG. Colours come from classes, so that a change of the theme needs no new drawing.

import { labelParts, percent, svg } from "./dom.js";
import { BOX, HOLE, layOut, layOutline } from "./layout.js";
import { unitClass } from "./candidate.js";

const BADGE = 9; // radius
const PADDING = 12;
const LONGEST = 36; // characters of a leaf's words; the tooltip has all of them
const LABEL_SIZE = 12.5;
const WORDS_SIZE = 14;
const SMALLEST = 0.85; // how far a wide tree is made smaller before it becomes an outline, and that before it scrolls

/** @typedef {import("./candidate.js").Candidate} Candidate */
/** @typedef {import("./candidate.js").TreeNode} TreeNode */
/** @typedef {import("./layout.js").Place} Place */

const canvas = document.createElement("canvas").getContext("2d");

/**
 * Return the width of a text in a font of the style sheet.
 * @param {string} text
 * @param {string} family  a custom property
 * @param {number} size
 */
function measure(text, family, size) {
  canvas.font = `500 ${size}px ${getComputedStyle(document.documentElement).getPropertyValue(family)}`;
  return canvas.measureText(text).width;
}

/**
 * Return a drawing of a tree, and a function that shows it as it is after a number of passes.
 * @param {TreeNode[]} nodes
 * @param {Candidate} candidate
 * @param {import("./steps.js").Schedule} schedule
 * @param {number} room  how wide it may be
 */
export function draw(nodes, candidate, schedule, room) {
  const badge = nodes[0].unit === null ? 0 : 2 * BADGE + 6;
  const shown = nodes.map((node) => (node.leaf === null ? "" : shorten(candidate.leaves[node.leaf].text)));
  const boxes = nodes.map((node) => measure(node.label, "--mono", LABEL_SIZE) + badge + 2 * PADDING);
  const below = shown.map((text) => (text ? measure(text, "--sans", WORDS_SIZE) + 8 : 0));
  const tree = layOut(nodes, boxes, below);
  const isOutline = tree.width * SMALLEST > room;
  const { places, width, height } = isOutline ? layOutline(nodes, boxes, below) : tree;
  const drawing = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", class: "drawing" });
  drawing.setAttribute("aria-label", `Tree: ${candidate.tree ?? candidate.skeleton}`);
  drawing.style.maxWidth = `${width}px`;
  drawing.style.minWidth = `${width * SMALLEST}px`;
  /** @type {{part: Element, from: number, until: number}[]} */
  const parts = [];
  const add = (/** @type {Element} */ part, /** @type {number} */ from, until = Infinity) => {
    drawing.append(part);
    parts.push({ part, from, until });
  };
  nodes.forEach((node, place) => {
    if (node.parent === null) return;
    const [begin, end] = [schedule.nodes[node.parent], schedule.nodes[place]];
    const isCut = node.unit !== nodes[node.parent].unit;
    const d = isOutline ? corner(places[node.parent], places[place]) : curve(places[node.parent], places[place]);
    add(svg("path", { d, class: `edge ${isCut ? "cut" : unitClass(node.unit)}` }), isCut ? begin : end);
    if (isCut) add(hole(places[place]), begin, end);
  });
  nodes.forEach((node, place) => {
    add(box(node, place, places[place], badge), schedule.nodes[place]);
    if (node.leaf !== null) {
      add(words(node, candidate.leaves[node.leaf], shown[place], places[place]), schedule.leaves[node.leaf]);
    }
  });
  const show = (/** @type {number} */ pass) => {
    for (const { part, from, until } of parts) part.classList.toggle("pending", pass < from || pass >= until);
  };
  return { drawing, show };
}

/** @param {string} text */
function shorten(text) {
  const points = Array.from(text);
  return points.length <= LONGEST ? text : `${points.slice(0, LONGEST - 1).join("")}…`;
}

/**
 * Return the edge between two nodes of a tree.
 * @param {Place} from
 * @param {Place} to
 */
function curve(from, to) {
  const [top, bottom] = [from.y + BOX, to.y];
  const middle = (top + bottom) / 2;
  return `M${from.x} ${top}C${from.x} ${middle} ${to.x} ${middle} ${to.x} ${bottom}`;
}

/**
 * Return the edge between two nodes of an outline.
 * @param {Place} from
 * @param {Place} to
 */
function corner(from, to) {
  return `M${from.x - from.width / 2 + 8} ${from.y + BOX}V${to.y + BOX / 2}H${to.x - to.width / 2}`;
}

/**
 * Return the placeholder at which a unit will be joined.
 * @param {Place} place
 */
function hole({ hole: x, y }) {
  return svg(
    "g",
    { class: "hole" },
    svg("rect", { x: x - HOLE / 2, y, width: HOLE, height: BOX, rx: 8 }),
    svg("text", { x, y: y + 18, "text-anchor": "middle" }, "_"),
  );
}

/**
 * @param {TreeNode} node
 * @param {number} number
 * @param {Place} place
 * @param {number} badge
 */
function box(node, number, { x, y, width }, badge) {
  const left = x - width / 2;
  const group = svg("g", { class: `node ${unitClass(node.unit)}`, "data-node": number, "data-label": node.label });
  group.append(svg("rect", { x: left, y, width, height: BOX, rx: 8 }));
  if (node.unit !== null) {
    const middle = left + PADDING + BADGE - 3;
    const text = { class: "number", x: middle, y: y + BOX / 2 + 3.8, "text-anchor": "middle" };
    group.append(svg("circle", { class: "badge", cx: middle, cy: y + BOX / 2, r: BADGE }));
    group.append(svg("text", text, String(node.unit + 1)));
  }
  const text = svg("text", { class: "label", x: left + PADDING + badge, y: y + BOX / 2 + 4.3 });
  text.append(...labelParts(node.label, svg));
  group.append(text);
  if (node.leaf !== null) group.setAttribute("data-leaf", String(node.leaf));
  return group;
}

/**
 * @param {TreeNode} node
 * @param {import("./candidate.js").Leaf} leaf
 * @param {string} text
 * @param {Place} place
 */
function words(node, leaf, text, { words: x, y }) {
  const width = measure(text, "--sans", WORDS_SIZE);
  const line = y + BOX + 26;
  return svg(
    "g",
    { class: `words ${unitClass(node.unit)}`, "data-leaf": String(node.leaf) },
    svg("title", {}, `${leaf.label} “${leaf.text}”: ${percent(leaf.confidence)}`),
    svg("text", { x, y: line - 6, "text-anchor": "middle" }, text),
    svg("line", { x1: x - width / 2, x2: x + width / 2, y1: line, y2: line }),
    svg("text", { class: "confidence", x, y: line + 14, "text-anchor": "middle" }, percent(leaf.confidence)),
  );
}

/**
 * Return how wide a drawing may be in its box.
 * @param {HTMLElement} target
 */
export function roomIn(target) {
  const { paddingLeft, paddingRight } = getComputedStyle(target);
  return target.clientWidth - parseFloat(paddingLeft) - parseFloat(paddingRight);
}

/**
 * Put a drawing into its box; where it is wider than the box, the root is in the middle.
 * @param {HTMLElement} target
 * @param {Element} drawing
 */
export function place(target, drawing) {
  target.replaceChildren(drawing);
  target.scrollLeft = (target.scrollWidth - target.clientWidth) / 2;
}
