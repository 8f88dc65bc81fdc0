/** Multi-head attention (section 3.2.2) around equation 1 (`nn.attention`). */

import { attention } from "../equations/attention.js";
import { join_heads, split_heads, zeros } from "../tensor.js";
import { key_width, value_width } from "../models/config.js";
import { KVCache } from "./cache.js";
import { Linear } from "./linear.js";
import { NO_TRACE } from "./trace.js";

/**
 * MultiHead(Q, K, V) = Concat(head_1 … head_h) W^O, head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).
 *
 * The h projections of one kind stand side by side in one matrix. With fewer `kv_heads` than heads, each key and value
 * serves a group of neighbouring queries (Ainslie et al. 2023).
 */
export class MultiHeadAttention {
  /**
   * @param {object} config
   * @param {import("../weights.js").Weights} weights
   * @param {string} name
   * @param {{kv_heads?: number, position?: import("./position.js").WithinAttention | null}} scheme
   */
  constructor(config, weights, name, { kv_heads = config.heads, position = null } = {}) {
    Object.assign(this, { heads: config.heads, kv_heads, position, d_k: key_width(config), d_v: value_width(config) });
    this.query = new Linear(weights, `${name}.query`);
    this.key = new Linear(weights, `${name}.key`);
    this.value = new Linear(weights, `${name}.value`);
    this.output = new Linear(weights, `${name}.output`);
  }

  /**
   * Queries from `x`, keys and values from `memory`; without one, from `x` (self-attention).
   * @param {import("../tensor.js").Tensor} x (seq, d_model)
   * @param {Uint8Array | null} mask (seq, key)
   * @param {import("../tensor.js").Tensor | null} memory (key, d_model)
   * @returns {import("../tensor.js").Tensor} (seq, d_model)
   */
  call(x, mask, memory = null, trace = NO_TRACE) {
    return this.attend(x, this.keys_values(memory ?? x), mask, upto(x.rows), trace);
  }

  /**
   * Self-attention of new tokens to those in the cache and to themselves, which are written there.
   * @param {import("../tensor.js").Tensor} x (seq, d_model)
   * @param {KVCache} cache
   * @param {{positions: number[], mask: Uint8Array}} slots where the tokens stand, and what they may attend to
   */
  extend(x, cache, slots, trace = NO_TRACE) {
    return this.attend(x, this.keys_values(x, slots.positions, cache), slots.mask, slots.positions, trace);
  }

  /** @returns {KVCache} without any token */
  empty_cache() {
    return new KVCache(this.kv_heads, this.d_k, this.d_v);
  }

  /**
   * The keys and values of `memory`, behind those of a cache; decoding computes them once and keeps them.
   * @param {import("../tensor.js").Tensor} memory (key, d_model)
   * @param {number[]} positions of these tokens
   * @param {KVCache} cache
   * @returns {KVCache}
   */
  keys_values(memory, positions = upto(memory.rows), cache = this.empty_cache()) {
    const keys = this.turn(split_heads(this.key.call(memory), this.kv_heads), positions);
    return cache.write(keys, split_heads(this.value.call(memory), this.kv_heads), positions);
  }

  /**
   * Attention of every position of `x` to the keys and values of `seen`: equation 1 in every head, and the projection
   * of all heads side by side.
   * @param {import("../tensor.js").Tensor} x (seq, d_model)
   * @param {KVCache} seen
   * @param {Uint8Array | null} mask (seq, key)
   * @param {number[]} positions of `x`
   * @returns {import("../tensor.js").Tensor} (seq, d_model)
   */
  attend(x, seen, mask, positions, trace = NO_TRACE) {
    const query = this.turn(split_heads(this.query.call(x), this.heads), positions);
    const [key, value] = [seen.keys, seen.values];
    const bias = this.position?.bias?.(positions, seen.positions) ?? null;
    const found = attention(query, key, value, mask, bias);
    found.heads = without_heads(found.heads, trace);
    const output = this.output.call(join_heads(found.heads));
    if (trace.found !== null) {
      const [keys, values] = [key, value].map((one) => for_each_head(one, this.heads));
      const all = { query, key: keys, value: values, ...found, output, ...(bias === null ? {} : { bias }) };
      for (const [name, one] of Object.entries(all)) trace.record(name, one);
    }
    return output;
  }

  turn(x, positions) {
    return this.position?.turn?.(x, positions) ?? x;
  }
}

/** The heads (heads, seq, d_v), those that are left out being zero. */
function without_heads(heads, trace) {
  const size = heads.data.length / heads.shape[0];
  for (let head = 0; head < heads.shape[0]; head++)
    if (trace.is_off(head)) heads.data.fill(0, head * size, (head + 1) * size);
  return heads;
}

/** Keys or values (kv_heads, key, d) as each head has them, (heads, key, d). */
function for_each_head(x, heads) {
  const [kv_heads, key, d] = x.shape;
  const repeated = zeros([heads, key, d]);
  for (let head = 0; head < heads; head++) {
    const first = Math.floor((head * kv_heads) / heads) * key * d;
    repeated.data.set(x.data.subarray(first, first + key * d), head * key * d);
  }
  return repeated;
}

/** @param {number} seq @returns {number[]} 0, 1 … seq - 1 */
export function upto(seq) {
  return Array.from({ length: seq }, (_, at) => at);
}
