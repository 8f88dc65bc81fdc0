/**
 * The encoder alone (BERT, Devlin et al. 2019): every token of a text is read in the light of all the others
 * (`models.encoder`).
 *
 * ids ── embed ──> layers ──> hidden states ─┬─ project ──> logits of the hidden tokens
 *                                            └─ pool, output ──> logits of the labels
 */

import { upto } from "../nn/attention.js";
import { Embedding, OutputProjection } from "../nn/embedding.js";
import { Transform } from "../nn/feed_forward.js";
import { Linear } from "../nn/linear.js";
import { FirstToken, MeanPool } from "../nn/pooling.js";
import { run_layers } from "../nn/stack.js";
import { NO_TRACE } from "../nn/trace.js";
import { make_added_position, make_encoder_layers, make_final_norm, make_norm } from "./build.js";
import { finished, summed } from "./transformer.js";

/** Embeddings and N identical layers. */
export class TextEncoder {
  /** @param {object} config @param {import("../weights.js").Weights} weights */
  constructor(config, weights) {
    this.embedding = new Embedding(weights, "encoder.embedding", config.scale_embeddings);
    this.position = make_added_position(config, weights, "encoder.position");
    this.token_type = config.token_types ? new Embedding(weights, "encoder.token_type", false) : null;
    this.embedding_norm = config.embedding_norm ? make_norm(config, weights, "encoder.embedding_norm") : null;
    this.layers = make_encoder_layers(config, config.layers, weights, "encoder.layers");
    this.norm = make_final_norm(config, weights, "encoder.norm");
  }

  /** Ids to hidden states (seq, d_model); every position sees all. @param {number[]} ids */
  encode(ids, trace = NO_TRACE) {
    return finished(this.norm, run_layers(this.layers, this.embed(ids, trace), [null], trace), trace);
  }

  /** Token embeddings, plus types (all in the first sentence) and positions where they are added, normed or not. */
  embed(ids, trace = NO_TRACE) {
    const [token, type] = [this.embedding.call(ids), this.token_type?.call(ids.map(() => 0))];
    return summed({ token, type, position: this.position?.call(upto(ids.length)) }, trace, this.embedding_norm);
  }
}

/** An encoder that says which tokens were hidden. */
export class MaskedLanguageModel {
  constructor(config, weights) {
    this.config = config;
    this.encoder = new TextEncoder(config, weights);
    this.transform = config.mlm_transform
      ? new Transform(config, weights, "transform", make_norm(config, weights, "transform.norm"))
      : null;
    this.output = new OutputProjection(weights, this.encoder.embedding, config.vocab);
  }

  /** Hidden states to logits (seq, rows); those of padding rows, which are no tokens, are -Infinity. */
  project(hidden) {
    return this.output.call(this.transform === null ? hidden : this.transform.call(hidden));
  }

  /** Logits (seq, rows) of the token at every place. @param {number[]} ids */
  call(ids, trace = NO_TRACE) {
    return this.project(this.encoder.encode(ids, trace));
  }
}

/** An encoder that tells texts apart: one vector of its hidden states, projected to one logit for each label. */
export class Classifier {
  constructor(config, weights) {
    this.config = config;
    this.encoder = new TextEncoder(config, weights);
    this.pooling = config.pooling === "first" ? new FirstToken(weights, "pooling") : new MeanPool();
    this.output = new Linear(weights, "output");
  }

  /** Logits (1, labels), in the order of `config.labels`. @param {number[]} ids */
  call(ids, trace = NO_TRACE) {
    return this.output.call(this.pooling.call(this.encoder.encode(ids, trace)));
  }
}
