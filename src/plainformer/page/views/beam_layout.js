/** Where the nodes of a beam's tree stand: a column for each step, and no line crosses another. */

/** @typedef {import("../engine/decode/beam.js").BeamNode} BeamNode */

/** @param {BeamNode[]} nodes @param {number} id @returns {number[]} ids from the root down to this one */
export function path_to(nodes, id) {
  const path = [];
  for (let at = id; at >= 0; at = nodes[at].parent) path.unshift(at);
  return path;
}

/**
 * The best hypothesis that goes through each node: 0 is the best of all.
 * @param {BeamNode[]} nodes
 * @param {number[]} ends the last node of each hypothesis, the best first
 * @returns {Map<number, number>} of the nodes that lead to a hypothesis
 */
export function best_through(nodes, ends) {
  const best = new Map();
  ends.forEach((end, rank) => {
    for (const id of path_to(nodes, end)) if (!best.has(id)) best.set(id, rank);
  });
  return best;
}

/**
 * The nodes of each step from above, in the order of their parents: first what leads to a hypothesis, the best first,
 * then what was kept, then what was pruned. The best hypothesis is thus the first row.
 * @param {BeamNode[]} nodes
 * @param {number[]} ends the last node of each hypothesis, the best first
 * @param {number} pruned how many of the pruned nodes of a step are shown at most, the best of them
 * @returns {{columns: number[][], hidden: number[]}} ids, and how many of each step are not shown
 */
export function layout(nodes, ends, pruned) {
  const best = best_through(nodes, ends);
  const [children, shown, hidden] = [nodes.map(() => []), [], []];
  for (const { id, parent, step, fate } of nodes) {
    if (fate === "pruned") shown[step] = (shown[step] ?? 0) + 1;
    if (fate === "pruned" && shown[step] > pruned) hidden[step] = (hidden[step] ?? 0) + 1;
    else if (parent >= 0) children[parent].push(id);
  }
  const place = (id) => best.get(id) ?? (nodes[id].fate === "pruned" ? Infinity : nodes.length);
  const order = (one, other) => (place(one) === place(other) ? one - other : place(one) - place(other));
  const columns = [[0]];
  for (let next = [0]; next.length > 0; ) {
    next = next.flatMap((id) => children[id].sort(order));
    if (next.length > 0) columns.push(next);
  }
  return { columns, hidden: columns.map((_, step) => hidden[step] ?? 0) };
}

/** The penalties of a length (`decode.length_penalty`), and how each is written. */
const PENALTIES = {
  gnmt: (length, alpha) => [((5 + length) / 6) ** alpha, `((5 + ${length}) / 6)^${alpha}`],
  average: (length, alpha) => [length ** alpha, `${length}^${alpha}`],
  none: () => [1, "1"],
};

/**
 * How a path comes to its score, reckoned anew from the log-probabilities of its tokens.
 * @param {BeamNode[]} nodes
 * @param {number} id of its last node
 * @param {{length_penalty: string, alpha: number}} settings
 * @returns {{logprobs: number[], sum: number, penalty: number, formula: string, score: number}} in nats
 */
export function score_of(nodes, id, { length_penalty, alpha }) {
  const logprobs = path_to(nodes, id).slice(1).map((one) => nodes[one].logprob);
  const sum = logprobs.reduce((one, other) => one + other, 0);
  const [penalty, formula] = logprobs.length ? PENALTIES[length_penalty](logprobs.length, alpha) : [1, "1"];
  return { logprobs, sum, penalty, formula, score: sum / penalty };
}
