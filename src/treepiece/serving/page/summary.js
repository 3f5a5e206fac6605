// What is known about an answer: its confidence, its time, and the other candidates.

import { html, percent } from "./dom.js";

/** What the stages of `milliseconds` are, for people. */
const STAGES = { subwords: "subwords", model: "model", frame: "tree" };

const LOW = 0.5; // what is less probable to be right than to be wrong

/** @typedef {import("./candidate.js").Candidate} Candidate */

/**
 * @param {HTMLElement} target
 * @param {number} confidence
 */
export function showConfidence(target, confidence) {
  const style = confidence < LOW ? "share confidence low" : "share confidence";
  const bar = html("div", { class: style, "aria-hidden": "true" }, html("span"));
  bar.firstChild.style.width = `${confidence * 100}%`;
  target.replaceChildren(
    html("h2", {}, "Confidence"),
    html("p", { class: "figure" }, percent(confidence)),
    bar,
    html("p", { class: "note" }, "that the whole tree is right"),
  );
}

/**
 * @param {HTMLElement} target
 * @param {Record<string, number>} milliseconds  by stage
 * @param {number} candidates  how many were asked for, which takes longer than one
 */
export function showTimes(target, milliseconds, candidates) {
  const stages = Object.entries(milliseconds);
  const total = stages.reduce((sum, [, time]) => sum + time, 0);
  const bar = html("div", { class: "stages", "aria-hidden": "true" });
  const rows = html("dl", { class: "stage-list" });
  stages.forEach(([stage, time], place) => {
    const part = html("span", { class: `stage-${place % 3}` });
    part.style.flexGrow = String(Math.max(time, total / 100));
    bar.append(part);
    const name = html("dt", {}, html("i", { class: `stage-${place % 3}` }), STAGES[stage] ?? stage);
    rows.append(name, html("dd", { "data-stage": stage }, `${time.toFixed(1)} ms`));
  });
  const note = candidates > 1 ? ` for ${candidates} candidates` : "";
  target.replaceChildren(
    html("h2", {}, "Time"),
    html("p", { class: "figure" }, total.toFixed(1), html("small", {}, ` ms${note}`)),
    bar,
    rows,
  );
}

/**
 * Show the candidates as a choice; the arrow keys of a browser go through it.
 * @param {HTMLElement} target
 * @param {Candidate[]} candidates
 * @param {(place: number) => void} onChoose
 */
export function showCandidates(target, candidates, onChoose) {
  target.hidden = candidates.length < 2;
  target.replaceChildren(html("legend", {}, "Candidates"));
  candidates.forEach((candidate, place) => {
    const button = html("input", { type: "radio", name: "candidate", value: place });
    button.checked = place === 0;
    button.addEventListener("change", () => onChoose(place));
    const score = html("span", { class: "score" }, percent(candidate.score));
    const tree = html("span", { class: "top" }, candidate.tree ?? candidate.skeleton);
    const bar = html("span", { class: "share", "aria-hidden": "true" }, html("span"));
    bar.firstChild.style.width = `${candidate.score * 100}%`;
    target.append(html("label", { class: "candidate" }, button, score, bar, tree));
  });
}

/**
 * Choose the candidate before or after the chosen one.
 * @param {HTMLElement} target
 * @param {number} step
 */
export function stepCandidate(target, step) {
  const buttons = [...target.querySelectorAll("input")];
  const next = buttons[buttons.findIndex((button) => button.checked) + step];
  next?.click();
}

/**
 * @param {HTMLElement} target
 * @param {any} model  as `/v1/model` describes it
 */
export function showModel(target, model) {
  const parts = [`Model ${model.name}`, model.kind, model.precision];
  if (model.units) parts.push(`${model.units.toLocaleString("en")} units`);
  if (model.scores.em && model.data) parts.push(`exact match ${percent(model.scores.em)} on ${model.data}`);
  target.textContent = `${parts.join(" · ")} · treepiece ${model.treepiece}`;
}
