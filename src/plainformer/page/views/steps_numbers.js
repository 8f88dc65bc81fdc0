/** The numbers of one row of one head, from its query to its output: each step of equation 1 by itself. */

/**
 * @typedef {{shape: number[], data: Float32Array}} Matrix (rows, width)
 *
 * @typedef {object} KeyNumbers what a query has to do with one key
 * @property {number} at place of the key
 * @property {Float32Array} key (d_k)
 * @property {Float32Array} value (d_v)
 * @property {number} dot q · k
 * @property {number} scaled q · k / √d_k
 * @property {number} bias of positions; 0 where the model has none
 * @property {number} score both together, before the mask
 * @property {boolean} is_masked
 * @property {number} weight after softmax
 *
 * @typedef {object} RowNumbers
 * @property {number} row place of the query
 * @property {Float32Array} query (d_k)
 * @property {KeyNumbers[]} keys all of them, in their order
 * @property {boolean} has_bias
 * @property {Float64Array} output (d_v) Σ weight · value
 * @property {number} apart the most by which a number here differs from that which the model computed by itself
 */

/**
 * @param {Record<string, Matrix | null>} arrays of one head, by their names in a trace: query (query, d_k), key
 *   (key, d_k), value (key, d_v), scores and weights (query, key), heads (query, d_v); bias (query, key) or null
 * @param {number} row
 * @param {{is_causal: boolean, is_off: boolean}} how whether later keys are masked; whether the head is left out, so
 *   that the model's own output is zero
 * @returns {RowNumbers}
 */
export function row_numbers(arrays, row, { is_causal, is_off }) {
  const query = row_of(arrays.query, row);
  const [scores, biases] = [row_of(arrays.scores, row), arrays.bias && row_of(arrays.bias, row)];
  const scale = 1 / Math.sqrt(query.length);
  const keys = Array.from(scores, (_, at) => {
    const [key, value] = [row_of(arrays.key, at), row_of(arrays.value, at)];
    const dot = product(query, key);
    const bias = biases ? biases[at] : 0;
    const scaled = dot * scale;
    return { at, key, value, dot, scaled, bias, score: scaled + bias, is_masked: is_causal && at > row };
  });
  const seen = keys.filter(({ is_masked }) => !is_masked);
  const peak = Math.max(...seen.map(({ score }) => score));
  const total = seen.reduce((sum, { score }) => sum + Math.exp(score - peak), 0);
  for (const one of keys) one.weight = one.is_masked ? 0 : Math.exp(one.score - peak) / total;
  const output = sum_of_values(keys);
  const weights = keys.map(({ weight }) => weight);
  const pairs = [[keys.map(({ score }) => score), scores], [weights, row_of(arrays.weights, row)]];
  if (!is_off) pairs.push([output, row_of(arrays.heads, row)]);
  const apart = Math.max(...pairs.map(([own, models]) => distance(own, models)));
  return { row, query, keys, has_bias: Boolean(biases), output, apart };
}

/** Σ weight · value over some keys. @param {KeyNumbers[]} keys @returns {Float64Array} (d_v) */
export function sum_of_values(keys) {
  const sum = new Float64Array(keys.length ? keys[0].value.length : 0);
  for (const { weight, value } of keys) for (let i = 0; i < sum.length; i++) sum[i] += weight * value[i];
  return sum;
}

/**
 * The keys that matter most, in their order: those of the largest weights, and two of the masked, where there are any.
 * @param {KeyNumbers[]} keys
 * @param {number} most
 */
export function main_keys(keys, most) {
  if (keys.length <= most) return keys;
  const masked = keys.filter(({ is_masked }) => is_masked);
  const seen = keys.filter(({ is_masked }) => !is_masked).sort((one, other) => other.weight - one.weight);
  const first = seen.slice(0, most - Math.min(2, masked.length));
  return [...first, ...masked.slice(0, most - first.length)].sort((one, other) => one.at - other.at);
}

/** @param {ArrayLike<number>} vector @returns {number} its Euclidean length */
export function norm(vector) {
  return Math.sqrt(product(vector, vector));
}

/** @param {number} value @returns {string} with four decimals */
export function four(value) {
  const said = value.toFixed(4);
  return said === "-0.0000" ? "0.0000" : said;
}

function row_of({ shape, data }, row) {
  const width = shape[shape.length - 1];
  return data.subarray(row * width, (row + 1) * width);
}

function product(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += one[i] * other[i];
  return sum;
}

function distance(one, other) {
  return one.reduce((most, value, i) => Math.max(most, Math.abs(value - other[i])), 0);
}
