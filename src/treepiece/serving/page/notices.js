// What is said where there is no answer.

import { Gone, Problem } from "./api.js";
import { html } from "./dom.js";

/**
 * Say what went wrong, in the server's words if it had any.
 * @param {HTMLElement} target
 * @param {Error} error
 * @param {() => void} onRetry
 */
export function showProblem(target, error, onRetry) {
  const parts = error instanceof Problem ? wordsOf(error) : error instanceof Gone ? gone() : fault(error);
  if (!(error instanceof Problem) || error.isPassing) {
    const button = html("button", { type: "button", class: "go" }, "Try again");
    button.addEventListener("click", onRetry);
    parts.push(button);
  }
  target.replaceChildren(...parts);
  target.hidden = false;
}

/** @param {Problem} problem */
function wordsOf(problem) {
  const parts = [html("h2", {}, problem.title), html("p", {}, problem.message)];
  if (problem.requestId && problem.isPassing) parts.push(html("p", { class: "note" }, `Request ${problem.requestId}`));
  return parts;
}

function gone() {
  const help = "It may have been stopped, or the network is gone. Your text is kept, and asked for every few seconds.";
  return [html("h2", {}, "The server does not answer"), html("p", {}, help)];
}

/** @param {Error} error */
function fault(error) {
  return [html("h2", {}, "This page made a mistake"), html("p", {}, String(error))];
}
