/**
 * The decoder alone: a language model, which predicts every token of a text from those before it
 * (`models.language_model`).
 *
 * ids ── embed ──> layers under a causal mask ──> hidden states ── project ──> logits of the next tokens
 */

import { causal_mask } from "../equations/masks.js";
import { upto } from "../nn/attention.js";
import { Embedding, OutputProjection } from "../nn/embedding.js";
import { extend_layers, run_layers } from "../nn/stack.js";
import { NO_TRACE } from "../nn/trace.js";
import { make_added_position, make_encoder_layers, make_final_norm } from "./build.js";
import { finished, summed } from "./transformer.js";

/** A causal decoder. `extend` is its forward with a cache, for a whole prompt or one more token. */
export class LanguageModel {
  /** @param {object} config @param {import("../weights.js").Weights} weights */
  constructor(config, weights) {
    this.config = config;
    this.embedding = new Embedding(weights, "embedding", config.scale_embeddings);
    this.position = make_added_position(config, weights, "position");
    this.layers = make_encoder_layers(config, config.layers, weights, "layers");
    this.norm = make_final_norm(config, weights, "norm");
    this.output = new OutputProjection(weights, this.embedding, config.vocab);
  }

  /** Ids to hidden states (seq, d_model); position t sees ids 0 … t. @param {number[]} ids */
  decode(ids, trace = NO_TRACE) {
    const x = this.embed(ids, upto(ids.length), trace);
    return finished(this.norm, run_layers(this.layers, x, [causal_mask(ids.length)], trace), trace);
  }

  /** Hidden states to logits (seq, rows); those of padding rows, which are no tokens, are -Infinity. */
  project(hidden) {
    return this.output.call(hidden);
  }

  /** Logits (seq, rows) of every next token. @param {number[]} ids */
  call(ids, trace = NO_TRACE) {
    return this.project(this.decode(ids, trace));
  }

  // --- with a cache --------------------------------------------------------------------------------------------------

  /** What generation carries from one token to the next, before the first: keys and values of each layer. */
  start() {
    return { caches: this.layers.map((layer) => layer.self_attention.empty_cache()) };
  }

  /**
   * Logits (seq, rows) after each of more tokens, which are written to the caches of `state`.
   * @param {number[]} ids
   * @param {{positions: number[], mask: Uint8Array}} slots where they stand, and what they may attend to
   */
  extend(ids, state, slots, trace = NO_TRACE) {
    const stream = extend_layers(this.layers, this.embed(ids, slots.positions), state.caches, slots, [], trace);
    return this.project(finished(this.norm, stream, trace));
  }

  /** Token embeddings, plus positions where they are added. */
  embed(ids, positions, trace = NO_TRACE) {
    return summed({ token: this.embedding.call(ids), position: this.position?.call(positions) }, trace);
  }
}
