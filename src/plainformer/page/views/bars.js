/** A picture of bars, one below the other: a name, a bar from zero to the left or the right, a number. */

import { fitted, pressed } from "./cells.js";
import { s } from "./elements.js";

const ROW = 24; // pixels; a finger needs as many
const NUMBER = 66;
const INDENT = 16;

/**
 * @typedef {object} Bar
 * @property {string} text
 * @property {number} value
 * @property {string} note the value as it is shown
 * @property {string} said all of it in words
 * @property {string} [kind] classes
 * @property {number} [indent] how deep it stands under another
 * @property {boolean} [expanded] of one that has others under it: whether these are shown
 * @property {boolean} [selected] of one that can be chosen: whether it is
 * @property {(() => void) | null} [press]
 *
 * @typedef {object} Group of bars that are as long as their values, compared with each other
 * @property {string} [title]
 * @property {Bar[]} bars
 * @property {number} [most] the value whose bar takes all the room; the largest, if not given
 */

/**
 * @param {string} label of the picture
 * @param {Group[]} groups
 * @param {number} width in pixels
 * @returns {SVGElement}
 */
export function bars_picture(label, groups, width) {
  let row = 0;
  const drawn = groups.flatMap(({ title, bars, most }) => {
    const heading = title === undefined ? [] : [s("text", { class: "title", x: 4, y: row++ * ROW + 17 }, title)];
    const first = row;
    row += bars.length;
    return [...heading, ...group(bars, first, { width, ...scale(bars, width, most) })];
  });
  const height = row * ROW + 2;
  return s(
    "svg",
    { class: "bars", viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label },
    drawn,
  );
}

/** Where zero is, and pixels for each unit. */
function scale(bars, width, most = 0) {
  const side = Math.min(210, Math.max(172, width * 0.42));
  const values = bars.map(({ value }) => value);
  const [low, high] = [Math.min(0, ...values), Math.max(most, 0, ...values)];
  const unit = (width - side - NUMBER) / (high - low || 1);
  return { side, unit, zero: side - low * unit };
}

function group(bars, first, at) {
  const [top, bottom] = [first * ROW, (first + bars.length) * ROW];
  const line = s("line", { class: "zero", x1: at.zero, x2: at.zero, y1: top, y2: bottom });
  return [...bars.map((bar, row) => drawn_bar(bar, first + row, at)), line];
}

function drawn_bar({ text, value, note, said, kind = "", indent = 0, expanded, selected, press }, row, at) {
  const [y, length] = [row * ROW + 1, Math.abs(value) * at.unit];
  const [left, sign] = [4 + indent * INDENT, expanded === undefined ? "" : expanded ? "▾ " : "▸ "];
  const of_group = {
    class: `bar ${kind}${selected ? " chosen" : ""}`,
    "aria-label": said,
    "aria-expanded": expanded === undefined ? null : String(expanded),
    "aria-pressed": selected === undefined ? null : String(selected),
    data: { cell: `0 ${row}` },
  };
  const bar = s(
    "g",
    of_group,
    s("title", {}, said),
    s("rect", { class: "ground", x: 1, y, width: at.width - 2, height: ROW - 1, rx: 3 }),
    s("text", { x: left, y: y + 16 }, fitted(sign + text, at.side - left - 4)),
    s("rect", {
      ...{ class: value < 0 ? "minus" : "plus", y: y + 6, width: length, height: ROW - 13 },
      x: value < 0 ? at.zero - length : at.zero,
    }),
    s("text", { class: "number", x: at.width - 4, y: y + 16, "text-anchor": "end" }, note),
  );
  return pressed(bar, press);
}

/** A number with its sign: "+1.234". */
export function signed(value, digits = 3) {
  return `${value < 0 ? "−" : "+"}${Math.abs(value).toFixed(digits)}`;
}
