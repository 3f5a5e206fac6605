// What a decoder generates in each of its passes, for this model and for one that decodes token by token.

/** @typedef {import("./candidate.js").Candidate} Candidate */
/** @typedef {import("./candidate.js").TreeNode} TreeNode */

/**
 * @typedef {{kind: "open" | "first" | "last" | "close", node: number, text: string}} Token
 * @typedef {{nodes: number[], leaves: number[]}} Schedule  the pass in which each is generated
 */

/**
 * Return the tokens that the autoregressive parser generates for a tree, one a pass, as `TokenVocabulary.write` does:
 * a label opens a node, a leaf points at its first and its last word, a bracket closes.
 *
 *     [IN:A [SL:B two words ] ]   is   IN:A  SL:B  two  words  ]  ]
 *
 * @param {TreeNode[]} nodes
 * @param {Candidate} candidate
 * @returns {Token[]}
 */
export function tokensOf(nodes, candidate) {
  /** @type {Token[]} */
  const tokens = [];
  /** @param {number} node */
  const write = (node) => {
    const { label, children, leaf } = nodes[node];
    tokens.push({ kind: "open", node, text: label });
    children.forEach(write);
    if (leaf !== null && candidate.leaves[leaf].start < candidate.leaves[leaf].end) {
      const words = candidate.leaves[leaf].text.split(/\s+/);
      tokens.push({ kind: "first", node, text: words[0] }, { kind: "last", node, text: words[words.length - 1] });
    }
    tokens.push({ kind: "close", node, text: "]" });
  };
  if (nodes.length) write(0);
  return tokens;
}

/**
 * Return in which pass of the model that is served each node and the words of each leaf are generated.
 * @param {string} kind  treepiece, ar or nar
 * @param {TreeNode[]} nodes
 * @param {Candidate} candidate
 * @param {Token[]} tokens
 * @returns {Schedule}
 */
export function scheduleOf(kind, nodes, candidate, tokens) {
  const leaves = nodes.filter((node) => node.leaf !== null);
  if (kind === "ar") {
    const passOf = (/** @type {number} */ node, /** @type {string} */ last) =>
      tokens.findLastIndex((token) => token.node === node && (token.kind === last || token.kind === "open")) + 1;
    return {
      nodes: nodes.map((_, place) => passOf(place, "open")),
      leaves: leaves.map((node) => passOf(nodes.indexOf(node), "last")),
    };
  }
  if (kind === "nar") return { nodes: nodes.map(() => 1), leaves: leaves.map(() => 1) };
  return {
    nodes: nodes.map((node) => (node.unit ?? 0) + 1),
    leaves: leaves.map(() => candidate.units.length + 1),
  };
}
