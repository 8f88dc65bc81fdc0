/**
 * Going on with a text, token after token of a language model (`decode.sampling_loop`).
 *
 * A text that outgrows the context is seen through a window, which drops its first half, again and again; what stays is
 * read anew.
 */

import { cache_mask } from "../equations/masks.js";
import { log_softmax } from "../equations/softmax.js";
import { NO_TRACE } from "../nn/trace.js";
import { penalise_repetition } from "./constraints.js";
import { fold_in, key } from "./random.js";
import { sample, what_is_kept } from "./sampling.js";

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
  return drawn_token(reading.next_logits(text), text, settings, banned);
}

/**
 * The same of logits that are known. @param {Float32Array} next_logits @param {number} place of the token in its text
 */
export function drawn_token(next_logits, text, settings, banned, place = text.length) {
  const logits = penalise_repetition(next_logits, text, settings.repetition_penalty).slice();
  for (const token of banned) logits[token] = -Infinity;
  return { token: sample(logits, fold_in(fold_in(key(settings.seed), 0), place), settings), logits };
}

/**
 * @typedef {object} NextToken
 * @property {number} id
 * @property {number} probability as the model has it, at temperature 1 and with nothing cut
 * @property {number} drawn the probability with which it is drawn; 0 of one that is cut
 * @property {"temperature" | "top_k" | "top_p" | "min_p" | null} cut the setting that leaves it out
 *
 * @typedef {Record<string, {tokens: number, probability: number}>} Cuts how many tokens a setting cuts, and how much
 *   probability they have together, by the setting's name
 */

/**
 * What there was to draw from.
 * @param {{token: number, logits: Float32Array}} drawn
 * @param {object} settings
 * @param {number} best
 * @returns {{predictions: NextToken[], kept: number, cuts: Cuts}} the `best` predictions and that of the token, how
 *   many tokens can be drawn, and what each setting cut
 */
export function next_tokens({ token, logits }, settings, best) {
  const { kept, cut } = what_is_kept(logits, settings);
  const order = [...kept.keys(), ...cut.keys()];
  const logprobs = log_softmax(logits); // at temperature 1
  const shown = order.filter((id, place) => place < best || id === token).map((id) => {
    return { id, probability: Math.exp(logprobs[id]), drawn: kept.get(id) ?? 0, cut: cut.get(id) ?? null };
  });
  const cuts = {};
  for (const [id, setting] of cut) {
    cuts[setting] ??= { tokens: 0, probability: 0 };
    cuts[setting].tokens += 1;
    cuts[setting].probability += Math.exp(logprobs[id]);
  }
  return { predictions: shown, kept: kept.size, cuts };
}
