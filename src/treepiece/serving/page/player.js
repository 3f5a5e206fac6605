// A clock that ticks once a pass.

const TICK = 420; // milliseconds
const LONGEST = 12_000; // for all passes

export class Player {
  /** @param {(player: Player) => void} onChange */
  constructor(onChange) {
    this.onChange = onChange;
    this.length = 0;
    this.at = 0;
    this.timer = 0;
  }

  get isPlaying() {
    return this.timer !== 0;
  }

  /**
   * Take so many passes, and show what there is after the last.
   * @param {number} length
   */
  load(length) {
    this.length = length;
    this.goTo(length);
  }

  /**
   * Stop, and show what there is after a pass.
   * @param {number} pass
   */
  goTo(pass) {
    this.stop();
    this.at = Math.min(Math.max(pass, 0), this.length);
    this.onChange(this);
  }

  /** @param {number} passes */
  step(passes) {
    this.goTo(this.at + passes);
  }

  /** Play on, or from the start if it is over; pause if it plays. */
  toggle() {
    if (this.isPlaying) {
      this.goTo(this.at);
      return;
    }
    if (this.at === this.length) this.at = 0;
    this.timer = setInterval(() => this.tick(), Math.min(TICK, LONGEST / Math.max(1, this.length)));
    this.onChange(this);
  }

  tick() {
    this.at += 1;
    if (this.at >= this.length) this.stop();
    this.onChange(this);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
  }
}
