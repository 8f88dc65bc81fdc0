/** The head that is open as lines between tokens, the stronger the more one looks at the other. */

import { LINE, room_for, sized, thinned, tick } from "./axis.js";
import { fill, h, s } from "./elements.js";
import { shade } from "./heat.js";
import { stepped } from "./keys.js";
import { largest, opened, told_largest } from "./opened.js";
import { panel } from "./panel.js";
import { label, spoken } from "./parts.js";

const HELP = "Tokens at the left look at tokens at the right. Point at one to see its lines alone.";
const KEYS = "Arrow keys go from token to token.";
const BETWEEN = 180; // pixels that lines cross
const HIGH = 560; // pixels of the columns, as long as each token has one
const LINES = 300; // that are drawn of all tokens together, as long as each has one
const OF_ONE = 40; // and of one
const FAINTEST = 0.04;

/** @param {import("./page.js").Page} page */
export function attention_lines(page) {
  const view = new Lines(page);
  const about = { name: "attention_lines", title: "Attention: lines", help: HELP, picture: () => view.picture };
  return panel(about, view.frame, view.said);
}

class Lines {
  constructor(page) {
    this.page = page;
    this.picture = s("svg", {});
    this.said = h("output", { class: "readout", id: "attention_lines-value" });
    const on = {
      pointermove: (event) => this.point(this.token_at(event)),
      pointerleave: () => this.point(null),
      keydown: (event) => this.walk(event),
      blur: () => this.point(null),
    };
    this.frame = h("div", { class: "frame", tabindex: 0, role: "application", on }, this.picture);
    this.pointed = null; // column (0 looks, 1 is looked at) and index of what is pointed at here
    page.store.on(["result", "attention"], () => this.draw());
    page.store.on(["hover", "query"], () => this.mark());
  }

  async draw() {
    const shown = await opened(this.page);
    if (shown === null) return;
    const { name, head, queries, keys, sides } = shown;
    const most = Math.max(queries.length, keys.length);
    Object.assign(this, { shown, pointed: null, high: most * Math.max(1, Math.min(26, Math.floor(HIGH / most))) });
    this.frame.setAttribute("aria-label", `Lines of ${spoken(`${name}/${head}`)}. ${KEYS}`);
    this.columns = [queries, keys];
    this.sides = [sides.queries, sides.keys];
    this.x = [room_for(queries), room_for(queries) + BETWEEN];
    this.steps = this.columns.map(({ length }) => this.high / length);
    this.shade = shade(keys.length);
    sized(this.picture, this.x[1] + room_for(keys), this.high + LINE);
    const every = this.steps.map(thinned);
    const ticks = (column) => this.columns[column].map((_, at) => at % every[column] === 0 && this.tick(column, at));
    this.marks = s("g", { class: "marks" });
    this.all = s("g", { class: "all" }, this.strongest());
    this.ticks = s("g", { class: "ticks" }, ticks(0), ticks(1));
    this.is_thin = Math.max(...every) > 1;
    fill(this.picture, this.all, this.ticks, this.marks);
    this.frame.classList.toggle("off", shown.is_off);
    this.mark();
  }

  tick(column, at, lit = false) {
    const x = this.x[column] + (column ? 6 : -6);
    const place = { x, y: this.y(column, at), anchor: column ? "start" : "end", lit };
    return tick(this.columns[column][at], this.sides[column], at, place);
  }

  y(column, at) {
    return LINE / 2 + (at + 0.5) * this.steps[column];
  }

  line(query, key, weight) {
    const ends = { x1: this.x[0], y1: this.y(0, query), x2: this.x[1], y2: this.y(1, key) };
    return s("line", { ...ends, "stroke-opacity": this.shade(weight).toFixed(3) });
  }

  /** The strongest lines of each token. */
  strongest() {
    const { weights, queries, keys } = this.shown;
    if (weights === null) return [];
    const least = Math.min(FAINTEST, 2 / keys.length);
    const strong = weights.map((one) => (one < least ? 0 : one));
    const count = Math.max(1, Math.floor(LINES / queries.length));
    return queries.flatMap((_, query) => {
      const own = strong.subarray(query * keys.length, (query + 1) * keys.length);
      return largest(own, count).map((key) => this.line(query, key, own[key]));
    });
  }

  /** The lines of what is pointed at, here or elsewhere, alone. */
  mark() {
    if (!this.shown) return;
    const { weights, queries, keys } = this.shown;
    const pointed = this.pointed ?? this.from_hover(this.page.store.get("hover"));
    this.all.classList.toggle("faint", pointed !== null);
    this.ticks.classList.toggle("faint", pointed !== null && this.is_thin);
    if (weights === null || pointed === null) {
      fill(this.marks);
      return fill(this.said, weights === null ? "This part is switched off: it looks at nothing." : this.followed());
    }
    const [column, at] = pointed;
    const own = column
      ? weights.filter((_, cell) => cell % keys.length === at)
      : weights.subarray(at * keys.length, (at + 1) * keys.length);
    const others = largest(own, OF_ONE);
    const lines = others.map((other) => this.line(...(column ? [other, at] : [at, other]), own[other]));
    fill(this.marks, lines, this.tick(column, at, true), this.apart(others, 1 - column));
    const way = column ? " is looked at by " : " looks at ";
    const named = h("bdi", {}, label(this.columns[column][at]));
    fill(this.said, named, way, told_largest(own, column ? queries : keys, 4));
  }

  followed() {
    const { queries, keys, weights } = this.shown;
    const row = Math.min(this.page.store.get("query"), queries.length - 1);
    const own = weights.subarray(row * keys.length, (row + 1) * keys.length);
    return [h("bdi", {}, label(queries[row])), " looks at ", told_largest(own, keys, 4)];
  }

  /** Labels of those of these tokens that do not cover each other, the first ones first. */
  apart(tokens, column) {
    const kept = [];
    const is_apart = (one) => kept.every((other) => Math.abs(other - one) * this.steps[column] >= LINE);
    for (const one of tokens) if (is_apart(one)) kept.push(one);
    return kept.map((one) => this.tick(column, one));
  }

  from_hover(hover) {
    const column = this.sides.indexOf(hover?.side);
    return column < 0 || hover.index >= this.columns[column].length ? null : [column, hover.index];
  }

  /** @returns {[number, number] | null} the token at whose height the pointer is, on its half */
  token_at({ clientX, clientY }) {
    if (!this.shown) return null;
    const frame = this.picture.getBoundingClientRect();
    const scale = this.picture.viewBox.baseVal.width / frame.width;
    const column = (clientX - frame.left) * scale < this.x[0] + BETWEEN / 2 ? 0 : 1;
    const at = Math.floor(((clientY - frame.top) * scale - LINE / 2) / this.steps[column]);
    return at >= 0 && at < this.columns[column].length ? [column, at] : null;
  }

  point(pointed) {
    if (`${pointed}` === `${this.pointed}`) return;
    this.pointed = pointed;
    const { store } = this.page;
    const hover = pointed && { side: this.sides[pointed[0]], index: pointed[1] };
    const now = store.get("hover");
    if (hover?.side === now?.side && hover?.index === now?.index) this.mark();
    else store.set({ hover });
  }

  walk(event) {
    if (!this.shown) return;
    const [column, at] = this.pointed ?? [0, -1];
    const most = Math.max(...this.columns.map(({ length }) => length));
    const next = stepped(event, [at, column], [most, 2]);
    if (next === null) return;
    const token = Math.max(0, Math.min(next[0], this.columns[next[1]].length - 1));
    this.point([next[1], token]);
    this.frame.scrollTo(this.frame.scrollLeft, this.y(next[1], token) - this.frame.clientHeight / 2);
  }
}
