/**
 * Beam search (Wu et al. 2016, section 7; the paper's section 6.1) of one sentence, and the tree that it went through.
 *
 * `decode/beam.py` has the definition, in words; `decode/reference.py` spells it out. The rows of a beam are tokens
 * side by side in one sequence: each step writes one place of the caches for each row, and a mask lets a row see the
 * places of its own ancestors.
 */

import { ancestor_mask } from "../equations/masks.js";
import { top_k } from "../equations/softmax.js";
import { next_logprobs } from "./constraints.js";
import { is_full, length_weights } from "./settings.js";

/**
 * @typedef {object} BeamNode one extension that was looked at; a path from the root down is a hypothesis
 * @property {number} id its place in the list of nodes
 * @property {number} parent id of the node that it extends, -1 of the root
 * @property {number} step tokens from the root to here
 * @property {number} token
 * @property {number} logprob of this token, in nats
 * @property {number} total of all tokens down to here
 * @property {number} score `total` over the length penalty
 * @property {"live" | "finished" | "pruned"} fate
 * @property {string | null} reason why it was pruned, or went no further
 */

/**
 * @typedef {object} Hypothesis as `decode.protocols` has it
 * @property {number[]} ids without beginning and end of sentence
 * @property {number} score
 * @property {number} logprob
 * @property {boolean} finished false where the bound cut it
 * @property {number} node its last node
 */

/**
 * @typedef {(tokens: number[], places: number[][], positions: number[]) => Float32Array[]} Extend
 * the logits after each of the rows' last tokens; `places` are those of the caches that each row sees, its own among
 * them, and `positions` say where the tokens stand
 */

/**
 * The `n_best` hypotheses, best first, and every extension that was looked at.
 * @param {Extend} extend
 * @param {number} first the token that the search begins with
 * @param {number} bound the most tokens, end of sentence included
 * @param {object} settings as `GenerationSettings`
 * @param {import("./constraints.js").Roles} roles
 * @param {{read?: number, shown?: number, prefix?: number[]}} [options] places of the caches that every row sees from
 *   the beginning; how many extensions beside the beam are kept in the tree; tokens that every hypothesis begins with
 * @returns {{hypotheses: Hypothesis[], nodes: BeamNode[]}}
 */
export function beam_search(extend, first, bound, settings, roles, { read = 0, shown, prefix = [] } = {}) {
  const search = new BeamSearch(extend, bound, settings, roles, { read, shown: shown ?? settings.beam_size, prefix });
  const root = search.node(null, first, 0, 0, "live");
  let live = [{ node: root, ids: [], places: upto(read), total: 0 }];
  for (let step = 1; step <= bound && live.length > 0; step++) live = search.step(live, step);
  const finished = search.finished.slice(0, settings.n_best);
  return { hypotheses: finished.map(({ ended, ...one }) => ({ ...one, finished: ended })), nodes: search.nodes };
}

class BeamSearch {
  constructor(extend, bound, settings, roles, options) {
    Object.assign(this, { extend, bound, settings, roles, ...options });
    this.weights = length_weights(settings, bound);
    this.is_full = is_full(settings);
    /** @type {BeamNode[]} */
    this.nodes = [];
    this.finished = [];
    this.places = this.read; // written in the caches
  }

  /** One more token in each live hypothesis: those that live on. */
  step(live, step) {
    const extensions = this.extensions(live, step);
    const width = this.is_full
      ? (1 + this.roles.ends.length) * this.settings.beam_size
      : this.settings.beam_size - this.finished.length;
    const survivors = [];
    extensions.forEach(({ parent, token, logprob, total }, place) => {
      const node = this.node(parent.node, token, logprob, total, "live");
      if (place >= width) return this.end(node, "pruned", this.outside(extensions[width - 1], width));
      const ids = [...parent.ids, token];
      if (!this.roles.ends.includes(token) && step < this.bound)
        return survivors.push({ node, ids, places: parent.places, total });
      if (place < this.settings.beam_size) return this.finish(node, ids, total, step);
      return this.end(node, "pruned", `ended, but ${place} others were better`);
    });
    survivors.splice(this.settings.beam_size).forEach(({ node }) => this.end(node, "pruned", "the beam was full"));
    this.finished.sort((one, other) => other.score - one.score); // stable: among equals the earlier comes first
    if (this.is_full) this.finished.splice(this.settings.beam_size);
    return this.goes_on(survivors, step) ? survivors : this.stop(survivors);
  }

  /** The best extensions of all live hypotheses, best first; the lower row first among equals, then the lower token. */
  extensions(live, step) {
    const own = live.map((_, row) => this.places + row);
    const rows = live.map(({ places }, row) => [...places, own[row]]);
    const tokens = live.map(({ node }) => this.nodes[node].token);
    const logits = this.extend(tokens, rows, live.map(() => this.read + step - 1));
    this.places += live.length;
    const number = (1 + this.roles.ends.length) * this.settings.beam_size + this.shown;
    const candidates = live.flatMap((parent, row) => {
      parent.places = rows[row];
      const logprobs = this.logprobs(logits[row], parent.ids, step);
      const totals = logprobs.map((logprob) => parent.total + logprob);
      return top_k(totals, number).map((token) => ({ parent, token, logprob: logprobs[token], total: totals[token] }));
    });
    const width = this.is_full ? number - this.shown : this.settings.beam_size - this.finished.length;
    return candidates.sort((one, other) => other.total - one.total).slice(0, width + this.shown); // a stable sort
  }

  /** Log-probabilities of the next token; that of a prefix is the only one possible, at its own price. */
  logprobs(logits, ids, step) {
    const given = this.prefix[step - 1];
    if (given === undefined) return next_logprobs(logits, ids, this.settings, this.roles, step === this.bound);
    const all = { ...this.roles, allowed: this.roles.allowed.map(() => 1), bos: null, pad: null };
    const free = { ...this.settings, forced_bos: null, forced_eos: false, min_tokens: 0, no_repeat_ngram: 0 };
    const logprobs = next_logprobs(logits, ids, free, all, false);
    return logprobs.map((logprob, token) => (token === given ? logprob : -Infinity));
  }

  /** Whether a live hypothesis can still displace one of those that are wanted, or, in a full beam, is let. */
  goes_on(survivors, step) {
    if (survivors.length === 0) return false;
    const [now, last] = [this.weights[step], this.weights[this.bound]];
    const { n_best, beam_size, early_stopping } = this.settings;
    if (!this.is_full) {
      const needed = this.finished[n_best - 1]?.score ?? -Infinity;
      return survivors.some(({ total }) => Math.fround(total * Math.min(now, last)) > needed);
    }
    if (this.finished.length < beam_size) return true;
    if (early_stopping === "first") return false;
    const hoped = survivors[0].total * (early_stopping === "never" ? Math.min(now, last) : now);
    return Math.fround(hoped) > this.finished[beam_size - 1].score;
  }

  stop(survivors) {
    for (const { node } of survivors) this.end(node, "pruned", "the search had ended: it could no longer win");
    return [];
  }

  finish(node, ids, total, step) {
    const ended = this.roles.ends.includes(ids[ids.length - 1]);
    const score = Math.fround(total * this.weights[step]);
    this.end(node, "finished", ended ? null : "the length bound was reached");
    this.finished.push({ ids: ended ? ids.slice(0, -1) : ids, score, logprob: total, ended, node });
  }

  end(node, fate, reason) {
    Object.assign(this.nodes[node], { fate, reason });
  }

  outside(last, width) {
    return `${width} others were better, the last of them with ${last.total.toFixed(2)}`;
  }

  /** @returns {number} the id of a new node */
  node(parent, token, logprob, total, fate) {
    const [id, step] = [this.nodes.length, parent === null ? 0 : this.nodes[parent].step + 1];
    const score = Math.fround(total * this.weights[step]);
    this.nodes.push({ id, parent: parent ?? -1, step, token, logprob, total, score, fate, reason: null });
    return id;
  }
}

/**
 * `Extend` by a model and its state: the rows of a beam are tokens side by side in one sequence.
 * @param {{extend: Function}} model
 * @param {object} state of the model
 * @param {import("../nn/trace.js").Trace} trace what is left out
 * @returns {Extend}
 */
export function extend_by(model, state, trace) {
  return (tokens, places, positions) => {
    const mask = ancestor_mask(places, state.caches.length ? places[places.length - 1].at(-1) + 1 : 0);
    const logits = model.extend(tokens, state, { positions, mask }, trace);
    return tokens.map((_, row) => logits.row(row));
  };
}

function upto(number) {
  return Array.from({ length: number }, (_, at) => at);
}
