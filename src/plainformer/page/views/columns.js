/** A picture of columns: a head, and under it what could stand there, the most probable first. */

import { CELL, cell } from "./cells.js";
import { s } from "./elements.js";

/**
 * @typedef {object} Entry of a column
 * @property {string} text
 * @property {string} note
 * @property {number} shade 0 to 1
 * @property {string} said
 * @property {string} [kind] classes
 * @property {(() => void) | null} [press]
 * @property {object} [data]
 *
 * @typedef {object} Column
 * @property {number} place
 * @property {Entry} head
 * @property {Entry[]} entries
 * @property {object} [data] of all of it
 */

/**
 * @param {string} label of the picture
 * @param {Column[]} columns
 * @param {number} place that is explained
 * @returns {SVGElement}
 */
export function columns_picture(label, columns, place) {
  const rows = Math.max(...columns.map(({ entries }) => entries.length));
  const [width, height] = [columns.length * CELL.width, (rows + 1) * CELL.height + 4];
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": label },
    columns.map((column, x) => drawn(column, x * CELL.width, column.place === place)),
  );
}

function drawn({ place, head, entries, data = {} }, x, is_here) {
  const [width, height] = [CELL.width, CELL.height];
  const kind = is_here ? "head here" : "head";
  return s(
    "g",
    { class: "column", data },
    cell({ ...head, at: [place, 0], box: [x, 0, width, height], kind }),
    entries.map((entry, at) =>
      cell({ ...entry, at: [place, at + 1], box: [x, (at + 1) * height + 4, width, height] }),
    ),
  );
}
