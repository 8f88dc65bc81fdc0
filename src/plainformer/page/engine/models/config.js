/** The shape of a model: the numbers that follow from those of its `config.json` (`models.config`). */

/** d_k: width of one head's query and key. */
export function key_width(config) {
  return config.d_k || config.d_model / config.heads;
}

/** d_v: width of one head's value. */
export function value_width(config) {
  return config.d_v || config.d_model / config.heads;
}

/** What the norms add to a variance, or a mean square. */
export function epsilon(config) {
  return config.norm_eps || { layer: 1e-5, rms: 1e-6 }[config.norm];
}

/** Layers of an encoder-decoder, or of one stack, by how its names begin in a trace: "" where there is but one. */
export function stacks(config) {
  return "encoder_layers" in config
    ? { "encoder/": config.encoder_layers, "decoder/": config.decoder_layers }
    : { "": config.layers };
}

/** The most tokens that the model reads at once; Infinity where positions have no bound. */
export function position_limit(config) {
  if ("context" in config) return config.context - 2 * Number(config.add_cls_sep ?? false);
  return config.position === "learned" ? config.max_len : Infinity;
}
