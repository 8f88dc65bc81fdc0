/**
 * JAX's random numbers: the Threefry-2x32 block cipher over counters (Salmon et al. 2011), so that a seed gives the
 * text here that it gives in the library.
 */

/** @typedef {[number, number]} Key two words of 32 bits */

const ROTATIONS = [
  [13, 15, 26, 6],
  [17, 29, 16, 24],
];

/**
 * Twenty rounds of Threefry-2x32.
 * @param {Key} key
 * @param {number} high
 * @param {number} low the counter's two words
 * @returns {Key}
 */
export function threefry(key, high, low) {
  const keys = [key[0], key[1], key[0] ^ key[1] ^ 0x1bd11bda];
  let [x, y] = [(high + keys[0]) | 0, (low + keys[1]) | 0];
  for (let round = 0; round < 5; round++) {
    for (const bits of ROTATIONS[round % 2]) {
      x = (x + y) | 0;
      y = ((y << bits) | (y >>> (32 - bits))) ^ x;
    }
    x = (x + keys[(round + 1) % 3]) | 0;
    y = (y + keys[(round + 2) % 3] + round + 1) | 0;
  }
  return [x >>> 0, y >>> 0];
}

/** @param {number} seed below 2³² @returns {Key} `jax.random.key` */
export function key(seed) {
  return [0, seed >>> 0];
}

/** A key of its own for every number. @param {Key} from @param {number} data @returns {Key} `jax.random.fold_in` */
export function fold_in(from, data) {
  return threefry(from, 0, data >>> 0);
}

/**
 * `jax.random.gumbel`: -log(-log(u)) of uniform u.
 * @param {Key} from
 * @param {number} number
 * @returns {Float32Array}
 */
export function gumbel(from, number) {
  const least = 2 ** -126; // the smallest positive number in full precision: never log(0)
  return Float32Array.from({ length: number }, (_, at) => {
    const [high, low] = threefry(from, 0, at);
    const uniform = ((high ^ low) >>> 9) / 2 ** 23; // 23 bits, from 0 to below 1
    return -Math.log(-Math.fround(Math.log(Math.max(least, uniform))));
  });
}
