/**
 * Which tokens are changed or banned before the search chooses among them (`decode.constraints`).
 *
 * A ban takes a token away and leaves the others' log-probabilities alone, so that a hypothesis found under bans still
 * has the score that the model gives it. The repetition penalty changes scores; in a full beam it is one of
 * log-probabilities, as in the Hugging Face library, which then do not sum to 1.
 */

import { log_softmax } from "../equations/softmax.js";
import { is_full } from "./settings.js";

/**
 * @typedef {object} Roles
 * @property {number | null} bos what a sequence begins with
 * @property {number | null} pad what fills a batch
 * @property {number[]} ends tokens of which each ends a sequence, the one to force first
 * @property {Uint8Array} allowed (rows) 1 on tokens that may be generated
 */

/**
 * Log-probabilities (nats) of the next token after `ids`, -Infinity for banned tokens.
 * @param {Float32Array} logits (rows)
 * @param {number[]} ids generated so far
 * @param {object} settings
 * @param {Roles} roles
 * @param {boolean} last whether the bound is reached with this token
 * @returns {Float32Array} (rows)
 */
export function next_logprobs(logits, ids, settings, roles, last) {
  const forced = last && settings.forced_eos ? roles.ends[0] : ids.length === 0 ? settings.forced_bos : null;
  if (forced !== null && forced !== undefined)
    return Float32Array.from(logits, (_, token) => (token === forced ? 0 : -Infinity));
  const possible = possible_tokens(ids, settings, roles);
  const penalises_logprobs = is_full(settings) && settings.repetition_penalty !== 1;
  logits = penalise_repetition(penalises_logprobs ? log_softmax(logits) : logits, ids, settings.repetition_penalty);
  if (penalises_logprobs && !settings.renormalize_logits) return only(possible, logits);
  const logprobs = log_softmax(settings.renormalize_logits ? only(possible, logits.slice()) : logits);
  return only(possible, logprobs);
}

/** The numbers, which are changed: -Infinity where a token is not possible. */
function only(possible, numbers) {
  for (let token = 0; token < numbers.length; token++) if (possible[token] === 0) numbers[token] = -Infinity;
  return numbers;
}

/** 1 on the tokens that are in the vocabulary, banned by no setting, and complete no n-gram that is there already. */
function possible_tokens(ids, settings, roles) {
  const { ends } = roles;
  const possible = roles.allowed.slice();
  for (const role of [roles.bos, roles.pad]) if (role !== null && !ends.includes(role)) possible[role] = 0;
  for (const token of repeated_ngrams(ids, settings.no_repeat_ngram)) if (!ends.includes(token)) possible[token] = 0;
  if (ids.length + 1 < settings.min_tokens && possible.some((one, token) => one && !ends.includes(token)))
    for (const end of ends) possible[end] = 0;
  return possible;
}

/**
 * The tokens that, generated next, would complete an n-gram already among `ids`.
 * @param {number[]} ids
 * @param {number} n 0 bans nothing
 * @returns {number[]}
 */
export function repeated_ngrams(ids, n) {
  if (!n || ids.length < n) return [];
  const suffix = ids.slice(ids.length - n + 1).join();
  return ids.filter((_, at) => at >= n - 1 && ids.slice(at - n + 1, at).join() === suffix);
}

/**
 * Make tokens among `ids` less likely: positive logits divided by the penalty, negative ones multiplied (Keskar et al.
 * 2019, section 4.1).
 */
export function penalise_repetition(logits, ids, penalty) {
  if (penalty === 1) return logits;
  const changed = logits.slice();
  for (const token of new Set(ids))
    changed[token] = logits[token] > 0 ? logits[token] / penalty : logits[token] * penalty;
  return changed;
}
