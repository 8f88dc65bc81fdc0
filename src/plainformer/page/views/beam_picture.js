/** The picture of a beam's tree: a box for each node, a line to each from the one that it extends. */

import { best_through, layout } from "./beam_layout.js";
import { s } from "./elements.js";
import { belongs } from "./hover.js";
import { label } from "./parts.js";

/** @typedef {import("../engine/decode/beam.js").BeamNode} BeamNode */

const [ROW, BOX, GAP, TOP] = [46, 38, 26, 20]; // pixels: of a row, of a box in it, between columns, above them
const [NARROWEST, WIDEST] = [54, 150]; // pixels of a column
const pen = { context: null, widths: new Map() };

/** @param {number} value @returns {string} with a minus sign, and as many digits as say something */
export function nats(value, digits = 2) {
  return value.toFixed(digits).replace(/^-(?=0\.?0*$)/, "").replace("-", "−");
}

/**
 * @param {import("./results.js").Result} result
 * @param {number} pruned how many pruned nodes of each step are drawn at most
 * @param {(node: BeamNode) => string} describe a node in words
 * @returns {{svg: SVGElement, columns: number[][], boxes: Map<number, SVGElement>, hidden: number}} the picture, the
 *   ids of the nodes in each of its columns, the box of each, and how many were left out
 */
export function draw_tree(result, pruned, describe) {
  const { nodes, hypotheses } = result.search;
  const ends = hypotheses.map(({ node }) => node);
  const best = best_through(nodes, ends);
  const { columns, hidden } = layout(nodes, ends, pruned);
  const texts = new Map(columns.flat().map((id) => [id, shortened(label(result.token(nodes[id].token)))]));
  const places = placed(columns, texts);
  const boxes = new Map();
  for (const id of columns.flat()) {
    const under = under_line(nodes[id], ends.indexOf(id));
    boxes.set(id, box(nodes[id], best.get(id), places.of.get(id), [texts.get(id), under]));
    boxes.get(id).setAttribute("aria-label", describe(nodes[id]));
    if (best.get(id) === 0 && nodes[id].step < result.pass.target.length)
      Object.assign(boxes.get(id).dataset, belongs("target", nodes[id].step));
  }
  const height = TOP + ROW * Math.max(...columns.map((column) => column.length)) + (hidden.some(Boolean) ? 18 : 0);
  const heads = columns.map((column, step) => head(step, column.length, hidden[step], places.columns[step], height));
  const drawn = [lines(nodes, best, places.of), heads, [...boxes.values()]];
  const size = { width: places.width, height, viewBox: `0 0 ${places.width} ${height}` };
  const svg = s("svg", { ...size, role: "tree", "aria-label": "Tree of the beam, step by step" }, drawn);
  return { svg, columns, boxes, hidden: hidden.reduce((one, other) => one + other, 0) };
}

/** Where each box stands: {x, y, width}, and each column: {x, width}. */
function placed(columns, texts) {
  const [of, places] = [new Map(), []];
  let x = 2;
  for (const column of columns) {
    const widest = Math.max(...column.map((id) => width_of(texts.get(id)))) + 14;
    const width = Math.ceil(Math.min(Math.max(widest, NARROWEST), WIDEST));
    column.forEach((id, row) => of.set(id, { x, y: TOP + row * ROW + (ROW - BOX) / 2, width }));
    places.push({ x, width });
    x += width + GAP;
  }
  return { of, columns: places, width: x - GAP + 2 };
}

function box({ id, fate, step }, rank, { x, y, width }, [text, under]) {
  const kind = [fate, rank === 0 ? "best" : rank === undefined ? "" : "listed"].filter(Boolean).join(" ");
  const middle = x + width / 2;
  return s(
    "g",
    { class: `node ${kind}`, role: "treeitem", tabindex: -1, "aria-level": step + 1, data: { node: id } },
    s("rect", { x, y, width, height: BOX, rx: fate === "finished" ? BOX / 2 : 4 }),
    s("text", { x: middle, y: y + 17, "text-anchor": "middle" }, text),
    s("text", { class: "under", x: middle, y: y + 32, "text-anchor": "middle" }, under),
  );
}

/** What stands under a token: its log-probability; of the end of a hypothesis which one it is, and its score. */
function under_line({ fate, step, logprob, score }, place) {
  if (step === 0) return "start";
  if (place >= 0) return `#${place + 1} ${nats(score)}`;
  return fate === "pruned" ? `× ${nats(logprob)}` : nats(logprob);
}

function head(step, rows, hidden, { x, width }, height) {
  const at = { x: x + width / 2, "text-anchor": "middle", "aria-hidden": "true", class: "step" };
  const foot = Math.min(height - 4, TOP + ROW * rows + 13);
  return [s("text", { ...at, y: 12 }, step || ""), hidden > 0 && s("text", { ...at, y: foot }, `+${hidden} ×`)];
}

/** All lines of one kind are one path. */
function lines(nodes, best, places) {
  const drawn = { pruned: "", live: "", listed: "", best: "" };
  for (const [id, { x, y, width }] of places) {
    const from = places.get(nodes[id].parent);
    if (from === undefined) continue;
    const rank = best.get(id);
    const kind = rank === 0 ? "best" : rank !== undefined ? "listed" : nodes[id].fate === "pruned" ? "pruned" : "live";
    const [start, end, middle] = [from.x + from.width, x, x - GAP / 2];
    const [above, below] = [from.y + BOX / 2, y + BOX / 2];
    drawn[kind] += `M${start} ${above}C${middle} ${above} ${middle} ${below} ${end} ${below}`;
  }
  return Object.entries(drawn).map(([kind, d]) => d && s("path", { class: `line ${kind}`, d }));
}

/** A text that fits in the widest box. */
function shortened(text) {
  const fits = (one) => width_of(one) <= WIDEST - 14;
  if (fits(text)) return text;
  const characters = [...text];
  while (characters.length > 1 && !fits(`${characters.join("")}…`)) characters.pop();
  return `${characters.join("")}…`;
}

function width_of(text) {
  if (!pen.widths.has(text)) {
    pen.context ??= document.createElement("canvas").getContext("2d");
    pen.context.font = "13px system-ui, 'Noto Sans', sans-serif";
    pen.widths.set(text, pen.context.measureText(text).width);
  }
  return pen.widths.get(text);
}
