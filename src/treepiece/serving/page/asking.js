// Which text is asked for, and when. There is one request at a time, that of the newest text: an older one is aborted,
// and should its answer have come already, nobody sees it.

const PAUSE = 200; // milliseconds without a key before a text is asked for
const SLOW = 250; // milliseconds without an answer before the page says that it waits

/**
 * @typedef {object} Listener
 * @property {(seconds: number) => void} onWait  called when an answer takes long, and every second
 * @property {(answer: any) => void} onAnswer
 * @property {(error: Error, text: string) => void} onError
 */

export class Asker {
  /**
   * @param {(text: string, signal: AbortSignal) => Promise<any>} fetchAnswer
   * @param {Listener} listener
   */
  constructor(fetchAnswer, listener) {
    this.fetchAnswer = fetchAnswer;
    this.listener = listener;
    this.pause = 0;
    this.controller = new AbortController();
  }

  /**
   * Ask for a text once nobody types any more.
   * @param {string} text
   */
  soon(text) {
    this.drop();
    this.pause = setTimeout(() => this.now(text), PAUSE);
  }

  /** Ask for nothing: whatever is under way is not wanted any more. */
  drop() {
    clearTimeout(this.pause);
    this.controller.abort();
  }

  /**
   * Ask for a text at once.
   * @param {string} text
   */
  async now(text) {
    this.drop();
    const controller = (this.controller = new AbortController());
    const stopWaiting = this.wait();
    try {
      const answer = await this.fetchAnswer(text, controller.signal);
      if (!controller.signal.aborted) this.listener.onAnswer(answer);
    } catch (error) {
      if (!controller.signal.aborted) this.listener.onError(error, text);
    } finally {
      stopWaiting();
    }
  }

  /** Tell from time to time that an answer has not come; return what ends that. */
  wait() {
    const begin = performance.now();
    const { signal } = this.controller;
    let timer = 0;
    const tell = () => {
      if (signal.aborted) return;
      this.listener.onWait(Math.floor((performance.now() - begin) / 1000));
      timer = setTimeout(tell, 1000);
    };
    timer = setTimeout(tell, SLOW);
    return () => clearTimeout(timer);
  }
}
