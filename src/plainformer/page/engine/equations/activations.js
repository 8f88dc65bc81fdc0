/** The activations of feed-forward networks (section 3.3 has ReLU; `equations.activations`). */

import { Tensor } from "../tensor.js";

/** @type {Record<string, (x: number) => number>} */
export const ACTIVATIONS = {
  relu: (x) => Math.max(0, x), // equation 2
  gelu: (x) => x * normal_distribution(x), // x Φ(x), Hendrycks & Gimpel 2016
  gelu_tanh: (x) => 0.5 * x * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))), // as GPT-2 has it
  silu: (x) => x / (1 + Math.exp(-x)), // x σ(x), Elfwing et al. 2017
};

/**
 * @param {string} name
 * @param {Tensor} x
 * @returns {Tensor} the activation of every number
 */
export function activate(name, x) {
  return new Tensor(x.data.map(ACTIVATIONS[name]), x.shape);
}

/**
 * Φ(x): that a number drawn from N(0, 1) is at most x.
 * @param {number} x
 * @returns {number}
 */
export function normal_distribution(x) {
  const tail = complementary_error(Math.abs(x) / Math.SQRT2) / 2;
  return x < 0 ? tail : 1 - tail;
}

// erfc(z) = t exp(-z² + c_0 + c_1 t + … + c_9 t⁹) with t = 1 / (1 + z / 2), relative error below 1.2e-7: the Chebyshev
// fit of Press et al., Numerical Recipes, section 6.2.
const ERROR_FIT = [
  -1.26551223, 1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223,
  0.17087277,
];

/**
 * erfc(z) = 1 - erf(z), of z at least 0.
 * @param {number} z
 * @returns {number}
 */
function complementary_error(z) {
  const t = 1 / (1 + z / 2);
  return t * Math.exp(-z * z + ERROR_FIT.reduceRight((sum, coefficient) => sum * t + coefficient, 0));
}
