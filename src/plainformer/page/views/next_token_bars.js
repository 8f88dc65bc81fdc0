/** The picture of the next token's probabilities: a bar for each, patterned by the setting that cut it. */

import { s } from "./elements.js";
import { label, percent } from "./parts.js";

const [ROW, LABEL, SAID] = [24, 72, 150]; // pixels: height of a row, width of the tokens and of what is said of them

/** The settings that cut, as they are said, and the pattern of each. */
export const CUTS = {
  temperature: { said: "temperature 0", d: "M0 2H8M0 6H8" },
  top_k: { said: "top-k", d: "M-2 2L2 -2M0 8L8 0M6 10L10 6" },
  top_p: { said: "top-p", d: "M1 2H3M5 6H7" },
  min_p: { said: "min-p", d: "M2 0V8M6 0V8" },
};

/** @returns {SVGElement} the patterns, to fill with `pattern_of` */
export function patterns() {
  const all = Object.entries(CUTS).map(([name, { d }]) =>
    s(
      "pattern",
      { id: `next_token-cut-${name}`, width: 8, height: 8, patternUnits: "userSpaceOnUse" },
      s("path", { class: "hatch", d }),
    ),
  );
  return s("defs", {}, all);
}

export function pattern_of(setting) {
  return `url(#next_token-cut-${setting})`;
}

/** A token's row in words. */
export function said_of({ probability, drawn, cut }) {
  if (cut !== null) return `${percent(probability)}, cut by ${CUTS[cut].said}`;
  return `${percent(probability)}, drawn ${percent(drawn)}`;
}

/**
 * @param {import("./results.js").Result} result of a language model
 * @param {number} most rows, beside that of the token that was drawn
 * @param {number} room pixels that the picture may be wide
 * @param {boolean} can_write whether a row is a button, which writes its token
 * @returns {SVGElement} rows have the token's id in their data
 */
export function draw_bars(result, most, room, can_write) {
  const { predictions, token } = result.step;
  const rows = predictions.filter(({ id }, place) => place < most || id === token);
  const width = Math.min(Math.max(room, 280), 760);
  const long = width - LABEL - SAID - 16;
  const scale = long / Math.max(...rows.map(({ probability, drawn }) => Math.max(probability, drawn)), 1e-9);
  const height = rows.length * ROW + 2;
  const place_of = (at) => ({ y: at * ROW + 1, width, scale, is_first: at === 0, can_write });
  const drawn = rows.map((one, at) => bar(result, one, place_of(at)));
  const size = { width, height, viewBox: `0 0 ${width} ${height}` };
  return s("svg", { ...size, role: "group", "aria-label": "Next tokens, the most probable first" }, patterns(), drawn);
}

function bar(result, one, { y, width, scale, is_first, can_write }) {
  const { id, probability, drawn, cut } = one;
  const [is_drawn, name] = [id === result.step.token, label(result.token(id))];
  const said = `${name}: ${said_of(one)}${is_drawn ? "; this one was drawn" : ""}${can_write ? ". Write it" : ""}`;
  const own = { role: can_write ? "button" : "img", tabindex: is_first ? 0 : -1, "aria-label": said, data: { id } };
  const [x, end] = [LABEL + 8, width - 4];
  return s(
    "g",
    { class: `bar${is_drawn ? " drawn" : ""}${cut ? " cut" : ""}`, ...own },
    s("rect", { class: "ground", x: 1, y: y + 1, width: width - 2, height: ROW - 3, rx: 4 }),
    s("text", { x: LABEL, y: y + 16, "text-anchor": "end" }, `${is_drawn ? "▸ " : ""}${name}`),
    s("rect", { class: "probability", x, y: y + 4, width: Math.max(1, probability * scale), height: cut ? 15 : 8 }),
    cut && s("rect", { fill: pattern_of(cut), x, y: y + 4, width: Math.max(1, probability * scale), height: 15 }),
    !cut && s("rect", { class: "chance", x, y: y + 13, width: Math.max(1, drawn * scale), height: 6 }),
    s("text", { class: "amount", x: end, y: y + 16, "text-anchor": "end" }, said_of(one)),
  );
}
