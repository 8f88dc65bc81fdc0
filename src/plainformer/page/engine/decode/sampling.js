/** Which token comes next, by chance: temperature, top-k, top-p and min-p (`decode.sampling`). */

import { softmax } from "../equations/softmax.js";
import { gumbel } from "./random.js";

/**
 * A token, drawn with a key; at temperature 0 the most probable, the lowest id among equals.
 * @param {Float32Array} logits (rows), -Infinity of those that are never drawn
 * @param {import("./random.js").Key} key
 * @param {object} settings
 * @returns {number}
 */
export function sample(logits, key, settings) {
  if (settings.temperature === 0) return first_of_the_largest(logits);
  const kept = likely(logits, settings).kept;
  const noise = gumbel(key, logits.length); // the Gumbel-max trick: drawn by their probabilities
  return first_of_the_largest(kept.map((logit, token) => Math.fround(logit + noise[token])));
}

/** @param {ArrayLike<number>} numbers @returns {number} where the largest stands, the first of them among equals */
export function first_of_the_largest(numbers) {
  let best = 0;
  for (let at = 1; at < numbers.length; at++) if (numbers[at] > numbers[best]) best = at;
  return best;
}

/**
 * The logits to draw from, -Infinity for every token that the settings leave out, and which setting did.
 *
 * In this order: temperature; the `top_k` best (Fan et al. 2018); of these the smallest set that has `top_p` of their
 * probability (Holtzman et al. 2020); of these the ones at least `min_p` times as probable as the best (Nguyen et al.
 * 2024). Of equals, the lower ids stay.
 * @param {Float32Array} logits (rows)
 * @param {object} settings
 * @returns {{kept: Float32Array, ranked: number[], beyond: number[], probability: Float32Array, cut: Map<number,
 *   string>}} `ranked` are the tokens that top-k leaves, best first, with their `probability` among these, `beyond`
 *   those that it cuts; `cut` says by which setting a token of `ranked` was cut
 */
export function likely(logits, settings) {
  const best = logits[first_of_the_largest(logits)];
  const temperature = in_range(settings.temperature || 1);
  const scaled = logits.map((logit) => Math.fround(logit - best) / temperature);
  const possible = Array.from(scaled.keys()).filter((token) => scaled[token] > -Infinity);
  const ranked = possible.sort((one, other) => scaled[other] - scaled[one] || one - other);
  const beyond = settings.top_k ? ranked.splice(settings.top_k) : [];
  const probability = softmax(ranked.map((token) => scaled[token]));
  const kept = new Float32Array(scaled.length).fill(-Infinity);
  const cut = new Map();
  let before = 0;
  ranked.forEach((token, place) => {
    if (settings.top_p < 1 && before >= settings.top_p) cut.set(token, "top_p");
    else if (probability[place] < settings.min_p * probability[0]) cut.set(token, "min_p");
    else kept[token] = scaled[token];
    before += probability[place];
  });
  return { kept, ranked, beyond, probability, cut };
}

/**
 * With which probability each token is drawn, and which setting leaves out each other one; temperature 0 leaves one.
 * @param {Float32Array} logits (rows), -Infinity of those that are never drawn
 * @param {object} settings
 * @returns {{kept: Map<number, number>, cut: Map<number, string>}} the best first in each
 */
export function what_is_kept(logits, settings) {
  if (settings.temperature === 0) {
    const [best, ...others] = likely(logits, { temperature: 1, top_k: 0, top_p: 1, min_p: 0 }).ranked;
    return { kept: new Map([[best, 1]]), cut: new Map(others.map((id) => [id, "temperature"])) };
  }
  const { ranked, beyond, probability, cut } = likely(logits, settings);
  const left = ranked.map((id, place) => [id, probability[place]]).filter(([id]) => !cut.has(id));
  const sum = left.reduce((before, [, own]) => before + own, 0);
  return {
    kept: new Map(left.map(([id, own]) => [id, own / sum])),
    cut: new Map([...cut, ...beyond.map((id) => [id, "top_k"])]),
  };
}

/** A number above 0 as the nearest that is, as is one over it, a number of 32 bits in full precision. */
function in_range(number) {
  return Math.min(Math.max(number, 2 ** -126), 2 ** 126);
}
