/** Logits to probabilities, and the most probable tokens (`equations.top_k`). */

/**
 * Logits to log-probabilities, in nats.
 * @param {ArrayLike<number>} logits (vocab)
 * @returns {Float32Array} (vocab)
 */
export function log_softmax(logits) {
  const logprobs = new Float32Array(logits);
  let peak = -Infinity;
  for (let token = 0; token < logprobs.length; token++) if (logprobs[token] > peak) peak = logprobs[token];
  let total = 0;
  for (let token = 0; token < logprobs.length; token++) total += Math.exp(logprobs[token] - peak);
  const shift = peak + Math.log(total);
  for (let token = 0; token < logprobs.length; token++) logprobs[token] -= shift;
  return logprobs;
}

/**
 * Logits to probabilities.
 * @param {ArrayLike<number>} logits (vocab)
 * @returns {Float32Array} (vocab)
 */
export function softmax(logits) {
  return log_softmax(logits).map(Math.exp);
}

/**
 * The `number` largest, best first, the lower index first among equals; -Infinity is none.
 * @param {ArrayLike<number>} values
 * @param {number} number
 * @returns {number[]} their indices
 */
export function top_k(values, number) {
  /** @type {number[]} */
  const best = [];
  for (let index = 0; index < values.length; index++) {
    const value = values[index];
    if (!(value > -Infinity) || (best.length === number && !(value > values[best[number - 1]]))) continue;
    let place = best.length;
    while (place > 0 && values[best[place - 1]] < value) place--;
    best.splice(place, 0, index);
    if (best.length > number) best.pop();
  }
  return best;
}
