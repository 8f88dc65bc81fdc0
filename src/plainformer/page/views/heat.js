/** A map of weights as a picture: each cell is ink, the more opaque the larger its weight. */

import { ink } from "./theme.js";

const EVEN = 0.125; // the opacity of each weight where a token looks evenly at all of a long text

/**
 * How opaque a weight is. Weights of n keys are around 1/n, which could not be seen in a long text: 1/n is as opaque
 * there as 1/8 among eight keys. Up to those, the opacity is the weight.
 * @param {number} keys
 * @returns {(weight: number) => number} 0 at 0, 1 at 1
 */
export function shade(keys) {
  const power = keys * EVEN <= 1 ? 1 : Math.log(EVEN) / Math.log(1 / keys);
  return power === 1 ? (weight) => weight : (weight) => weight ** power;
}

/**
 * @param {ArrayLike<number>} weights (rows, columns), each 0 to 1
 * @param {number} rows
 * @param {number} columns
 * @param {number} [keys] that the weights of a row are of, where columns stand for several
 * @returns {string} a PNG of one pixel a cell, as a URL
 */
export function heat(weights, rows, columns, keys = columns) {
  const opacity = shade(keys);
  const canvas = document.createElement("canvas");
  Object.assign(canvas, { width: columns, height: rows });
  const pen = canvas.getContext("2d");
  const picture = pen.createImageData(columns, rows);
  const [red, green, blue] = ink();
  for (let cell = 0; cell < rows * columns; cell++) {
    picture.data[4 * cell] = red;
    picture.data[4 * cell + 1] = green;
    picture.data[4 * cell + 2] = blue;
    picture.data[4 * cell + 3] = Math.round(255 * opacity(weights[cell]));
  }
  pen.putImageData(picture, 0, 0);
  return canvas.toDataURL();
}
