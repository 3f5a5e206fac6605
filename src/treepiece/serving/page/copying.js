// An answer to take along: as JSON, as TOP text, or as the Python that makes it.

import { html } from "./dom.js";

const COPIED = 1500; // milliseconds for which the button says so

/**
 * @typedef {object} Taken
 * @property {string} text
 * @property {import("./candidate.js").Candidate} candidate
 * @property {number} chosen  which of the candidates it is
 * @property {number} nbest  how many were asked for
 * @property {string} model
 */

/** @type {Record<string, (taken: Taken) => string | null>} */
const FORMATS = {
  JSON: ({ text, candidate }) => JSON.stringify({ text, ...candidate }, null, 2),
  TOP: ({ candidate }) => candidate.tree,
  Python: ({ text, chosen, nbest, model }) =>
    // A string of JSON is one of Python.
    [
      "from treepiece import Parser",
      "",
      `parser = Parser.load(${JSON.stringify(model)})`,
      `result = parser(${JSON.stringify(text)}, nbest=${nbest})`,
      `candidate = result.candidates[${chosen}]`,
      "print(candidate.tree, candidate.confidence)",
    ].join("\n"),
};

export class Copying {
  /**
   * @param {HTMLElement} buttons
   * @param {HTMLElement} shown
   */
  constructor(buttons, shown) {
    this.shown = shown;
    this.format = "Python";
    /** @type {Taken | null} */
    this.taken = null;
    this.choices = Object.keys(FORMATS).map((format) => {
      const button = html("button", { type: "button", class: "quiet", "data-format": format }, format);
      button.addEventListener("click", () => this.choose(format));
      return button;
    });
    this.button = html("button", { type: "button", class: "go", id: "copy", "aria-live": "polite" }, "Copy");
    this.button.addEventListener("click", () => this.copy());
    buttons.append(...this.choices, this.button);
    this.choose(this.format);
  }

  /** @param {Taken} taken */
  load(taken) {
    this.taken = taken;
    this.choose(this.format);
  }

  /** @param {string} format */
  choose(format) {
    this.format = format;
    for (const button of this.choices) button.setAttribute("aria-pressed", String(button.dataset.format === format));
    const written = this.taken && FORMATS[format](this.taken);
    this.button.disabled = written === null;
    this.shown.textContent = written ?? "TOP text cannot hold these words: take JSON.";
  }

  async copy() {
    const isDone = await copyText(this.shown);
    this.button.textContent = isDone ? "Copied" : "Press Ctrl+C";
    setTimeout(() => {
      this.button.textContent = "Copy";
    }, COPIED);
  }
}

/**
 * Copy the text of an element, and select it: browsers give the clipboard to secure pages only.
 * @param {HTMLElement} element
 */
async function copyText(element) {
  try {
    await navigator.clipboard.writeText(element.textContent);
    return true;
  } catch {
    getSelection().selectAllChildren(element);
    return document.execCommand("copy");
  }
}
