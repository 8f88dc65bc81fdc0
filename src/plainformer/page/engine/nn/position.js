/**
 * Where a token stands (`nn.position`): sinusoidal and learned positions, which are added to the embeddings, and
 * schemes within attention, which turn queries and keys or give the scores a bias.
 */

import { alibi, alibi_slopes, rotate, rotation_rates, sinusoids } from "../equations/positions.js";
import { Tensor } from "../tensor.js";

/**
 * @typedef {object} WithinAttention a scheme within attention
 * @property {(x: Tensor, positions: number[]) => Tensor} [turn] queries or keys (heads, seq, d_k) by their positions
 * @property {(queries: number[], keys: number[]) => Tensor} [bias] of the scores (heads, query, key)
 */

/** The paper's sinusoids: no parameters, any length. */
export class Sinusoidal {
  constructor(d_model, order) {
    Object.assign(this, { d_model, order });
  }

  /** @param {number[]} positions @returns {Tensor} (seq, d_model) */
  call(positions) {
    return sinusoids(positions, this.d_model, this.order);
  }
}

/** One trained row per position. */
export class Learned {
  constructor(weights, name) {
    this.table = weights.get(`${name}.table`);
  }

  /** @param {number[]} positions @returns {Tensor} (seq, d_model) */
  call(positions) {
    const rows = this.table.rows;
    const beyond = positions.find((position) => position >= rows);
    if (beyond !== undefined) throw new Error(`there are ${rows} learned positions, and the text is longer`);
    const found = new Float32Array(positions.length * this.table.width);
    positions.forEach((position, at) => found.set(this.table.row(position), at * this.table.width));
    return new Tensor(found, [positions.length, this.table.width]);
  }
}

/** Queries and keys turned by their position, so that their product depends on the distance alone. */
export class Rotary {
  constructor(d_k, rope_theta, scaling) {
    this.rates = rotation_rates(d_k, rope_theta, scaling);
  }

  turn(x, positions) {
    return rotate(x, positions, this.rates);
  }
}

/** Scores the lower, the farther a key stands from its query (ALiBi). */
export class Alibi {
  constructor(heads) {
    this.slopes = alibi_slopes(heads);
  }

  bias(queries, keys) {
    return alibi(queries, keys, this.slopes);
  }
}
