// The server's two answers that the page needs, and the three ways of not getting one.

let token = ""; // in memory only: a token that is stored can be stolen

/** The server answered, and said why it does not do what it was asked to. */
export class Problem extends Error {
  /** @param {{title: string, detail: string, status: number, request_id?: string}} value */
  constructor(value) {
    super(value.detail);
    this.title = value.title;
    this.status = value.status;
    this.requestId = value.request_id ?? "";
  }

  /** Whether the same request may be answered another time. */
  get isPassing() {
    return this.status >= 500 || this.status === 408;
  }
}

/** No server answered. */
export class Gone extends Error {}

/**
 * Return what is known of the model that is served.
 * @param {AbortSignal} signal
 * @returns {Promise<any>}
 */
export function fetchModel(signal) {
  return ask("v1/model", { signal });
}

/**
 * Return the candidates of a text.
 * @param {string} text
 * @param {number} nbest
 * @param {AbortSignal} signal
 */
export function fetchParse(text, nbest, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask("v1/parse", { method: "POST", headers, body: JSON.stringify({ text, nbest }), signal });
}

/**
 * Use a token from here on, until the page is left.
 * @param {string} text
 */
export function useToken(text) {
  token = text;
}

/** Return whether there is a token, right or wrong. */
export function hasToken() {
  return token !== "";
}

/**
 * @param {string} path
 * @param {RequestInit & {headers?: Record<string, string>}} options
 */
async function ask(path, options) {
  const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
  const response = await reach(() => fetch(path, { ...options, headers }));
  const body = await reach(() => response.text());
  const value = read(body);
  if (response.ok && value) return value;
  const title = `The server answered ${response.status} ${response.statusText}`.trim();
  const detail = "That is not what treepiece answers; something between this page and the server may have said so.";
  throw new Problem({ title, detail, ...value, status: response.status });
}

/**
 * Return what comes over the network; what the browser says of a failure is for developers, not for readers.
 * @template T
 * @param {() => Promise<T>} get
 */
async function reach(get) {
  try {
    return await get();
  } catch (error) {
    throw error instanceof DOMException && error.name === "AbortError" ? error : new Gone();
  }
}

/** @param {string} body */
function read(body) {
  try {
    return JSON.parse(body);
  } catch {
    return null;
  }
}
