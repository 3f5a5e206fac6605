// Where the nodes of a tree are drawn: leaves side by side, parents above their children.

export const BOX = 30; // height of a node
export const LEVEL = 66; // from the top of a level to the top of the next
export const WORDS = 44; // below a leaf, for its words and their confidence
const GAP = 22;
const MARGIN = 6;

/** @typedef {import("./reading.js").TreeNode} TreeNode */
/** @typedef {{x: number, y: number, width: number}} Place  the middle of the upper side of a node, and its width */

/**
 * Return the place of each node and the size of the drawing. What is wider than what stands below it pushes its
 * neighbours aside.
 * @param {TreeNode[]} nodes  in pre-order
 * @param {number[]} boxes  the width of each node
 * @param {number[]} words  the width of the words below each node, 0 where there are none
 * @returns {{places: Place[], width: number, height: number}}
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
    return { x, y: MARGIN + node.depth * LEVEL, width: boxes[place] };
  });
  const bottoms = nodes.map((_, place) => places[place].y + BOX + (words[place] ? WORDS : 0));
  return { places, width: room[0] + 2 * MARGIN, height: Math.max(...bottoms) + MARGIN };
}
