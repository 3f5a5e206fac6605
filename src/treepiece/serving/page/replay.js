// The decoding played pass by pass: this model beside one that decodes token by token, each on the same clock.

import { byId } from "./dom.js";
import { drawLane, ownLane, passes, tokenLane } from "./lanes.js";
import { Player } from "./player.js";

const NOTES = {
  treepiece:
    "Each pass waits for the one before it. TreePiece takes one pass for each unit and one for all words; the " +
    "autoregressive baseline takes one for each label, bracket and end of a slot. If the parser is not confident " +
    "enough, it takes one more pass, in which a reranker scores several candidates.",
  nar: "A non-autoregressive decoder generates everything in one pass, and cannot see its own output.",
  ar: "This model is a baseline: each pass generates one token and waits for the one before it.",
};

export class Replay {
  constructor() {
    /** @type {import("./lanes.js").Lane[]} */
    this.lanes = [];
    /** @type {((pass: number) => void)[]} */
    this.shows = [];
    this.player = new Player(() => this.show());
    byId("play").addEventListener("click", () => this.player.toggle());
    byId("back").addEventListener("click", () => this.player.step(-1));
    byId("forward").addEventListener("click", () => this.player.step(1));
    byId("scrub").addEventListener("input", (event) => this.player.goTo(Number(event.target.value)));
  }

  /**
   * Take a candidate, and show it finished.
   * @param {string} kind
   * @param {import("./candidate.js").Candidate} candidate
   * @param {import("./steps.js").Token[]} tokens
   * @param {(pass: number) => void} showTree
   */
  load(kind, candidate, tokens, showTree) {
    const own = ownLane(kind, candidate);
    this.lanes = [own, tokenLane(tokens)].filter((lane) => lane !== null);
    const longest = Math.max(...this.lanes.map((lane) => lane.steps.length));
    const drawn = this.lanes.map((lane) => drawLane(lane, longest));
    this.shows = [showTree, ...drawn.map((lane) => lane.show)];
    byId("lanes").replaceChildren(...drawn.map((lane) => lane.element));
    byId("replay-title").textContent = own
      ? `${passes(own.steps.length)} instead of ${tokens.length}`
      : `${passes(tokens.length)}, token by token`;
    byId("note").textContent = NOTES[kind] ?? NOTES.treepiece;
    byId("scrub").max = longest;
    this.player.load(longest);
  }

  show() {
    const { at, length, isPlaying } = this.player;
    this.shows.forEach((show) => show(at));
    byId("play").textContent = isPlaying ? "Pause" : "Play";
    byId("back").disabled = at === 0;
    byId("forward").disabled = at === length;
    byId("scrub").value = at;
    byId("pass").textContent = `pass ${at} of ${length}`;
    const said = byId("said");
    said.setAttribute("aria-live", isPlaying ? "off" : "polite"); // nobody can listen as fast as it plays
    said.textContent = at === length ? "" : this.say(at);
  }

  /**
   * Return in words what each lane generates in a pass.
   * @param {number} pass
   */
  say(pass) {
    if (pass === 0) return "Nothing is generated yet.";
    const parts = this.lanes.map(({ title, steps }) => `${title}: ${steps[pass - 1]?.said ?? "done"}`);
    return `${parts.join(". ")}.`;
  }
}
