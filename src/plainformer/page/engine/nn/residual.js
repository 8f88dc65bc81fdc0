/** How a sublayer joins the residual stream: the paper's post-norm (section 5.4), or pre-norm (`nn.residual`). */

import { add } from "../tensor.js";

/** LayerNorm(x + Sublayer(x)): the paper. */
export class PostNorm {
  constructor(norm) {
    this.norm = norm;
    this.is_after = true; // the norm is after the sum
  }

  /**
   * @param {import("../tensor.js").Tensor} x (seq, d_model)
   * @param {((x: import("../tensor.js").Tensor) => import("../tensor.js").Tensor) | null} sublayer null adds nothing
   * @returns {import("../tensor.js").Tensor} (seq, d_model)
   */
  call(x, sublayer) {
    return this.norm.call(sublayer === null ? x : add(x, sublayer(x)));
  }
}

/** x + Sublayer(LayerNorm(x)); the stack then ends with a norm of its own (Xiong et al. 2020). */
export class PreNorm {
  constructor(norm) {
    this.norm = norm;
    this.is_after = false;
  }

  call(x, sublayer) {
    return sublayer === null ? x : add(x, sublayer(this.norm.call(x)));
  }
}
