/** The parts that a configuration names: where a word in `config.json` becomes a module (`models.build`). */

import { MultiHeadAttention } from "../nn/attention.js";
import { FeedForward, GatedFeedForward } from "../nn/feed_forward.js";
import { DecoderLayer, EncoderLayer } from "../nn/layer.js";
import { LayerNorm, RMSNorm } from "../nn/norm.js";
import { Alibi, Learned, Rotary, Sinusoidal } from "../nn/position.js";
import { PostNorm, PreNorm } from "../nn/residual.js";
import { key_width } from "./config.js";

const NORMS = { layer: LayerNorm, rms: RMSNorm };
const RESIDUALS = { post: PostNorm, pre: PreNorm };

/** Attention of a text to itself, which knows the positions where they are not added to the embeddings. */
export function make_self_attention(config, weights, name) {
  const schemes = {
    rotary: () => new Rotary(key_width(config), config.rope_theta, config.rope_scaling),
    alibi: () => new Alibi(config.heads),
  };
  const position = schemes[config.position]?.() ?? null;
  return new MultiHeadAttention(config, weights, name, { kv_heads: config.kv_heads || config.heads, position });
}

/** Layers of self-attention and feed-forward: an encoder's, or those of a decoder without memory. */
export function make_encoder_layers(config, count, weights, name) {
  return make_layers(count, name, (layer) =>
    new EncoderLayer(
      make_self_attention(config, weights, `${layer}.self_attention`),
      make_feed_forward(config, weights, `${layer}.feed_forward`),
      make_residuals(config, 2, weights, layer),
    ),
  );
}

/** Layers of a decoder with a memory. */
export function make_decoder_layers(config, count, weights, name) {
  return make_layers(count, name, (layer) =>
    new DecoderLayer(
      make_self_attention(config, weights, `${layer}.self_attention`),
      new MultiHeadAttention(config, weights, `${layer}.cross_attention`),
      make_feed_forward(config, weights, `${layer}.feed_forward`),
      make_residuals(config, 3, weights, layer),
    ),
  );
}

function make_layers(count, name, make) {
  return Array.from({ length: count }, (_, index) => make(`${name}.${index}`));
}

export function make_feed_forward(config, weights, name) {
  return new (config.gated ? GatedFeedForward : FeedForward)(config, weights, name);
}

export function make_norm(config, weights, name) {
  return new NORMS[config.norm](config, weights, name);
}

function make_residuals(config, count, weights, layer) {
  return Array.from({ length: count }, (_, index) => {
    return new RESIDUALS[config.norm_position](make_norm(config, weights, `${layer}.residuals.${index}.norm`));
  });
}

/** A pre-norm stack leaves its stream unnormalised and ends with one more norm; a post-norm one needs none. */
export function make_final_norm(config, weights, name) {
  return config.norm_position === "pre" ? make_norm(config, weights, name) : null;
}

/** The positions that are added to the embeddings; null where the layers' attention knows them. */
export function make_added_position(config, weights, name) {
  if (config.position === "learned") return new Learned(weights, name);
  return config.position === "sinusoidal" ? new Sinusoidal(config.d_model, config.sinusoidal_order) : null;
}
