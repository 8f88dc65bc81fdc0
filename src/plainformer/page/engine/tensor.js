/**
 * Arrays of numbers with a shape: float32 in memory, sums in double precision.
 *
 * The engine reads one text at a time, so that the library's batch axis is left out: hidden states are
 * (seq, d_model), queries (heads, seq, d_k). All names are the library's, whose functions can be searched by them.
 */

export class Tensor {
  /**
   * @param {Float32Array} data row after row
   * @param {number[]} shape
   */
  constructor(data, shape) {
    this.data = data;
    this.shape = shape;
  }

  /** The length of the last axis. */
  get width() {
    return this.shape[this.shape.length - 1];
  }

  /** How many rows of that length there are, all other axes taken together. */
  get rows() {
    return this.data.length / this.width;
  }

  /**
   * One row; it shares its memory with the tensor.
   * @param {number} index
   * @returns {Float32Array}
   */
  row(index) {
    return this.data.subarray(index * this.width, (index + 1) * this.width);
  }

  /** @returns {Tensor} the same numbers, which nobody else can change */
  copy() {
    return new Tensor(this.data.slice(), [...this.shape]);
  }
}

/**
 * @param {number[]} shape
 * @returns {Tensor} all zero
 */
export function zeros(shape) {
  return new Tensor(new Float32Array(shape.reduce((size, length) => size * length, 1)), shape);
}

/**
 * @param {Tensor} x
 * @param {Tensor} y of the same shape
 * @returns {Tensor} x + y
 */
export function add(x, y) {
  const sum = new Float32Array(x.data.length);
  for (let at = 0; at < sum.length; at++) sum[at] = x.data[at] + y.data[at];
  return new Tensor(sum, x.shape);
}

/**
 * @param {Tensor} x (seq, heads · d)
 * @param {number} heads
 * @returns {Tensor} (heads, seq, d)
 */
export function split_heads(x, heads) {
  const [seq, width] = x.shape;
  const d = width / heads;
  const split = new Float32Array(x.data.length);
  for (let head = 0; head < heads; head++)
    for (let at = 0; at < seq; at++)
      split.set(x.data.subarray(at * width + head * d, at * width + (head + 1) * d), (head * seq + at) * d);
  return new Tensor(split, [heads, seq, d]);
}

/**
 * @param {Tensor} x (heads, seq, d)
 * @returns {Tensor} (seq, heads · d): all heads side by side
 */
export function join_heads(x) {
  const [heads, seq, d] = x.shape;
  const joined = new Float32Array(x.data.length);
  for (let head = 0; head < heads; head++)
    for (let at = 0; at < seq; at++)
      joined.set(x.data.subarray((head * seq + at) * d, (head * seq + at + 1) * d), (at * heads + head) * d);
  return new Tensor(joined, [seq, heads * d]);
}
