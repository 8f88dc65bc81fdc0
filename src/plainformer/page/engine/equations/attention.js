/**
 * Scaled dot-product attention: equation 1 of "Attention Is All You Need" (section 3.2.1), and its masked softmax
 * (`equations.attention`), in the steps that the paper's figure 2 draws.
 */

import { Tensor, zeros } from "../tensor.js";

/**
 * Attention(Q, K, V) = softmax(Q Kᵀ / √d_k + bias) V  (equation 1), the weights that it used, and the scores before the
 * mask.
 *
 * With fewer keys than queries, each serves a group of neighbouring heads (Ainslie et al. 2023).
 * @param {Tensor} query (heads, query, d_k)
 * @param {Tensor} key (kv_heads, key, d_k)
 * @param {Tensor} value (kv_heads, key, d_v)
 * @param {Uint8Array | null} mask (query, key), 1 where a query may attend; one that may to nothing gives zeros
 * @param {Tensor | null} bias (heads, query, key), added to the scores; the paper has none
 * @returns {{heads: Tensor, weights: Tensor, scores: Tensor}} (heads, query, d_v) and twice (heads, query, key)
 */
export function attention(query, key, value, mask = null, bias = null) {
  const scores = scaled_scores(query, key);
  if (bias !== null) for (let at = 0; at < scores.data.length; at++) scores.data[at] += bias.data[at];
  const weights = masked_softmax(scores, mask);
  return { heads: weighted_values(weights, value), weights, scores };
}

/**
 * Q Kᵀ / √d_k.
 * @param {Tensor} query (heads, query, d_k)
 * @param {Tensor} key (kv_heads, key, d_k)
 * @returns {Tensor} (heads, query, key)
 */
export function scaled_scores(query, key) {
  const [heads, queries, d_k] = query.shape;
  const [kv_heads, keys] = key.shape;
  const scores = zeros([heads, queries, keys]);
  const root = Math.sqrt(d_k);
  for (let row = 0; row < heads * queries; row++) {
    const head = Math.floor(row / queries);
    const group = Math.floor((head * kv_heads) / heads);
    const [q, k] = [row * d_k, group * keys * d_k];
    for (let at = 0; at < keys; at++) {
      let sum = 0;
      for (let i = 0; i < d_k; i++) sum += query.data[q + i] * key.data[k + at * d_k + i];
      scores.data[row * keys + at] = sum / root;
    }
  }
  return scores;
}

/**
 * exp(s) / Σ exp(s) over the keys that `mask` allows; a row without any is all zeros, not NaN.
 * @param {Tensor} scores (heads, query, key)
 * @param {Uint8Array | null} mask (query, key)
 * @returns {Tensor} (heads, query, key)
 */
export function masked_softmax(scores, mask) {
  const [heads, queries, keys] = scores.shape;
  const weights = zeros([heads, queries, keys]);
  for (let row = 0; row < heads * queries; row++) {
    const [first, allowed] = [row * keys, (row % queries) * keys];
    let peak = -Infinity;
    for (let at = 0; at < keys; at++)
      if (mask === null || mask[allowed + at]) peak = Math.max(peak, scores.data[first + at]);
    let total = 0;
    for (let at = 0; at < keys; at++)
      if (mask === null || mask[allowed + at])
        total += weights.data[first + at] = Math.exp(scores.data[first + at] - peak);
    for (let at = 0; at < keys; at++) if (total > 0) weights.data[first + at] /= total;
  }
  return weights;
}

/**
 * The values, each times its weight.
 * @param {Tensor} weights (heads, query, key)
 * @param {Tensor} value (kv_heads, key, d_v)
 * @returns {Tensor} (heads, query, d_v)
 */
export function weighted_values(weights, value) {
  const [heads, queries, keys] = weights.shape;
  const [kv_heads, , d_v] = value.shape;
  const found = new Float32Array(heads * queries * d_v);
  const sums = new Float64Array(d_v);
  for (let row = 0; row < heads * queries; row++) {
    const head = Math.floor(row / queries);
    const group = Math.floor((head * kv_heads) / heads);
    sums.fill(0);
    for (let at = 0; at < keys; at++) {
      const weight = weights.data[row * keys + at];
      if (weight === 0) continue;
      const v = (group * keys + at) * d_v;
      for (let i = 0; i < d_v; i++) sums[i] += weight * value.data[v + i];
    }
    found.set(sums, row * d_v);
  }
  return new Tensor(found, [heads, queries, d_v]);
}
