/** The head that is open, large: the tokens that look as rows, those that are looked at as columns. */

import { LINE, are_short, room_for, sized, thinned, tick } from "./axis.js";
import { fill, h, s } from "./elements.js";
import { heat } from "./heat.js";
import { stepped } from "./keys.js";
import { head_lists, opened, told, told_largest } from "./opened.js";
import { panel } from "./panel.js";
import { label, spoken } from "./parts.js";

const HELP = "Each row is a token that looks, each column one that is looked at; a row's weights sum to 1.";
const KEYS = "Arrow keys go from cell to cell, Enter follows a row step by step.";
const TURN = -60; // degrees of the labels of columns
const WIDE = 520; // pixels that the cells take at most, as long as each has one

/** @param {import("./page.js").Page} page */
export function attention_map(page) {
  const view = new HeadMap(page);
  const about = { name: "attention_map", title: "Attention: one head", help: HELP, picture: () => view.picture };
  const every = h("input", { type: "checkbox", id: "attention_map-every", on: { change: () => view.draw() } });
  view.every = every;
  view.choice = h("span", { class: "every" }, every, h("label", { for: every.id }, "every token's label"));
  const lists = head_lists(page, about.name);
  lists.append(view.choice);
  return panel(about, lists, view.frame, view.said);
}

class HeadMap {
  constructor(page) {
    this.page = page;
    this.picture = s("svg", {});
    this.said = h("output", { class: "readout", id: "attention_map-value" });
    const on = {
      pointermove: (event) => this.point(this.cell_at(event)),
      pointerleave: () => this.point(null),
      click: (event) => this.follow(this.cell_at(event)?.[0] ?? this.row_of(event.target)),
      keydown: (event) => this.walk(event),
      blur: () => this.point(null),
    };
    this.frame = h("div", { class: "frame", tabindex: 0, role: "application", on }, this.picture);
    this.cell = null; // row and column that are pointed at here
    page.store.on(["result", "attention", "theme"], () => this.draw());
    page.store.on(["hover", "query"], () => this.mark());
  }

  async draw() {
    const shown = await opened(this.page);
    if (shown === null) return;
    this.shown = shown;
    this.cell = null;
    const { name, head, queries, keys, sides, weights } = shown;
    this.frame.setAttribute("aria-label", `Weights of ${spoken(`${name}/${head}`)}. ${KEYS}`);
    this.lay_out(queries, keys);
    const { left, top, steps } = this;
    const [rows, columns] = [queries.length, keys.length];
    const box = { x: left, y: top, width: columns * steps[1], height: rows * steps[0] };
    const every = steps.map(thinned);
    this.marks = s("g", { class: "marks" });
    sized(this.picture, this.width, this.height);
    fill(
      this.picture,
      s("rect", { class: "ground", ...box }),
      weights && s("image", { ...image_of(weights, rows, columns, box) }),
      s("rect", { class: "edge", ...box }),
      queries.map((view, row) => row % every[0] === 0 && this.row_tick(view, sides.queries, row)),
      keys.map((view, column) => column % every[1] === 0 && this.column_tick(view, sides.keys, column)),
      this.marks,
    );
    this.frame.classList.toggle("off", shown.is_off);
    this.mark();
  }

  /** How large everything is, in pixels. */
  lay_out(queries, keys) {
    const [row, column] = [queries, keys].map(({ length }) => Math.max(1, Math.min(34, Math.floor(WIDE / length))));
    const fitting = [Math.min(row, 2 * column), Math.min(column, 2 * row)];
    this.choice.hidden = Math.min(...fitting) >= LINE;
    this.steps = fitting.map((step) => (this.every.checked ? Math.max(LINE, step) : step)); // of rows, of columns
    this.left = room_for(queries);
    const [slope, rise] = [Math.cos((TURN * Math.PI) / 180), -Math.sin((TURN * Math.PI) / 180)];
    const room = room_for(keys);
    this.turn = are_short(keys, this.steps[1]) ? 0 : TURN;
    this.top = this.turn ? Math.ceil(room * rise) + 6 : LINE + 4;
    this.width = this.left + keys.length * this.steps[1] + (this.turn ? Math.ceil(room * slope) : 2);
    this.height = this.top + queries.length * this.steps[0] + 2;
  }

  row_tick(view, side, row, lit = false) {
    const [x, y] = [this.left - 5, this.top + (row + 0.5) * this.steps[0]];
    return tick(view, side, row, { x, y, anchor: "end", lit });
  }

  column_tick(view, side, column, lit = false) {
    const x = this.left + (column + 0.5) * this.steps[1];
    const way = this.turn ? { y: this.top - 6, turn: TURN } : { y: this.top - 2 - LINE / 2, anchor: "middle" };
    return tick(view, side, column, { x, ...way, lit });
  }

  /** The row that is followed, and what is pointed at, here or elsewhere. */
  mark() {
    if (!this.shown) return;
    const { sides, queries, keys } = this.shown;
    const { left, top, steps } = this;
    const [rows, columns] = [queries.length, keys.length];
    const hover = this.page.store.get("hover");
    const hovered = (side, count) => (hover?.side === side && hover.index < count ? hover.index : null);
    const [row, column] = this.cell ?? [hovered(sides.queries, rows), hovered(sides.keys, columns)];
    const followed = this.followed;
    const across = (at, kind) => at !== null && around(kind, left, top + at * steps[0], columns * steps[1], steps[0]);
    const down = (at, kind) => at !== null && around(kind, left + at * steps[1], top, steps[1], rows * steps[0]);
    fill(
      this.marks,
      across(followed, "followed"),
      [across(row, "cross"), down(column, "cross")],
      row !== null && this.row_tick(queries[row], sides.queries, row, true),
      column !== null && this.column_tick(keys[column], sides.keys, column, true),
    );
    fill(this.said, this.words(row ?? followed));
  }

  get followed() {
    return Math.min(this.page.store.get("query"), this.shown.queries.length - 1);
  }

  /** What the cell that is pointed at holds, or the largest of a row. */
  words(row) {
    const { queries, keys, weights, is_off } = this.shown;
    if (weights === null) return "This part is switched off: it looks at nothing.";
    const off = is_off ? "Switched off, so nothing of it is used. " : "";
    const columns = keys.length;
    if (this.cell) {
      const [query, key] = this.cell;
      return [off, told(queries[query], keys[key], weights[query * columns + key])];
    }
    const own = weights.subarray(row * columns, (row + 1) * columns);
    return [off, h("bdi", {}, label(queries[row])), " looks most at ", told_largest(own, keys, 3)];
  }

  /** @returns {[number, number] | null} row and column under the pointer */
  cell_at({ clientX, clientY }) {
    if (!this.shown) return null;
    const frame = this.picture.getBoundingClientRect();
    const scale = this.width / frame.width;
    const row = Math.floor(((clientY - frame.top) * scale - this.top) / this.steps[0]);
    const column = Math.floor(((clientX - frame.left) * scale - this.left) / this.steps[1]);
    const is_inside = row >= 0 && column >= 0 && row < this.shown.queries.length && column < this.shown.keys.length;
    return is_inside ? [row, column] : null;
  }

  /** The row whose label this is. */
  row_of(element) {
    const said = element.closest("[data-token]")?.dataset.token.split(":");
    return said?.[0] === this.shown?.sides.queries ? Number(said[1]) : undefined;
  }

  point(cell) {
    if (`${cell}` === `${this.cell}`) return;
    this.cell = cell;
    const hover = cell && { side: this.shown.sides.queries, index: cell[0] };
    const now = this.page.store.get("hover");
    if (cell && hover.side === now?.side && hover.index === now.index) this.mark();
    else if (cell || now) this.page.store.set({ hover });
    else this.mark();
  }

  follow(row) {
    if (row !== undefined) this.page.store.set({ query: row });
  }

  walk(event) {
    if (!this.shown) return;
    const { queries, keys } = this.shown;
    if (event.key === "Enter") return this.follow(this.cell?.[0]);
    const next = stepped(event, this.cell ?? [this.followed, -1], [queries.length, keys.length]);
    if (next === null) return;
    const cell = [next[0], Math.max(0, next[1])];
    this.point(cell);
    const [x, y] = [this.left + cell[1] * this.steps[1], this.top + cell[0] * this.steps[0]];
    const { clientWidth, clientHeight } = this.frame;
    this.frame.scrollTo(x - clientWidth / 2, y - clientHeight / 2);
  }
}

function image_of(weights, rows, columns, box) {
  const way = { preserveAspectRatio: "none", "image-rendering": "pixelated" };
  return { href: heat(weights, rows, columns), ...box, ...way };
}

/** A frame beside what it is around. */
function around(kind, x, y, width, height) {
  return s("rect", { class: kind, x: x - 1, y: y - 1, width: width + 2, height: height + 2 });
}
