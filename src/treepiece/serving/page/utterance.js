// The text as it was typed, its words underlined where leaves point, and how its spelling was corrected.

import { html, percent } from "./dom.js";
import { unitClass } from "./candidate.js";

/**
 * @param {HTMLElement} target
 * @param {string} text
 * @param {import("./candidate.js").Candidate} candidate
 * @param {import("./candidate.js").TreeNode[]} nodes
 * @returns {HTMLElement[]}  the underlined words of each leaf
 */
export function showUtterance(target, text, candidate, nodes) {
  const points = Array.from(text); // the server counts code points, JavaScript UTF-16
  const units = nodes.filter((node) => node.leaf !== null).map((node) => node.unit);
  const marks = candidate.leaves.map((leaf, place) =>
    html(
      "mark",
      {
        class: unitClass(units[place]),
        "data-leaf": place,
        title: `${leaf.label}: ${percent(leaf.confidence)}`,
      },
      points.slice(leaf.start, leaf.end).join(""),
    ),
  );
  let end = 0;
  target.replaceChildren();
  candidate.leaves.forEach((leaf, place) => {
    target.append(points.slice(end, leaf.start).join(""), marks[place]);
    end = leaf.end;
  });
  target.append(points.slice(end).join(""));
  return marks;
}

/**
 * Show which words were read as others, because the model has never seen them.
 * @param {HTMLElement} target
 * @param {{text: string, read: string}[]} corrections
 */
export function showCorrections(target, corrections) {
  target.hidden = corrections.length === 0;
  const parts = corrections.flatMap(({ text, read }, place) => [
    place ? ", " : "Read ",
    html("del", {}, text),
    " as ",
    html("ins", {}, read),
  ]);
  target.replaceChildren(...parts);
}

/**
 * Show which words and which node belong together while one of them is pointed at.
 * @param {HTMLElement} around
 */
export function linkLeaves(around) {
  const light = (/** @type {Event} */ event) => {
    const leaf = event.type === "pointerover" && event.target.closest("[data-leaf]")?.dataset.leaf;
    for (const part of around.querySelectorAll("[data-leaf]")) {
      part.classList.toggle("lit", leaf !== undefined && part.dataset.leaf === leaf);
    }
  };
  around.addEventListener("pointerover", light);
  around.addEventListener("pointerleave", light);
}
