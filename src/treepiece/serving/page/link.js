// The text in the address of the page, so that a link leads to its parse.

const NAME = "text";

/** Return the text of the address; null if it has none. */
export function linkedText() {
  return new URLSearchParams(location.hash.slice(1)).get(NAME);
}

/**
 * Put a text into the address, without a new entry in the history.
 * @param {string} text
 */
export function linkText(text) {
  const hash = text ? `#${NAME}=${encodeURIComponent(text)}` : location.pathname + location.search;
  history.replaceState(null, "", hash);
}

/**
 * Return a text without halves of characters, which addresses and requests cannot hold.
 * @param {string} text
 */
export function whole(text) {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}
