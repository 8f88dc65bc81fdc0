/** A text with a gap in, what could stand there out: a masked language model (`decode.mask_filler`). */

import { best_tokens } from "../inspect.js";
import { position_limit } from "../models/config.js";
import { MaskedLanguageModel } from "../models/encoder.js";
import { Trace } from "../nn/trace.js";
import { check_known, unknown_characters } from "./texts.js";

export class MaskFiller {
  constructor(config, weights, tokenizers, settings) {
    Object.assign(this, { config, settings, tokenizer: tokenizers.source });
    this.model = new MaskedLanguageModel(config, weights);
  }

  /** How a gap is written in a text. */
  get mask() {
    const { mask } = this.tokenizer.special;
    return mask === null ? null : this.tokenizer.tokens[mask];
  }

  /**
   * One pass over a text, each intermediate recorded, with what could stand at each place.
   * @param {{text: string, off?: string[], best?: number}} asked
   */
  forward({ text, off = [], best = 10 }) {
    const { ids, unknown, cut } = this.encoded(text);
    const { bos, eos } = this.tokenizer.special;
    const read = this.config.add_cls_sep ? [bos, ...ids, eos] : ids;
    const seen = new Map();
    const logits = this.model.call(read, new Trace(seen, new Set(off)));
    seen.set("logits", logits);
    const gaps = read.flatMap((id, at) => (id === this.tokenizer.special.mask ? [at] : []));
    const predictions = best_tokens(logits, best, this.never);
    return { source: read, target: read, unknown, cut, gaps, predictions, seen };
  }

  /** What a pass does not predict: the rows of the table that stand for no text. */
  get never() {
    const [first, rows] = [this.tokenizer.vocab_size, this.config.vocab];
    return [...this.tokenizer.silent, ...Array.from({ length: Math.max(0, rows - first) }, (_, at) => first + at)];
  }

  /** The ids of a text with gaps. Its parts are encoded by themselves: no text ever becomes a special token. */
  encoded(text) {
    const parts = this.mask === null ? [text] : text.split(this.mask);
    const ids = [];
    parts.forEach((part, number) => {
      const is_before_gap = number < parts.length - 1;
      const own = is_before_gap && this.words_have_spaces && part.endsWith(" ") ? part.slice(0, -1) : part;
      const own_ids = number ? this.tokenizer.encode_inside(own) : this.tokenizer.encode(own);
      check_known(unknown_characters(this.tokenizer, own, own_ids));
      ids.push(...own_ids, ...(is_before_gap ? [this.tokenizer.special.mask] : []));
    });
    if (ids.length === 0 || text.trim() === "") throw new Error("the text is empty");
    const most = position_limit(this.config);
    return { ids: ids.slice(0, most), unknown: [], cut: Math.max(0, ids.length - most) };
  }

  /** Whether tokens begin with the space before their word, which a gap then stands for as well. */
  get words_have_spaces() {
    this.found ??= this.tokenizer.tokens.some((_, id) => /^ .*\S/su.test(this.tokenizer.view(id).text));
    return this.found;
  }

  /** @returns {import("../inspect.js").Stack} */
  get stack() {
    const { encoder, output } = this.model;
    const project = (hidden) => this.model.project(hidden);
    const { layers, norm, embedding_norm } = encoder;
    return { prefix: "", layers, norm, embedding_norm, transform: this.model.transform, output, project };
  }
}
