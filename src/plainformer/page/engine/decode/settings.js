/**
 * What follows from the settings of decoding (`decode.settings`, `decode.length_penalty`), which the page carries as
 * the library names them.
 */

/** The penalty of a length that scores divide by. @type {Record<string, (length: number, alpha: number) => number>} */
export const PENALTIES = {
  gnmt: (length, alpha) => ((5 + length) / 6) ** alpha, // Wu et al. 2016, equation 14
  average: (length, alpha) => length ** alpha,
  none: () => 1,
};

/** Whether hypotheses that ended leave their places to others; a beam of one is greedy. */
export function is_full(settings) {
  return settings.beam === "full" && settings.beam_size > 1;
}

/**
 * The most tokens that a source of `source_length` tokens may give; both count their end of sentence.
 * @param {object} settings
 * @param {number} source_length
 * @param {number} limit the longest target that the model has positions for
 */
export function bound(settings, source_length, limit = Infinity) {
  return Math.min(limit, Math.max(1, Math.trunc(settings.max_ratio * source_length) + settings.max_margin));
}

/**
 * What a log-probability is multiplied by to give a score, for every length from 0 to `longest`: one over the penalty.
 * @param {object} settings
 * @param {number} longest
 * @returns {Float32Array} (longest + 1)
 */
export function length_weights(settings, longest) {
  return Float32Array.from({ length: longest + 1 }, (_, length) => {
    const weight = length === 0 ? 1 : 1 / PENALTIES[settings.length_penalty](length, settings.alpha);
    return Math.min(Math.max(weight, 1e-30), 1e30); // a log-probability times it stays a number, too
  });
}
