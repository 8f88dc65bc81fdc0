/** All heads of all layers, each as a small map; one is opened. */

import { h, s } from "./elements.js";
import { heat } from "./heat.js";
import { stepped } from "./keys.js";
import { is_off, open } from "./opened.js";
import { panel } from "./panel.js";
import { attentions, axes, spoken } from "./parts.js";
import { unless_stale } from "./results.js";

const HELP = "Every square is one head: its rows look at its columns, the more the stronger the colour. Open one.";
const LEFT = 62; // pixels for the names of rows
const HEAD = 20; // and for that of a group
const GAP = 4;

const GROUPS = {
  "self_attention": "Self-attention: tokens look at tokens",
  "encoder/self_attention": "Encoder: source looks at source",
  "decoder/self_attention": "Decoder: target looks at target",
  "decoder/cross_attention": "Cross: target looks at source",
};

/** @param {import("./page.js").Page} page */
export function attention_grid(page) {
  const { store, description } = page;
  const names = by_group(attentions(description));
  const { picture, cells } = drawn(description, names);
  const draw = async () => {
    const result = store.get("result");
    if (result === null) return;
    const known = names.map((name) => `${name}/weights` in result.pass.names && unless_stale(result.maps(name)));
    const maps = await Promise.all(known);
    if (maps.includes(null) || result !== store.get("result")) return;
    const { off } = result;
    names.forEach((name, row) => show_maps(cells[row], name, maps[row], { off, keys: keys(result, name) }));
  };
  const keys = ({ pass }, name) => pass[axes(description, name).keys].length;
  const mark = () => {
    const { name, head } = store.get("attention");
    names.forEach((own, row) => cells[row].forEach((cell, at) => select(cell, own === name && at === head)));
  };
  const at = (element) => element.closest("[data-cell]")?.dataset.cell.split(" ").map(Number);
  const choose = ([row, head]) => open(page, names[row], head);
  // The frame listens: a picture that listens for the focus is a stop of the tab key by itself.
  const frame = h("div", { class: "frame" }, picture);
  frame.addEventListener("click", ({ target }) => at(target) && choose(at(target)));
  frame.addEventListener("keydown", (event) => {
    const here = at(event.target);
    const next = here && stepped(event, here, [names.length, description.heads]);
    if (next) cells[next[0]][next[1]].focus();
    if (!here || (event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    choose(here);
  });
  frame.addEventListener("focusin", ({ target }) => {
    if (at(target)) for (const cell of cells.flat()) cell.setAttribute("tabindex", cell === target ? 0 : -1);
  });
  store.on(["result", "theme"], draw);
  store.on(["attention"], mark);
  mark();
  const about = { name: "attention_grid", title: "Attention: all heads", help: HELP, picture: () => picture };
  return panel(about, frame);
}

/** The encoder's attentions, then those of the decoder to itself, then those to the source. */
function by_group(names) {
  return Object.keys(GROUPS).flatMap((group) => names.filter((name) => group_of(name) === group));
}

function group_of(name) {
  return name.replace(/\d+\//, "");
}

/** The picture without its maps, and the elements of its cells by row and head. */
function drawn({ heads }, names) {
  const size = Math.min(64, Math.max(26, Math.min(Math.floor(560 / heads), Math.floor(460 / names.length)) - GAP));
  const labels = [];
  const rows = [];
  let y = 0;
  names.forEach((name, row) => {
    const group = group_of(name);
    if (row === 0 || group !== group_of(names[row - 1])) {
      labels.push(s("text", { x: 0, y: y + HEAD - 6, class: "group" }, GROUPS[group]));
      if (row === 0) labels.push(head_numbers(heads, size, y));
      y += row === 0 ? 2 * HEAD - 6 : HEAD;
    }
    labels.push(s("text", { x: LEFT - 8, y: y + size / 2 + 4, "text-anchor": "end" }, `layer ${name.match(/\d+/)[0]}`));
    rows.push(Array.from({ length: heads }, (_, head) => cell(row, head, LEFT + head * (size + GAP), y, size)));
    y += size + GAP;
  });
  const width = Math.max(LEFT + heads * (size + GAP), 250);
  const grid = rows.map((cells) => s("g", { role: "row" }, cells));
  const picture = s(
    "svg",
    { viewBox: `0 0 ${width} ${y}`, width, style: { "min-width": `${LEFT + heads * 30}px` } },
    s("g", { "aria-hidden": "true" }, labels),
    s("g", { role: "grid", "aria-label": "Heads: rows are layers, columns are heads" }, grid),
  );
  rows[0][0].setAttribute("tabindex", 0);
  return { picture, cells: rows };
}

function head_numbers(heads, size, y) {
  return Array.from({ length: heads }, (_, head) => {
    const x = LEFT + head * (size + GAP) + size / 2;
    return s("text", { x, y: y + 2 * HEAD - 10, class: "number", "text-anchor": "middle" }, head ? head : "head 0");
  });
}

function cell(row, head, x, y, size) {
  const box = { x: x + 0.5, y: y + 0.5, width: size, height: size };
  return s(
    "g",
    { role: "gridcell", class: "head", tabindex: -1, data: { cell: `${row} ${head}` } },
    s("rect", { class: "ground", ...box }),
    s("image", { ...box, preserveAspectRatio: "none", "image-rendering": "pixelated" }),
    s("path", { class: "strike", d: `M${x} ${y}l${size} ${size}m0 ${-size}l${-size} ${size}`, display: "none" }),
    s("rect", { class: "edge", ...box }),
  );
}

/** The maps of one attention in its cells. @param {false | {shape: number[], data: Float32Array}} maps false: none */
function show_maps(cells, name, maps, { off, keys }) {
  cells.forEach((cell, head) => {
    const is_left_out = is_off(off, name, head);
    const [, image, strike] = cell.children;
    let strongest = "";
    if (maps) {
      const [, rows, columns] = maps.shape;
      const own = maps.data.subarray(head * rows * columns, (head + 1) * rows * columns);
      image.setAttribute("href", heat(own, rows, columns, keys));
      strongest = `, strongest weight ${own.reduce((most, one) => Math.max(most, one), 0).toFixed(2)}`;
    } else image.removeAttribute("href");
    cell.classList.toggle("off", is_left_out);
    strike.setAttribute("display", is_left_out ? "inline" : "none");
    cell.setAttribute("aria-label", `${spoken(`${name}/${head}`)}${is_left_out ? ", switched off" : strongest}`);
  });
}

function select(cell, is_open) {
  cell.classList.toggle("open", is_open);
  cell.setAttribute("aria-selected", is_open);
}
