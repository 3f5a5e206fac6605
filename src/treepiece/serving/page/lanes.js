// The passes of a decoder as a lane: a cell for each, as wide in every lane, and below them what each generates.

import { html, labelParts } from "./dom.js";
import { unitClass } from "./candidate.js";

const FEWEST_CELLS = 12; // so that a pass is never drawn as wide as a page

/**
 * @typedef {object} Step
 * @property {(Node | string)[]} shown
 * @property {string} said  in words, for the line below the lanes
 * @property {string} style  classes
 *
 * @typedef {{title: string, steps: Step[]}} Lane
 */

/** @typedef {import("./candidate.js").Candidate} Candidate */

/**
 * Return the lane of the model that is served; null if it is itself the one that decodes token by token.
 * @param {string} kind
 * @param {Candidate} candidate
 * @returns {Lane | null}
 */
export function ownLane(kind, candidate) {
  if (kind === "ar") return null;
  if (kind === "nar") {
    const step = { shown: ["the whole tree"], said: "the whole tree", style: "no-unit" };
    return { title: "This model, all at once", steps: [step] };
  }
  const steps = candidate.units.map((unit, place) => ({
    shown: [html("b", { class: "badge" }, String(place + 1)), html("code", {}, unit)],
    said: place ? `unit ${place + 1}, joined at a placeholder` : "unit 1",
    style: unitClass(place),
  }));
  if (candidate.leaves.length) {
    const quoted = candidate.leaves.map((leaf) => `“${leaf.text}”`).join(" · ");
    steps.push({ shown: ["all words at once ", html("b", {}, quoted)], said: "all words at once", style: "no-unit" });
  }
  if (candidate.passes > steps.length) {
    const said = "reranked with the other candidates";
    steps.push({ shown: [said], said, style: "no-unit" });
  }
  return { title: "TreePiece", steps };
}

/**
 * Return the lane of a decoder that generates token by token.
 * @param {import("./steps.js").Token[]} tokens
 * @returns {Lane}
 */
export function tokenLane(tokens) {
  const steps = tokens.map(({ kind, text }) => {
    if (kind === "open") return { shown: labelParts(text, html), said: text, style: "token" };
    if (kind === "close") return { shown: ["]"], said: "a bracket", style: "token" };
    const said = `the ${kind} word of a slot, “${text}”`;
    return { shown: [kind === "first" ? `“${text}` : `${text}”`], said, style: "token pointer" };
  });
  return { title: "Token by token", steps };
}

/**
 * Return a lane's elements, and a function that shows it as it is after a number of passes.
 * @param {Lane} lane
 * @param {number} longest  passes of the longest lane
 */
export function drawLane({ title, steps }, longest) {
  const count = html("span", { class: "count" });
  const cells = steps.map((step) => html("span", { class: `cell ${step.style}` }));
  const chips = steps.map((step) => html("li", { class: `chip ${step.style}` }, ...step.shown));
  const track = html("div", { class: "track", "aria-hidden": "true" }, ...cells);
  track.style.gridTemplateColumns = `repeat(${Math.max(longest, FEWEST_CELLS)}, 1fr)`;
  const head = html("h3", {}, title, count);
  const element = html("section", { class: "lane" }, head, track, html("ol", { class: "chips" }, ...chips));
  const show = (/** @type {number} */ pass) => {
    [cells, chips].forEach((parts) => parts.forEach((part, place) => part.classList.toggle("pending", place >= pass)));
    chips.forEach((chip, place) => chip.classList.toggle("newest", place === pass - 1 && pass < longest));
    const isDone = pass >= steps.length;
    count.textContent = `${isDone ? "done after" : `${pass} of`} ${passes(steps.length)}`;
    element.classList.toggle("done", isDone);
  };
  return { element, show };
}

/** @param {number} number */
export function passes(number) {
  return number === 1 ? "1 pass" : `${number} passes`;
}
