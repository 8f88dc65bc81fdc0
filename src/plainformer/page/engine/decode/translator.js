/** Text in, text out: a translation model with its tokenizers and its way of searching (`decode.translator`). */

import { best_tokens } from "../inspect.js";
import { position_limit } from "../models/config.js";
import { Transformer } from "../models/transformer.js";
import { Trace } from "../nn/trace.js";
import { beam_search, extend_by } from "./beam.js";
import { bound } from "./settings.js";
import { encode_text } from "./texts.js";

export class Translator {
  constructor(config, weights, tokenizers, settings) {
    Object.assign(this, { config, settings, source_tokenizer: tokenizers.source });
    this.target_tokenizer = tokenizers.target ?? tokenizers.source;
    this.model = new Transformer(config, weights);
  }

  /**
   * The translations of a text, and the tree of the search.
   * @param {{text: string, settings?: object, prefix?: number[], off?: string[]}} asked
   */
  search({ text, settings = {}, prefix = [], off = [] }) {
    const changed = { ...this.settings, ...settings };
    changed.n_best = Math.min(changed.n_best, changed.beam_size);
    const { source, ...said } = this.encoded(text);
    const longest = bound(changed, source.length, position_limit(this.config));
    const trace = new Trace(null, new Set(off));
    const extend = extend_by(this.model, this.model.start(this.model.encode(source, trace)), trace);
    const roles = this.roles(changed);
    const found = beam_search(extend, roles.first, longest, changed, roles, { prefix });
    const hypotheses = found.hypotheses.map((one) => ({ ...one, text: this.target_tokenizer.decode(one.ids) }));
    return { ...said, source, bound: longest, settings: changed, hypotheses, nodes: found.nodes };
  }

  /**
   * One pass over a source and a target that is known, each intermediate recorded.
   * @param {{text: string, target: number[], off?: string[], best?: number}} asked `target` without beginning and end
   */
  forward({ text, target = [], off = [], best = 10 }) {
    const { source, ...said } = this.encoded(text);
    const seen = new Map();
    const read = [this.roles(this.settings).first, ...target];
    const logits = this.model.call(source, read, new Trace(seen, new Set(off)));
    seen.set("logits", logits);
    return { ...said, source, target: read, predictions: best_tokens(logits, best), seen };
  }

  encoded(text) {
    if (text.trim() === "") throw new Error("the text is empty");
    const most = position_limit(this.config) - 1; // the end of sentence takes one
    const { ids, unknown, cut } = encode_text(this.source_tokenizer, text, most, { may_be_unknown: true });
    return { source: [...ids, this.source_tokenizer.special.eos], unknown, cut };
  }

  /** What may be generated: all tokens but the one for what the vocabulary lacks, and those that are suppressed. */
  roles(settings) {
    const { bos, eos, pad, unk } = this.target_tokenizer.special;
    const ends = settings.end_tokens?.length ? settings.end_tokens : [eos];
    const allowed = new Uint8Array(this.model.output.table.rows);
    allowed.fill(1, 0, Math.min(this.target_tokenizer.vocab_size, this.config.target_vocab));
    if (unk !== null) allowed[unk] = 0;
    for (const end of ends) allowed[end] = 1;
    for (const id of settings.suppress_tokens ?? []) allowed[id] = 0;
    return { first: bos, bos, pad, ends, allowed };
  }

  /** The stack whose stream ends in logits. @returns {import("../inspect.js").Stack} */
  get stack() {
    const project = (hidden) => this.model.project(hidden);
    const { decoder: layers, decoder_norm: norm, output } = this.model;
    return { prefix: "decoder/", layers, norm, output, project };
  }
}
