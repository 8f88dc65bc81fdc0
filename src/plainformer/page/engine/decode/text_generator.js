/** A prompt in, a text out: a language model with its tokenizer (`decode.text_generator`). */

import { best_tokens } from "../inspect.js";
import { LanguageModel } from "../models/language_model.js";
import { Trace } from "../nn/trace.js";
import { beam_search, extend_by } from "./beam.js";
import { cache_mask } from "../equations/masks.js";
import { Reading, next_token, next_tokens, window_start } from "./generate.js";
import { encode_text } from "./texts.js";

/** The paper's search (section 6.1), in the library's words. */
const PAPER = {
  beam_size: 4,
  length_penalty: "gnmt",
  alpha: 0.6,
  n_best: 1,
  no_repeat_ngram: 0,
  repetition_penalty: 1,
  beam: "shrinking",
  early_stopping: "never",
  min_tokens: 0,
};

export class TextGenerator {
  constructor(config, weights, tokenizers, settings) {
    Object.assign(this, { config, settings, tokenizer: tokenizers.source });
    this.model = new LanguageModel(config, weights);
    this.readings = new Map(); // by what is left out
  }

  /**
   * The token after a text: how probable each is, what the settings cut, which one was drawn.
   * @param {{text?: string, ids?: number[], settings?: object, off?: string[], best?: number}} asked a text, or the ids
   *   of one
   * @returns {{ids: number[], token: number, ended: boolean, predictions: import("./generate.js").NextToken[],
   *   kept: number, cuts: import("./generate.js").Cuts}} as `next_tokens`
   */
  step({ text, ids, settings = {}, off = [], best = 50 }) {
    const changed = { ...this.settings, ...settings };
    const known = ids ?? this.encoded(text);
    const drawn = next_token(this.reading(off), known, changed, this.banned(changed));
    const ended = this.ends(changed).includes(drawn.token);
    return { ids: known, token: drawn.token, ended, ...next_tokens(drawn, changed, best) };
  }

  /**
   * What follows a text, by the settings.
   * @param {{text?: string, ids?: number[], settings?: object, off?: string[]}} asked
   */
  generate({ text, ids, settings = {}, off = [] }) {
    const changed = { ...this.settings, ...settings };
    const prompt = ids ?? this.encoded(text);
    const known = [...prompt];
    for (let written = 0; written < changed.max_tokens; written++) {
      const { token } = next_token(this.reading(off), known, changed, this.banned(changed));
      if (this.ends(changed).includes(token)) break;
      known.push(token);
    }
    return { ids: known, prompt: prompt.length, text: this.tokenizer.decode(known.slice(prompt.length)) };
  }

  /** The most probable continuations of a prompt, and the tree of the search. */
  search({ text, ids, settings = {}, prefix = [], off = [], max_tokens = 20 }) {
    const { end_tokens, suppress_tokens } = this.settings;
    const changed = { ...PAPER, end_tokens, suppress_tokens, ...settings };
    const prompt = ids ?? this.encoded(text);
    const most = Math.min(max_tokens, this.config.context - prompt.length + 1);
    if (most < 1) throw new Error(`the prompt fills the context of ${this.config.context} tokens`);
    const [trace, state, read] = [new Trace(null, new Set(off)), this.model.start(), prompt.slice(0, -1)];
    const positions = read.map((_, at) => at);
    const mask = cache_mask(0, read.length, read.length);
    if (read.length) this.model.extend(read, state, { positions, mask }, trace);
    const allowed = new Uint8Array(this.model.embedding.table.rows).fill(1, 0, this.config.vocab);
    for (const id of this.banned(changed)) allowed[id] = 0;
    const roles = { bos: null, pad: null, ends: this.ends(changed), allowed };
    const options = { read: read.length, prefix };
    const found = beam_search(extend_by(this.model, state, trace), prompt.at(-1), most, changed, roles, options);
    const hypotheses = found.hypotheses.map((one) => ({ ...one, text: this.tokenizer.decode(one.ids) }));
    return { ids: prompt, bound: most, settings: changed, hypotheses, nodes: found.nodes };
  }

  /** One pass over a text, each intermediate recorded; of one that outgrows the context, over its window. */
  forward({ text, ids, off = [], best = 10 }) {
    const whole = ids ?? this.encoded(text);
    const read = whole.slice(window_start(whole.length, this.config.context));
    const seen = new Map();
    const logits = this.model.call(read, new Trace(seen, new Set(off)));
    seen.set("logits", logits);
    const predictions = best_tokens(logits, best, this.never);
    return { source: read, target: read, unknown: [], cut: whole.length - read.length, predictions, seen };
  }

  /** The ids of a text, behind bos where the tokenizer's file puts it there. */
  encoded(text) {
    const { ids } = encode_text(this.tokenizer, text);
    return this.tokenizer.leads_with_bos ? [this.tokenizer.special.bos, ...ids] : ids;
  }

  reading(off) {
    const key = [...off].sort().join();
    if (!this.readings.has(key)) {
      if (this.readings.size > 4) this.readings.clear();
      this.readings.set(key, new Reading(this.model, new Trace(null, new Set(off))));
    }
    return this.readings.get(key);
  }

  ends(settings) {
    const { eos } = this.tokenizer.special;
    return settings.end_tokens?.length ? settings.end_tokens : eos === null ? [] : [eos];
  }

  /** Tokens that stand for no text and are no end, and those that are suppressed. */
  banned(settings) {
    const { pad, bos, unk, mask, eos } = this.tokenizer.special;
    const is_end = (id) => id === eos || (settings.end_tokens ?? []).includes(id);
    const silent = [pad, bos, unk, mask].filter((id) => id !== null && !is_end(id));
    const beyond = Array.from(
      { length: Math.max(0, this.config.vocab - this.tokenizer.vocab_size) },
      (_, at) => this.tokenizer.vocab_size + at,
    );
    return [...silent, ...beyond, ...(settings.suppress_tokens ?? [])];
  }

  /** What a pass does not predict. */
  get never() {
    return this.banned(this.settings);
  }

  /** @returns {import("../inspect.js").Stack} */
  get stack() {
    const { layers, norm, output } = this.model;
    return { prefix: "", layers, norm, output, project: (hidden) => this.model.project(hidden) };
  }
}
