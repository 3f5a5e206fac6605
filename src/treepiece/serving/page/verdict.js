// Whether an answer counts as understood, and why not: below a confidence that the reader chooses.

import { html, percent } from "./dom.js";

/**
 * @typedef {object} Answer  what `/v1/parse` says of a text as a whole
 * @property {number | null} in_scope
 * @property {number | null} several
 */

/**
 * Return the reason why a text has a low confidence.
 * @param {Answer} answer
 */
function reasonOf({ in_scope: inScope, several }) {
  if (inScope !== null && inScope < 0.5) return "The model was not trained for requests like this one.";
  if (several !== null && several > 0.5) return "It looks like several requests in one: try them one by one.";
  return "This is the nearest tree that the model has.";
}

/**
 * Say that a text is not understood, and dim its tree, if the confidence is below the least that counts.
 * @param {HTMLElement} target
 * @param {HTMLElement} around  the element that holds the tree
 * @param {Answer} answer
 * @param {number} confidence
 * @param {number} least
 */
export function showVerdict(target, around, answer, confidence, least) {
  const isUnderstood = confidence >= least;
  target.hidden = isUnderstood;
  around.classList.toggle("not-understood", !isUnderstood);
  if (isUnderstood) {
    target.replaceChildren();
    return;
  }
  target.replaceChildren(html("strong", {}, "Not understood."), ` ${percent(confidence)} is less than ${percent(least)}. `);
  target.append(reasonOf(answer));
}
