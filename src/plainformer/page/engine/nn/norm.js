/** Normalisation over the features of a token (`nn.norm`). */

import { layer_norm, rms_norm } from "../equations/norms.js";
import { epsilon } from "../models/config.js";

/** (x - mean) / sqrt(variance + eps) * scale + bias, per token (Ba et al. 2016). */
export class LayerNorm {
  constructor(config, weights, name) {
    this.scale = weights.get(`${name}.scale`);
    this.bias = weights.get(`${name}.bias`);
    this.eps = epsilon(config);
  }

  call(x) {
    return layer_norm(x, this.scale, this.bias, this.eps);
  }
}

/** x / sqrt(mean(x²) + eps) * scale, per token (Zhang & Sennrich 2019). */
export class RMSNorm {
  constructor(config, weights, name) {
    this.scale = weights.get(`${name}.scale`);
    this.eps = epsilon(config);
  }

  call(x) {
    return rms_norm(x, this.scale, this.eps);
  }
}
