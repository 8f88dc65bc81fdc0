/** An affine map over the last axis (`nn.linear`). */

import { affine } from "../equations/linear.js";

/** y = x W + b. */
export class Linear {
  /**
   * @param {import("../weights.js").Weights} weights
   * @param {string} name of the map; where the model has no bias, there is none
   */
  constructor(weights, name) {
    this.weight = weights.get(`${name}.weight`);
    this.bias = weights.find(`${name}.bias`);
  }

  /** @param {import("../tensor.js").Tensor} x (seq, d_in) @returns {import("../tensor.js").Tensor} (seq, d_out) */
  call(x) {
    return affine(x, this.weight, this.bias);
  }
}
