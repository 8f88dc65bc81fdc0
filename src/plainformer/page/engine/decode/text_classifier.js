/** Texts in, labels out: a classifier with its tokenizer (`decode.text_classifier`). */

import { label_probabilities } from "../inspect.js";
import { position_limit } from "../models/config.js";
import { Classifier } from "../models/encoder.js";
import { Trace } from "../nn/trace.js";
import { encode_text } from "./texts.js";

export class TextClassifier {
  constructor(config, weights, tokenizers, settings) {
    Object.assign(this, { config, settings, tokenizer: tokenizers.source });
    this.model = new Classifier(config, weights);
  }

  /**
   * One pass over a text, each intermediate recorded, with the probability of each label.
   * @param {{text: string, off?: string[]}} asked
   */
  forward({ text, off = [] }) {
    const { read, unknown, cut } = this.encoded(text);
    const seen = new Map();
    const logits = this.model.call(read, new Trace(seen, new Set(off)));
    seen.set("logits", logits);
    return { source: read, target: read, unknown, cut, labels: this.labelled(logits), predictions: [], seen };
  }

  /**
   * What each word adds to the labels: their probabilities in the text without it.
   * @param {{text: string, off?: string[], from?: number, count?: number}} asked so many words, the first by its number
   */
  without_each_word({ text, off = [], from = 0, count = Infinity }) {
    const words = text.match(/\P{White_Space}+\p{White_Space}*/gu) ?? [];
    const trace = new Trace(null, new Set(off));
    return words.slice(from, from + count).map((word, at) => {
      const rest = words.filter((_, other) => other !== from + at).join("").trim();
      return { word: word.trim(), labels: rest ? this.labelled(this.model.call(this.encoded(rest).read, trace)) : [] };
    });
  }

  /** The stack whose stream is pooled and becomes the logits of the labels. */
  get pooled() {
    const { encoder, pooling, output } = this.model;
    const { layers, norm, embedding_norm } = encoder;
    return { prefix: "", layers, norm, embedding_norm, pooling, output };
  }

  encoded(text) {
    if (text.trim() === "") throw new Error("the text is empty");
    const most = Math.min(this.settings.max_tokens || Infinity, position_limit(this.config));
    const { truncate } = this.settings;
    const { ids, unknown, cut } = encode_text(this.tokenizer, text, most, { truncate });
    const { bos, eos } = this.tokenizer.special;
    return { read: this.config.add_cls_sep ? [bos, ...ids, eos] : ids, unknown, cut };
  }

  labelled(logits) {
    const probabilities = label_probabilities(logits);
    return this.config.labels.map((label, at) => ({ label, probability: probabilities[at], logit: logits.data[at] }));
  }
}
