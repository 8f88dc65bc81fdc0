/**
 * Which keys each query may attend to (section 3.2.3; `equations.masks`): 1 = may attend, (query, key).
 *
 * Without padding, since one text is read at a time, there is one mask: the causal one.
 *
 * 1 0 0 0
 * 1 1 0 0
 * 1 1 1 0
 * 1 1 1 1
 */

/**
 * Position i may attend to positions 0 … i: the future is hidden.
 * @param {number} seq
 * @returns {Uint8Array} (seq, seq)
 */
export function causal_mask(seq) {
  return cache_mask(0, seq, seq);
}

/**
 * The queries at `position`, `position` + 1, … may each attend to the cached keys up to their own place.
 * @param {number} position of the first query
 * @param {number} keys in the cache
 * @param {number} queries
 * @returns {Uint8Array} (queries, keys)
 */
export function cache_mask(position, keys, queries) {
  const mask = new Uint8Array(queries * keys);
  for (let query = 0; query < queries; query++)
    mask.fill(1, query * keys, query * keys + Math.min(keys, position + query + 1));
  return mask;
}

/**
 * Each row of a beam sees the places of its own ancestors alone.
 * @param {number[][]} places of each row
 * @param {number} keys in the cache
 * @returns {Uint8Array} (rows, keys)
 */
export function ancestor_mask(places, keys) {
  const mask = new Uint8Array(places.length * keys);
  places.forEach((own, row) => own.forEach((place) => (mask[row * keys + place] = 1)));
  return mask;
}
