// The page: what is typed goes to the server, and what comes back is shown.

import { fetchModel, fetchParse, Gone, hasToken, Problem, useToken } from "./api.js";
import { Asker } from "./asking.js";
import { Copying } from "./copying.js";
import { byId, html, percent } from "./dom.js";
import { draw, place, roomIn } from "./drawing.js";
import { EXAMPLES } from "./examples.js";
import { showConfidence, showModel, showCandidates, showTimes, stepCandidate } from "./summary.js";
import { linkedText, linkText, whole } from "./link.js";
import { showProblem } from "./notices.js";
import { nodesOf } from "./candidate.js";
import { Replay } from "./replay.js";
import { scheduleOf, tokensOf } from "./steps.js";
import { showVerdict } from "./verdict.js";
import { linkLeaves, showCorrections, showUtterance } from "./utterance.js";

const CANDIDATES = 4; // the best and three others
const LETTERS = "input:not([type=radio]):not([type=range])"; // what has a use of its own for letters
const ARROWS = "input, .tree, pre"; // and what for arrows
const AGAIN = 4000; // milliseconds until a server that is gone is asked again

const field = byId("text");
const result = byId("result");
const replay = new Replay();
const copying = new Copying(byId("formats"), byId("copied"));
const asker = new Asker(fetchAnswer, { onWait, onAnswer, onError });
/** @type {any} */
let model = null; // what is served; null until it has been asked for
let again = 0;
let refreshVerdict = () => {}; // says whether the candidate that is shown counts as understood

/**
 * @param {string} text
 * @param {AbortSignal} signal
 */
async function fetchAnswer(text, signal) {
  model ??= await fetchModel(signal);
  showModel(byId("model"), model);
  return fetchParse(text, candidatesWanted(), signal);
}

/** Return how many candidates are asked for: a non-autoregressive model has one. */
function candidatesWanted() {
  return model.kind === "nar" ? 1 : Math.min(CANDIDATES, model.limits.nbest, model.limits.candidates);
}

/** Return the least confidence of a text that counts as understood, and show it. */
function leastConfidence() {
  const least = Number(byId("threshold").value) / 100;
  byId("least").textContent = percent(least);
  return least;
}

/** @param {number} seconds */
function onWait(seconds) {
  result.setAttribute("aria-busy", "true");
  byId("status").textContent = seconds < 2 ? "Parsing…" : `Parsing… ${seconds} s`;
}

/** @param {any} answer */
function onAnswer(answer) {
  settle();
  linkText(answer.text);
  const candidates = answer.nbest ?? [answer];
  const choose = (/** @type {number} */ chosen) => {
    showCandidate(answer.text, candidates, chosen);
    refreshVerdict = () => showVerdict(byId("verdict"), result, answer, candidates[chosen].confidence, leastConfidence());
    refreshVerdict();
  };
  showCandidates(byId("candidates"), candidates, choose);
  showCorrections(byId("corrections"), answer.corrections);
  showTimes(byId("times"), answer.milliseconds, candidatesWanted());
  result.hidden = false; // before anything is measured
  choose(0);
}

/**
 * @param {string} text
 * @param {import("./candidate.js").Candidate[]} candidates
 * @param {number} chosen
 */
function showCandidate(text, candidates, chosen) {
  const candidate = candidates[chosen];
  const nodes = nodesOf(candidate);
  const tokens = tokensOf(nodes, candidate);
  const schedule = scheduleOf(model.kind, nodes, candidate, tokens);
  const marks = showUtterance(byId("utterance"), text, candidate, nodes);
  const { drawing, show } = draw(nodes, candidate, schedule, roomIn(byId("tree")));
  place(byId("tree"), drawing);
  showConfidence(byId("confidence"), candidate.confidence);
  copying.load({ text, candidate, chosen, nbest: candidatesWanted(), model: model.name });
  replay.load(model.kind, candidate, tokens, (pass) => {
    show(pass);
    marks.forEach((mark, leaf) => mark.classList.toggle("pending", pass < schedule.leaves[leaf]));
  });
}

/**
 * @param {Error} error
 * @param {string} text
 */
function onError(error, text) {
  settle();
  result.hidden = true;
  if (error instanceof Problem && error.status === 401) {
    byId("wrong-token").hidden = !hasToken();
    byId("token").hidden = false;
    byId("token-text").focus();
    return;
  }
  showProblem(byId("problem"), error, () => asker.now(text));
  if (!(error instanceof Gone)) return;
  model = null; // another may be there when it comes back
  again = setTimeout(() => asker.now(text), AGAIN);
}

/** Take back what was said while there was no answer. */
function settle() {
  clearTimeout(again);
  result.setAttribute("aria-busy", "false");
  byId("status").textContent = "";
  byId("problem").hidden = true;
  byId("token").hidden = true;
}

/**
 * Ask for what stands in the field.
 * @param {boolean} isNow
 */
function ask(isNow) {
  const text = whole(field.value);
  replay.player.stop();
  clearTimeout(again);
  byId("clear").hidden = text === "";
  if (text.trim()) {
    if (isNow) asker.now(text);
    else asker.soon(text);
    return;
  }
  asker.drop();
  settle();
  linkText("");
  result.hidden = true;
  byId("status").textContent = "Type a request, or choose an example.";
}

/**
 * Put a text into the field and ask for it.
 * @param {string} text
 */
function take(text) {
  field.value = text;
  ask(true);
}

function clear() {
  take("");
  field.focus();
}

/** @param {KeyboardEvent} event */
function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const isTaken = event.target.matches(key.startsWith("Arrow") ? ARROWS : LETTERS);
  const keys = event.target === field ? fieldKeys : isTaken ? {} : pageKeys;
  const act = keys[key];
  if (!act) return;
  event.preventDefault();
  act();
}

const fieldKeys = {
  Escape: clear,
  ArrowDown: () => result.hidden || stepCandidate(byId("candidates"), 1),
  ArrowUp: () => result.hidden || stepCandidate(byId("candidates"), -1),
};

const pageKeys = {
  "/": () => {
    field.focus();
    field.select();
  },
  p: () => result.hidden || replay.player.toggle(),
  ArrowLeft: () => replay.player.step(-1),
  ArrowRight: () => replay.player.step(1),
};

function start() {
  for (const example of EXAMPLES) {
    const button = html("button", { type: "button" }, example);
    button.addEventListener("click", () => take(example));
    byId("examples").append(button);
  }
  field.addEventListener("input", () => ask(false));
  byId("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(true);
  });
  byId("clear").addEventListener("click", clear);
  byId("threshold").addEventListener("input", () => refreshVerdict());
  byId("token").addEventListener("submit", (event) => {
    event.preventDefault();
    useToken(byId("token-text").value.trim());
    ask(true);
  });
  document.addEventListener("keydown", onKey);
  addEventListener("hashchange", () => take(linkedText() ?? ""));
  linkLeaves(result);
  take(linkedText() ?? EXAMPLES[0]);
}

start();
