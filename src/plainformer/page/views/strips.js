/** Vectors as strips of colour, and numbers as bars: small pictures in SVG, with a label before and a number behind. */

import { s } from "./elements.js";
import { belongs } from "./hover.js";

const WIDTH = 360; // of a picture, which a phone shows unscaled
const [FROM, TO] = [104, 296]; // where strips and bars stand
const PITCH = 20; // from one row to the next
const HEIGHT = 14; // of a strip
const LETTERS = 13; // of a label

/**
 * @typedef {object} Row
 * @property {string} label
 * @property {string} said the number behind it
 * @property {{side: "source" | "target", index: number}} [token] that it belongs to
 * @property {boolean} [is_apart] whether a line is drawn above
 * @property {ArrayLike<number>} [strip]
 * @property {{value: number, pale?: number}} [bar]
 * @property {boolean} [is_masked] nothing but a dotted box
 */

/**
 * @param {Row[]} rows
 * @param {string} name what the picture shows, for a reader of screens
 * @param {{least?: number, most?: number}} [range] of bars
 * @returns {SVGElement}
 */
export function rows_picture(rows, name, range = {}) {
  const height = rows.length * PITCH + 6;
  const values = rows.flatMap(({ bar }) => (bar ? [bar.value, bar.pale ?? 0] : []));
  const [least, most] = [Math.min(range.least ?? 0, ...values), Math.max(range.most ?? 1e-9, ...values)];
  const x = (value) => FROM + ((value - least) / (most - least)) * (TO - FROM);
  const picture = s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": name, class: "rows" });
  if (values.length) picture.append(s("line", { class: "axis", x1: x(0), x2: x(0), y1: 2, y2: height - 2 }));
  rows.forEach((row, at) => picture.append(...drawn(row, at * PITCH + 3, x)));
  picture.append(...strips(rows));
  return picture;
}

function drawn({ label, said, token, bar, is_apart, is_masked }, top, x) {
  const middle = top + HEIGHT / 2;
  const [data, y] = [token ? belongs(token.side, token.index) : {}, middle + 4];
  const found = [
    token && s("rect", { class: "under", x: 0, y: top - 2, width: WIDTH, height: PITCH - 2, data }),
    s("text", { x: FROM - 6, y, "text-anchor": "end" }, shortened(label)),
    s("text", { class: "amount", x: TO + 62, y, "text-anchor": "end" }, said),
  ];
  if (is_apart) found.push(s("line", { class: "axis", x1: 0, x2: WIDTH, y1: top - 3, y2: top - 3 }));
  if (is_masked) found.push(s("rect", { class: "masked", x: FROM, y: top, width: TO - FROM, height: HEIGHT }));
  if (bar?.pale !== undefined) found.push(box("pale", x, bar.pale, top, HEIGHT));
  if (bar) found.push(box(bar.value < 0 ? "minus" : "plus", x, bar.value, top + 2, HEIGHT - 4));
  return found.filter(Boolean);
}

function box(kind, x, value, y, height) {
  const [from, to] = [Math.min(x(0), x(value)), Math.max(x(0), x(value))];
  return s("rect", { class: kind, x: from, y, width: Math.max(to - from, 0.5), height });
}

/** One image for every run of strips of the same width: a canvas has its cells, the picture stretches it. */
function strips(rows) {
  const widths = [...new Set(rows.filter(({ strip }) => strip).map(({ strip }) => strip.length))];
  return widths.map((width) => {
    const own = rows.map(({ strip }) => (strip?.length === width ? strip : null));
    const [height, x] = [rows.length * PITCH, FROM];
    const rendering = { preserveAspectRatio: "none", "image-rendering": width > TO - FROM ? "auto" : "pixelated" };
    return s("image", { x, y: 3, width: TO - FROM, height, href: painted(own, width), ...rendering });
  });
}

/** @param {(ArrayLike<number> | null)[]} rows @returns {string} the address of an image */
function painted(rows, width) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width, height: rows.length * PITCH });
  const [pen, style] = [canvas.getContext("2d"), getComputedStyle(document.documentElement)];
  const [plus, minus] = ["--plus", "--minus"].map((name) => style.getPropertyValue(name).trim());
  const most = strongest(rows.filter(Boolean));
  rows.forEach((row, at) => {
    if (row === null) return;
    for (let i = 0; i < width; i++) {
      pen.globalAlpha = 0.06 + (0.94 * Math.abs(row[i])) / most;
      pen.fillStyle = row[i] < 0 ? minus : plus;
      pen.fillRect(i, at * PITCH, 1, HEIGHT);
    }
  });
  return canvas.toDataURL();
}

/** @param {ArrayLike<number>[]} vectors @returns {number} the largest size of a number in them */
export function strongest(vectors) {
  let most = 1e-12;
  for (const vector of vectors) for (let i = 0; i < vector.length; i++) most = Math.max(most, Math.abs(vector[i]));
  return most;
}

function shortened(label) {
  const letters = [...label];
  return letters.length > LETTERS ? `${letters.slice(0, LETTERS - 1).join("")}…` : label;
}
