/** One vector for a whole text, from the hidden states of its tokens (`nn.pooling`). */

import { Tensor, zeros } from "../tensor.js";
import { Linear } from "./linear.js";

/** The mean of the hidden states (Reimers and Gurevych 2019). */
export class MeanPool {
  /** @param {Tensor} hidden (seq, d_model) @returns {Tensor} (1, d_model) */
  call(hidden) {
    const mean = zeros([1, hidden.width]);
    for (let i = 0; i < hidden.width; i++) {
      let sum = 0;
      for (let at = 0; at < hidden.rows; at++) sum += hidden.data[at * hidden.width + i];
      mean.data[i] = sum / hidden.rows;
    }
    return mean;
  }
}

/** tanh(h_0 W + b), h_0 the hidden state of the first token, which stands for the text (Devlin et al. 2019). */
export class FirstToken {
  constructor(weights, name) {
    this.dense = new Linear(weights, `${name}.dense`);
  }

  call(hidden) {
    const dense = this.dense.call(new Tensor(hidden.row(0), [1, hidden.width]));
    return new Tensor(dense.data.map(Math.tanh), dense.shape);
  }
}
