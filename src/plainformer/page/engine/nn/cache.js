/** Keys and values that decoding keeps instead of computing them again at every step (`nn.cache`). */

import { Tensor } from "../tensor.js";

/** One key and one value per head and token, the token's position beside them; it grows as tokens come. */
export class KVCache {
  /**
   * @param {number} heads
   * @param {number} d_k
   * @param {number} d_v
   */
  constructor(heads, d_k, d_v) {
    Object.assign(this, { heads, d_k, d_v, capacity: 0, length: 0 });
    /** @type {number[]} where each key stands in its text */
    this.positions = [];
    this.key_data = new Float32Array(0);
    this.value_data = new Float32Array(0);
  }

  /**
   * Adds tokens behind those that are there.
   * @param {Tensor} keys (heads, seq, d_k)
   * @param {Tensor} values (heads, seq, d_v)
   * @param {number[]} positions of these tokens
   * @returns {KVCache} itself
   */
  write(keys, values, positions) {
    const seq = positions.length;
    if (this.length + seq > this.capacity) this.grow(Math.max(this.length + seq, 2 * this.capacity));
    for (let head = 0; head < this.heads; head++) {
      const from = head * this.capacity + this.length;
      this.key_data.set(keys.data.subarray(head * seq * this.d_k, (head + 1) * seq * this.d_k), from * this.d_k);
      this.value_data.set(values.data.subarray(head * seq * this.d_v, (head + 1) * seq * this.d_v), from * this.d_v);
    }
    this.positions.push(...positions);
    this.length += seq;
    return this;
  }

  /** Forgets all but the first `length` tokens. @param {number} length */
  truncate(length) {
    this.length = length;
    this.positions.length = length;
  }

  /** @param {number} capacity */
  grow(capacity) {
    this.key_data = widened(this.key_data, this.heads, this.capacity * this.d_k, capacity * this.d_k);
    this.value_data = widened(this.value_data, this.heads, this.capacity * this.d_v, capacity * this.d_v);
    this.capacity = capacity;
  }

  /** @returns {Tensor} (heads, key, d_k) */
  get keys() {
    return this.written(this.key_data, this.d_k);
  }

  /** @returns {Tensor} (heads, key, d_v) */
  get values() {
    return this.written(this.value_data, this.d_v);
  }

  written(data, d) {
    const whole = new Float32Array(this.heads * this.length * d);
    for (let head = 0; head < this.heads; head++) {
      const first = head * this.capacity * d;
      whole.set(data.subarray(first, first + this.length * d), head * this.length * d);
    }
    return new Tensor(whole, [this.heads, this.length, d]);
  }
}

/** Rows of `before` numbers with room for `after`. */
function widened(data, rows, before, after) {
  const wide = new Float32Array(rows * after);
  for (let row = 0; row < rows; row++) wide.set(data.subarray(row * before, (row + 1) * before), row * after);
  return wide;
}
