/** A map of weights as a picture: each cell is ink, as opaque as its weight. */

import { ink } from "./theme.js";

/**
 * @param {ArrayLike<number>} weights (rows, columns), each 0 to 1
 * @param {number} rows
 * @param {number} columns
 * @returns {string} a PNG of one pixel a cell, as a URL
 */
export function heat(weights, rows, columns) {
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(columns, rows);
  const [red, green, blue] = ink();
  for (let cell = 0; cell < rows * columns; cell++) {
    picture.data[4 * cell] = red;
    picture.data[4 * cell + 1] = green;
    picture.data[4 * cell + 2] = blue;
    picture.data[4 * cell + 3] = Math.round(255 * weights[cell]);
  }
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
