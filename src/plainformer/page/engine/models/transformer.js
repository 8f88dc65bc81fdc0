/**
 * The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order (`models.transformer`).
 *
 * source ids ── embed ──> encoder ──> memory ─┐
 * target ids ── embed ──────────────> decoder ┴──> hidden states ── project ──> logits
 */

import { causal_mask } from "../equations/masks.js";
import { upto } from "../nn/attention.js";
import { Embedding, OutputProjection } from "../nn/embedding.js";
import { extend_layers, run_layers } from "../nn/stack.js";
import { NO_TRACE } from "../nn/trace.js";
import { add } from "../tensor.js";
import { make_added_position, make_decoder_layers, make_encoder_layers, make_final_norm } from "./build.js";

/** The encoder-decoder. `encode` and `decode` are its two verbs; `extend` is `decode` with a cache. */
export class Transformer {
  /** @param {object} config @param {import("../weights.js").Weights} weights */
  constructor(config, weights) {
    const shares_embedding = ["three-way", "source-target"].includes(config.tie);
    this.config = config;
    this.source_embedding = new Embedding(weights, "source_embedding", config.scale_embeddings);
    this.target_embedding = shares_embedding
      ? this.source_embedding
      : new Embedding(weights, "target_embedding", config.scale_embeddings);
    this.position = make_added_position(config, weights, "position");
    this.encoder = make_encoder_layers(config, config.encoder_layers, weights, "encoder.layers");
    this.encoder_norm = make_final_norm(config, weights, "encoder.norm");
    this.decoder = make_decoder_layers(config, config.decoder_layers, weights, "decoder.layers");
    this.decoder_norm = make_final_norm(config, weights, "decoder.norm");
    this.output = new OutputProjection(weights, this.target_embedding, config.target_vocab);
  }

  /**
   * Source ids to memory (source, d_model).
   * @param {number[]} source
   */
  encode(source, trace = NO_TRACE) {
    trace = trace.scope("encoder");
    const x = this.placed(this.source_embedding.call(source), upto(source.length), trace);
    return finished(this.encoder_norm, run_layers(this.encoder, x, [null], trace), trace);
  }

  /**
   * Target ids so far, beginning of sentence first, to hidden states (target, d_model). Position t sees target tokens
   * 0 … t and predicts token t + 1.
   * @param {number[]} target
   * @param {import("../tensor.js").Tensor} memory (source, d_model)
   */
  decode(target, memory, trace = NO_TRACE) {
    trace = trace.scope("decoder");
    const x = this.embed_target(target, upto(target.length), trace);
    const context = [causal_mask(target.length), memory];
    return finished(this.decoder_norm, run_layers(this.decoder, x, context, trace), trace);
  }

  /** Hidden states to logits (target, rows); those of padding rows, which are no tokens, are -Infinity. */
  project(hidden) {
    return this.output.call(hidden);
  }

  /** Logits (target, rows) of every next target token. @param {number[]} source @param {number[]} target */
  call(source, target, trace = NO_TRACE) {
    return this.project(this.decode(target, this.encode(source, trace), trace));
  }

  // --- with a cache --------------------------------------------------------------------------------------------------

  /**
   * What decoding carries from one token to the next, before the first: self-attention's keys and values of each layer,
   * and cross-attention's, computed once.
   * @param {import("../tensor.js").Tensor} memory (source, d_model)
   */
  start(memory) {
    return {
      caches: this.decoder.map((layer) => layer.self_attention.empty_cache()),
      memory: this.decoder.map((layer) => layer.cross_attention.keys_values(memory)),
    };
  }

  /**
   * Logits (seq, rows) after each of more target tokens, which are written to the caches of `state`.
   * @param {number[]} ids
   * @param {{positions: number[], mask: Uint8Array}} slots where they stand, and what they may attend to
   */
  extend(ids, state, slots, trace = NO_TRACE) {
    trace = trace.scope("decoder");
    const x = this.embed_target(ids, slots.positions);
    const stream = extend_layers(this.decoder, x, state.caches, slots, [state.memory], trace);
    return this.project(finished(this.decoder_norm, stream, trace));
  }

  // --- embeddings ----------------------------------------------------------------------------------------------------

  /** A decoder that starts from zero adds no embedding for its first token. */
  embed_target(ids, positions, trace = NO_TRACE) {
    const x = this.target_embedding.call(ids);
    if (this.config.decoder_start === "zero")
      positions.forEach((position, at) => position === 0 && x.row(at).fill(0));
    return this.placed(x, positions, trace);
  }

  /** Token embeddings, plus positions where they are added. */
  placed(x, positions, trace) {
    return summed({ token: x, position: this.position?.call(positions) }, trace);
  }
}

/** The sum of embeddings, those that there are. @param {Record<string, object | undefined>} parts by their names */
export function summed(parts, trace, norm = null) {
  const inside = trace.scope("embedding");
  const added = Object.entries(parts).filter(([, part]) => part !== undefined);
  for (const [name, part] of added) inside.record(name, part);
  const sum = added.map(([, part]) => part).reduce(add);
  const output = norm === null ? sum : norm.call(sum);
  inside.record("output", output);
  return output;
}

/** The stream after the final norm, where there is one. */
export function finished(norm, x, trace) {
  const hidden = norm === null ? x : norm.call(x);
  trace.record("hidden", hidden);
  return hidden;
}
