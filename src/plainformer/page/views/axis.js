/** Tokens along the axes of a picture: as many as there is room for. */

import { fitted, text_width } from "./cells.js";
import { s } from "./elements.js";
import { belongs } from "./hover.js";
import { label } from "./parts.js";

/** @typedef {import("../engine/tokenizer/tokenizer.js").TokenView} TokenView */

export const LINE = 13; // pixels that a label needs
const LONGEST = 110;
const SMALLEST = 0.8; // of its size, a picture can be read

/** Pixels that the longest of these labels takes, and the space beside it. @param {TokenView[]} views */
export function room_for(views) {
  return Math.ceil(longest(views)) + 10;
}

/** Whether labels fit side by side, `step` pixels each, without being turned. @param {TokenView[]} views */
export function are_short(views, step) {
  return longest(views) < step;
}

function longest(views) {
  return Math.max(...Array.from(new Set(views.map(label)), (text) => Math.min(LONGEST, text_width(text))));
}

/**
 * A token at a place of an axis; what belongs to it lights up with it.
 * @param {TokenView} view
 * @param {"source" | "target"} side
 * @param {number} index
 * @param {object} at
 * @param {number} at.x where the text begins or ends, or its middle
 * @param {number} at.y the middle of the line
 * @param {"start" | "middle" | "end"} [at.anchor]
 * @param {number} [at.turn] degrees
 * @param {boolean} [at.lit] as what is pointed at
 * @returns {SVGElement}
 */
export function tick(view, side, index, { x, y, anchor = "start", turn = 0, lit = false }) {
  const text = fitted(label(view), LONGEST);
  const width = text_width(text) + 6;
  const left = { start: x - 3, middle: x - width / 2, end: x - width + 3 }[anchor];
  const kind = lit ? "tick pointed" : "tick";
  return s(
    "g",
    { data: belongs(side, index), class: kind, transform: turn !== 0 && `rotate(${turn} ${x} ${y})` },
    s("rect", { x: left, y: y - LINE / 2, width, height: LINE, rx: 2 }),
    s("text", { x, y: y + 4, "text-anchor": anchor }, text),
  );
}

/** A picture of so many pixels, which becomes smaller where there is less room. */
export function sized(picture, width, height) {
  picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
  picture.setAttribute("width", width);
  picture.style.setProperty("min-width", `${Math.min(width, Math.max(280, width * SMALLEST))}px`);
}

/** Every so many tokens have a label, if each has `step` pixels. */
export function thinned(step) {
  return Math.max(1, Math.ceil(LINE / step));
}
