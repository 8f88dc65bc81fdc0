/** Token embeddings, and the output projection that may share their table (section 3.4; `nn.embedding`). */

import { matmul, matmul_transposed } from "../equations/linear.js";
import { Tensor } from "../tensor.js";

/** A table with one row per token; with `scaled`, a row is multiplied by √d_model (section 3.4). */
export class Embedding {
  constructor(weights, name, scaled) {
    this.table = weights.get(`${name}.table`);
    this.scale = scaled ? Math.sqrt(this.table.width) : 1;
  }

  /** @param {number[]} ids @returns {Tensor} (seq, d_model) */
  call(ids) {
    const width = this.table.width;
    const rows = new Float32Array(ids.length * width);
    ids.forEach((id, at) => {
      const row = this.table.row(id);
      for (let i = 0; i < width; i++) rows[at * width + i] = row[i] * this.scale;
    });
    return new Tensor(rows, [ids.length, width]);
  }
}

/** The output projection: an embedding's table, or a map of its own. Rows from `vocab` on are no tokens: -Infinity. */
export class OutputProjection {
  /**
   * @param {Embedding} embedding whose table it is where the model has no other (section 3.4)
   * @param {number} vocab
   */
  constructor(weights, embedding, vocab) {
    this.table = embedding.table;
    this.weight = weights.find("output.weight");
    this.bias = weights.find("output_bias");
    this.vocab = vocab;
  }

  /** @param {Tensor} hidden (seq, d_model) @returns {Tensor} logits (seq, rows) */
  call(hidden) {
    const logits = this.weight === null ? matmul_transposed(hidden, this.table) : matmul(hidden, this.weight);
    for (let row = 0; row < logits.rows; row++) {
      const one = logits.row(row);
      if (this.bias !== null) for (let token = 0; token < this.vocab; token++) one[token] += this.bias.data[token];
      one.fill(-Infinity, this.vocab);
    }
    return logits;
  }

  /** What a token's logit is the product of the hidden state with. @returns {Float32Array} (d_model) */
  column(token) {
    if (this.weight === null) return this.table.row(token);
    const rows = this.weight.width;
    return Float32Array.from({ length: this.weight.rows }, (_, i) => this.weight.data[i * rows + token]);
  }
}
