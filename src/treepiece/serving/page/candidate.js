// A candidate as the server sends it, made into nodes that know their place.

/**
 * @typedef {{label: string, text: string, start: number, end: number, confidence: number}} Leaf
 *
 * @typedef {object} Candidate  one parse of a text, as `/v1/parse` describes it
 * @property {string | null} tree
 * @property {string} skeleton
 * @property {number} confidence
 * @property {number} score
 * @property {Leaf[]} leaves
 * @property {string[]} units
 * @property {number[]} unit_places
 * @property {number} passes
 *
 * @typedef {object} TreeNode
 * @property {string} label
 * @property {number | null} parent
 * @property {number[]} children
 * @property {number} depth
 * @property {number | null} unit  the place of its unit, null if the model has no units
 * @property {number | null} leaf  the place of the leaf that it is, null if it is none
 */

/**
 * Return the nodes of a skeleton in pre-order: "[IN:A [SL:B ] ]" has two.
 * @param {Candidate} candidate
 * @returns {TreeNode[]}
 */
export function nodesOf(candidate) {
  /** @type {TreeNode[]} */
  const nodes = [];
  /** @type {number[]} */
  const open = [];
  for (const token of candidate.skeleton.split(/\s+/)) {
    if (token === "]") {
      open.pop();
    } else if (token.startsWith("[")) {
      const parent = open.at(-1) ?? null;
      const place = nodes.length;
      const unit = candidate.unit_places[place] ?? null;
      nodes.push({ label: token.slice(1), parent, children: [], depth: open.length, unit, leaf: null });
      if (parent !== null) nodes[parent].children.push(place);
      open.push(place);
    }
  }
  nodes.filter(isLeaf).forEach((node, place) => {
    node.leaf = place;
  });
  return nodes;
}

/**
 * Return whether a node quotes words of the text: a slot with nothing below it.
 * @param {TreeNode} node
 */
function isLeaf(node) {
  return node.label.startsWith("SL:") && node.children.length === 0;
}

/**
 * Return the class that gives a node, a word or a badge the colour of its unit.
 * @param {number | null} unit
 */
export function unitClass(unit) {
  return unit === null ? "no-unit" : `unit unit-${unit % 8}`;
}
