/**
 * Normalisation over the features of a token: LayerNorm (Ba et al. 2016) and RMSNorm (Zhang & Sennrich 2019)
 * (`equations.norms`).
 */

import { Tensor } from "../tensor.js";

/**
 * (x - mean) / sqrt(variance + eps) * scale + bias.
 * @param {Tensor} x (token, d_model)
 * @param {Tensor} scale (d_model)
 * @param {Tensor} bias (d_model)
 * @param {number} eps
 * @returns {Tensor} (token, d_model)
 */
export function layer_norm(x, scale, bias, eps) {
  return normalise(eps, true, x, scale, bias);
}

/**
 * x / sqrt(mean(x²) + eps) * scale.
 * @param {Tensor} x (token, d_model)
 * @param {Tensor} scale (d_model)
 * @param {number} eps
 * @returns {Tensor} (token, d_model)
 */
export function rms_norm(x, scale, eps) {
  return normalise(eps, false, x, scale, null);
}

/**
 * Both norms: LayerNorm is `centred` and has a bias, RMSNorm neither.
 * @param {number} eps
 * @param {boolean} centred
 * @param {Tensor} x (token, d_model)
 * @param {Tensor} scale (d_model)
 * @param {Tensor | null} bias (d_model)
 * @returns {Tensor} (token, d_model)
 */
export function normalise(eps, centred, x, scale, bias) {
  const width = x.width;
  const normed = new Float32Array(x.data.length);
  for (let row = 0; row < x.rows; row++) {
    const token = x.row(row);
    let mean = 0;
    if (centred) for (let i = 0; i < width; i++) mean += token[i] / width;
    let mean_square = 0;
    for (let i = 0; i < width; i++) mean_square += (token[i] - mean) ** 2 / width;
    const factor = 1 / Math.sqrt(mean_square + eps);
    for (let i = 0; i < width; i++)
      normed[row * width + i] = (token[i] - mean) * factor * scale.data[i] + (bias === null ? 0 : bias.data[i]);
  }
  return new Tensor(normed, x.shape);
}
