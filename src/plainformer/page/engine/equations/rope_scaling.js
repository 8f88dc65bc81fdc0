/** Rotary positions for a longer context than the first training's (`equations.rope_scaling`). */

/**
 * The scaled rate of a point. One that turns more than `high_freq_factor` times in `original_context` positions keeps
 * its rate; one that turns less than `low_freq_factor` times has it divided by `factor`; between the two, it is a
 * mixture (Llama 3.1; Dubey et al. 2024, section 3.4.2). Without these three numbers every rate is divided (Chen et al.
 * 2023).
 * @param {{factor: number, low_freq_factor: number | null, high_freq_factor: number | null,
 *   original_context: number | null}} scaling
 * @param {number} rate radians a position
 * @returns {number}
 */
export function scaled_rate(scaling, rate) {
  const { factor, low_freq_factor: low, high_freq_factor: high, original_context: context } = scaling;
  if (low === null || high === null || context === null) return rate / factor;
  const turns = (context * rate) / (2 * Math.PI);
  const kept = Math.min(Math.max((turns - low) / (high - low), 0), 1);
  return kept * rate + ((1 - kept) * rate) / factor;
}
