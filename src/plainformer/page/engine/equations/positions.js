/**
 * Where a token stands (`equations.positions`): sinusoidal encodings (section 3.5), and schemes within attention: the
 * rotation of queries and keys (Su et al. 2021), linear biases of scores (ALiBi, Press et al. 2021).
 */

import { Tensor, zeros } from "../tensor.js";
import { scaled_rate } from "./rope_scaling.js";

const float32 = Math.fround; // angles are large: they are rounded where the library rounds them

/**
 * PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(the same).
 * @param {number[]} positions
 * @param {number} d_model
 * @param {"interleaved" | "half"} order sine on even and cosine on odd indices (the paper's), or all sines first
 * @returns {Tensor} (positions, d_model)
 */
export function sinusoids(positions, d_model, order = "interleaved") {
  const pairs = Math.ceil(d_model / 2); // an odd width ends with a sine
  const encodings = zeros([positions.length, d_model]);
  positions.forEach((position, row) => {
    const encoding = encodings.row(row);
    for (let pair = 0; pair < pairs; pair++) {
      const rate = float32(Math.exp(float32(float32(-Math.log(10000)) * float32((2 * pair) / d_model))));
      const angle = float32(position * rate);
      const [sine, cosine] = order === "half" ? [pair, pairs + pair] : [2 * pair, 2 * pair + 1];
      encoding[sine] = Math.sin(angle);
      if (cosine < d_model) encoding[cosine] = Math.cos(angle);
    }
  });
  return encodings;
}

/**
 * By how much each of the d_k/2 points turns from one position to the next, in radians: rope_theta^(-2i/d_k).
 * @param {number} d_k
 * @param {number} rope_theta
 * @param {object | null} scaling `scaled_rate`'s
 * @returns {Float32Array} (d_k / 2)
 */
export function rotation_rates(d_k, rope_theta, scaling = null) {
  const rates = Float64Array.from({ length: d_k / 2 }, (_, point) => rope_theta ** ((-2 * point) / d_k));
  return Float32Array.from(rates, (rate) => (scaling === null ? rate : scaled_rate(scaling, rate)));
}

/**
 * Each point (feature i and feature i + d_k/2) turned by position · rate (Su et al. 2021, section 3.2.2).
 * @param {Tensor} x (heads, seq, d_k)
 * @param {number[]} positions
 * @param {Float32Array} rates (d_k / 2)
 * @returns {Tensor} (heads, seq, d_k)
 */
export function rotate(x, positions, rates) {
  const [heads, seq, d_k] = x.shape;
  const points = d_k / 2;
  const turned = zeros(x.shape);
  for (let row = 0; row < heads * seq; row++) {
    const [before, after] = [x.row(row), turned.row(row)];
    for (let point = 0; point < points; point++) {
      const angle = float32(positions[row % seq] * rates[point]);
      const [sine, cosine] = [float32(Math.sin(angle)), float32(Math.cos(angle))];
      const [first, second] = [before[point], before[point + points]];
      after[point] = first * cosine - second * sine;
      after[point + points] = second * cosine + first * sine;
    }
  }
  return turned;
}

/**
 * The slope of every head: 2^(-8/n), 2^(-16/n) … 2^-8 for n heads (Press et al. 2021, section 3).
 *
 * Where n is no power of two, as in the authors' code: the slopes of the next lower power, then every other one of the
 * next higher power's, from the first on.
 * @param {number} heads
 * @returns {number[]}
 */
export function alibi_slopes(heads) {
  const geometric = (n) => Array.from({ length: n }, (_, head) => 2 ** ((-8 * (head + 1)) / n));
  const lower = 2 ** Math.floor(Math.log2(heads));
  return [...geometric(lower), ...geometric(2 * lower).filter((_, head) => head % 2 === 0)].slice(0, heads);
}

/**
 * -slope · |i - j| in every head, for query i and key j (Press et al. 2021, section 3).
 * @param {number[]} queries their positions
 * @param {number[]} keys their positions
 * @param {number[]} slopes (heads)
 * @returns {Tensor} (heads, query, key)
 */
export function alibi(queries, keys, slopes) {
  const bias = zeros([slopes.length, queries.length, keys.length]);
  let at = 0;
  for (const slope of slopes)
    for (const query of queries) for (const key of keys) bias.data[at++] = -slope * Math.abs(query - key);
  return new Tensor(bias.data, bias.shape);
}
