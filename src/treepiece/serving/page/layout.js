// Where the nodes of a tree are drawn: leaves side by side, parents above their children; or as an outline, a node a line.

export const BOX = 30; // height of a node
export const LEVEL = 66; // from the top of a level to the top of the next
export const HOLE = 44; // width of a placeholder
export const WORDS = 44; // below a leaf, for its words and their confidence
const GAP = 22;
const MARGIN = 6;
const INDENT = 16; // of an outline, for each level
const LINE = 10; // between the lines of an outline

/** @typedef {import("./candidate.js").TreeNode} TreeNode */
/**
 * @typedef {object} Place
 * @property {number} x  the middle of a node
 * @property {number} y  its upper side
 * @property {number} width
 * @property {number} words  the middle of the words below it
 * @property {number} hole  the middle of the placeholder that it fills
 *
 * @typedef {{places: Place[], width: number, height: number}} Layout
 */

/**
 * Return the place of each node and the size of the drawing. What is wider than what stands below it pushes its
 * neighbours aside.
 * @param {TreeNode[]} nodes  in pre-order
 * @param {number[]} boxes  the width of each node
 * @param {number[]} words  the width of the words below each node, 0 where there are none
 * @returns {Layout}
 */
export function layOut(nodes, boxes, words) {
  const below = nodes.map(() => 0); // what the children need side by side
  const room = nodes.map(() => 0); // what a node needs with all that is below it
  for (let place = nodes.length - 1; place >= 0; place--) {
    const { children } = nodes[place];
    below[place] = children.reduce((sum, child) => sum + room[child], 0) + GAP * Math.max(0, children.length - 1);
    room[place] = Math.max(boxes[place], words[place], below[place]);
  }
  const left = nodes.map(() => MARGIN);
  const places = nodes.map((node, place) => {
    const x = left[place] + room[place] / 2;
    let at = x - below[place] / 2;
    for (const child of node.children) {
      left[child] = at;
      at += room[child] + GAP;
    }
    return { x, y: MARGIN + node.depth * LEVEL, width: boxes[place], words: x, hole: x };
  });
  const bottoms = nodes.map((_, place) => places[place].y + BOX + (words[place] ? WORDS : 0));
  return { places, width: room[0] + 2 * MARGIN, height: Math.max(...bottoms) + MARGIN };
}

/**
 * Return the same for an outline, which is narrow: every node has a line of its own, below its parent and indented.
 * @param {TreeNode[]} nodes  in pre-order
 * @param {number[]} boxes
 * @param {number[]} words
 * @returns {Layout}
 */
export function layOutline(nodes, boxes, words) {
  let y = MARGIN;
  const places = nodes.map((node, place) => {
    const left = MARGIN + node.depth * INDENT;
    const [width, top] = [boxes[place], y];
    y += BOX + LINE + (words[place] ? WORDS : 0);
    return { x: left + width / 2, y: top, width, words: left + words[place] / 2, hole: left + HOLE / 2 };
  });
  const ends = nodes.map((node, place) => MARGIN + node.depth * INDENT + Math.max(boxes[place], words[place]));
  return { places, width: Math.max(...ends) + MARGIN, height: y - LINE + MARGIN };
}
