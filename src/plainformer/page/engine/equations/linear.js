/** The affine map of every projection (`equations.linear`), and the products that it needs. */

import { Tensor } from "../tensor.js";

/**
 * x W + b of each token.
 * @param {Tensor} tokens (token, d_in)
 * @param {Tensor} weight (d_in, d_out)
 * @param {Tensor | null} bias (d_out)
 * @returns {Tensor} (token, d_out)
 */
export function affine(tokens, weight, bias) {
  const y = matmul(tokens, weight);
  if (bias !== null)
    for (let row = 0; row < y.rows; row++) {
      const one = y.row(row);
      for (let out = 0; out < one.length; out++) one[out] += bias.data[out];
    }
  return y;
}

/**
 * a b. Four rows of a are computed together, so that each number of b is read once for all of them.
 * @param {Tensor} a (rows, inner)
 * @param {Tensor} b (inner, outer)
 * @returns {Tensor} (rows, outer)
 */
export function matmul(a, b) {
  const [inner, outer] = b.shape;
  const y = new Float32Array(a.rows * outer);
  const sums = new Float64Array(4 * outer);
  const together = a.rows - (a.rows % 4);
  for (let row = 0; row < together; row += 4) {
    four_rows(a.data, row * inner, b.data, sums.fill(0), inner, outer);
    y.set(sums, row * outer);
  }
  for (let row = together; row < a.rows; row++) {
    const own = sums.subarray(0, outer).fill(0);
    one_row(a.data, row * inner, b.data, own, inner, outer);
    y.set(own, row * outer);
  }
  return new Tensor(y, [...a.shape.slice(0, -1), outer]);
}

/** Adds to four rows of sums (4, outer) the product of four rows of x, of which the first begins at `first`. */
function four_rows(x, first, w, sums, inner, outer) {
  const s0 = sums.subarray(0, outer);
  const s1 = sums.subarray(outer, 2 * outer);
  const s2 = sums.subarray(2 * outer, 3 * outer);
  const s3 = sums.subarray(3 * outer);
  const rows = [first, first + inner, first + 2 * inner, first + 3 * inner];
  for (let i = 0; i < inner; i += 2) {
    const [a0, a1, a2, a3] = rows.map((row) => x[row + i]);
    const [b0, b1, b2, b3] = rows.map((row) => (i + 1 < inner ? x[row + i + 1] : 0));
    const wa = i * outer;
    const wb = i + 1 < inner ? wa + outer : wa;
    for (let out = 0; out < outer; out++) {
      const a = w[wa + out];
      const b = w[wb + out];
      s0[out] += a0 * a + b0 * b;
      s1[out] += a1 * a + b1 * b;
      s2[out] += a2 * a + b2 * b;
      s3[out] += a3 * a + b3 * b;
    }
  }
}

/** Adds to one row of sums (outer) the product of the row of x that begins at `first`: four rows of w at once. */
function one_row(x, first, w, sums, inner, outer) {
  const whole = inner - (inner % 4);
  for (let i = 0; i < whole; i += 4) {
    const x0 = x[first + i];
    const x1 = x[first + i + 1];
    const x2 = x[first + i + 2];
    const x3 = x[first + i + 3];
    const w0 = i * outer;
    const w1 = w0 + outer;
    const w2 = w1 + outer;
    const w3 = w2 + outer;
    for (let out = 0; out < outer; out++)
      sums[out] += x0 * w[w0 + out] + x1 * w[w1 + out] + x2 * w[w2 + out] + x3 * w[w3 + out];
  }
  for (let i = whole; i < inner; i++)
    for (let out = 0; out < outer; out++) sums[out] += x[first + i] * w[i * outer + out];
}

/**
 * a bᵀ, as an embedding's table is used for the output projection: four rows of b at once, each with its own sum.
 * @param {Tensor} a (rows, inner)
 * @param {Tensor} b (outer, inner)
 * @returns {Tensor} (rows, outer)
 */
export function matmul_transposed(a, b) {
  const [outer, inner] = b.shape;
  const y = new Float32Array(a.rows * outer);
  const whole = outer - (outer % 4);
  for (let row = 0; row < a.rows; row++) {
    const x = a.data.subarray(row * inner, (row + 1) * inner);
    for (let out = 0; out < whole; out += 4) four_products(x, b.data, out * inner, y, row * outer + out);
    for (let out = whole; out < outer; out++) y[row * outer + out] = dot(x, b.data, out * inner);
  }
  return new Tensor(y, [...a.shape.slice(0, -1), outer]);
}

/** Four products of x with the four rows of w that begin at `first`, written to y from `at` on. */
function four_products(x, w, first, y, at) {
  const inner = x.length;
  const [w1, w2, w3] = [first + inner, first + 2 * inner, first + 3 * inner];
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  for (let i = 0; i < inner; i++) {
    const xi = x[i];
    s0 += xi * w[first + i];
    s1 += xi * w[w1 + i];
    s2 += xi * w[w2 + i];
    s3 += xi * w[w3 + i];
  }
  y[at] = s0;
  y[at + 1] = s1;
  y[at + 2] = s2;
  y[at + 3] = s3;
}

/**
 * @param {Float32Array} x
 * @param {Float32Array} w
 * @param {number} first where in w the other vector begins
 * @returns {number} Σ x_i w_(first + i)
 */
export function dot(x, w, first = 0) {
  let sum = 0;
  for (let i = 0; i < x.length; i++) sum += x[i] * w[first + i];
  return sum;
}
