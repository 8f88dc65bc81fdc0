/**
 * Going on with a text, token after token of a language model (`decode.sampling_loop`).
 *
 * A text that outgrows the context is seen through a window, which drops its first half, again and again; what stays is
 * read anew.
 */

import { cache_mask } from "../equations/masks.js";
import { NO_TRACE } from "../nn/trace.js";
import { penalise_repetition } from "./constraints.js";
import { fold_in, key } from "./random.js";
import { sample } from "./sampling.js";

/**
 * Where the window begins that the token after `known` ones is predicted from (`decode.sliding_window`).
 * @param {number} known
 * @param {number} context
 * @returns {number}
 */
export function window_start(known, context) {
  const half = Math.ceil(context / 2);
  return half * Math.max(0, Math.ceil((known - context) / half));
}

/** A text that a language model has read, and can read on: what is asked twice is not computed twice. */
export class Reading {
  /**
   * @param {import("../models/language_model.js").LanguageModel} model
   * @param {import("../nn/trace.js").Trace} trace what is left out
   */
  constructor(model, trace = NO_TRACE) {
    Object.assign(this, { model, trace, state: model.start(), start: 0 });
    /** @type {number[]} what the caches hold */
    this.ids = [];
  }

  /**
   * The logits of the token after `text`.
   * @param {number[]} text at least one token
   * @returns {Float32Array} (rows)
   */
  next_logits(text) {
    const start = window_start(text.length, this.model.config.context);
    const seen = text.slice(start);
    let same = start === this.start ? 0 : -1;
    while (same >= 0 && same < Math.min(this.ids.length, seen.length - 1) && this.ids[same] === seen[same]) same++;
    if (same < 0) this.state = this.model.start();
    same = Math.max(same, 0);
    for (const cache of this.state.caches) cache.truncate(Math.min(same, cache.length));
    const fresh = seen.slice(same);
    const positions = fresh.map((_, at) => same + at);
    const mask = cache_mask(same, seen.length, fresh.length);
    const logits = this.model.extend(fresh, this.state, { positions, mask }, this.trace);
    Object.assign(this, { ids: seen, start });
    return logits.row(logits.rows - 1);
  }
}

/**
 * The token after `text`, as the settings draw it: that of a place is drawn with the key of that place.
 * @param {Reading} reading
 * @param {number[]} text
 * @param {object} settings as `SamplingSettings`
 * @param {number[]} banned ids that are never written
 * @returns {{token: number, logits: Float32Array}} the token, and the logits that it was drawn from
 */
export function next_token(reading, text, settings, banned) {
  const logits = penalise_repetition(reading.next_logits(text), text, settings.repetition_penalty).slice();
  for (const token of banned) logits[token] = -Infinity;
  return { token: sample(logits, fold_in(fold_in(key(settings.seed), 0), text.length), settings), logits };
}
