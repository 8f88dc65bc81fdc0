/** A piece to the ids of its tokens: the `model` of a `tokenizer.json`. */

import { to_utf8 } from "./bytes.js";

/**
 * @typedef {object} Vocabulary
 * @property {Map<string, number>} ids of each token
 * @property {(piece: string) => number[]} encode
 */

/** @type {Record<string, (settings: object) => Vocabulary>} */
export const MODELS = {
  BPE: (settings) => new BytePairEncoding(settings),
  WordLevel: ({ vocab, unk_token }) => {
    const ids = new Map(Object.entries(vocab));
    return { ids, encode: (piece) => [ids.get(piece) ?? ids.get(unk_token)].filter((id) => id !== undefined) };
  },
  WordPiece: (settings) => {
    const ids = new Map(Object.entries(settings.vocab));
    return { ids, encode: (piece) => longest_pieces(piece, ids, settings) };
  },
};

/** @param {object} described @returns {Vocabulary} an error names what cannot be read */
export function make_model(described) {
  const make = MODELS[described.type];
  if (make === undefined) throw new Error(`the tokenizer's model ${described.type} cannot be read here`);
  return make(described);
}

/**
 * Byte-pair encoding (Sennrich, Haddow and Birch 2016): of all neighbours the pair that was learnt first is merged, the
 * leftmost first, again and again.
 */
class BytePairEncoding {
  constructor(settings) {
    const { vocab, merges, continuing_subword_prefix: prefix, end_of_word_suffix: suffix } = settings;
    this.ids = new Map(Object.entries(vocab));
    this.base = Math.max(-1, ...this.ids.values()) + 1;
    Object.assign(this, { settings, prefix: prefix ?? "", suffix: suffix ?? "" });
    /** @type {Map<number, [number, number]>} rank and id of the merge of a pair */
    this.merges = new Map();
    merges.forEach((merge, rank) => {
      const [left, right] = typeof merge === "string" ? merge.split(" ") : merge;
      const id = this.ids.get(left + right.slice(this.prefix.length));
      this.merges.set(this.pair(this.ids.get(left), this.ids.get(right)), [rank, id]);
    });
  }

  pair(left, right) {
    return left * this.base + right;
  }

  /** @param {string} piece @returns {number[]} */
  encode(piece) {
    const whole = this.settings.ignore_merges ? this.ids.get(piece) : undefined;
    return whole === undefined ? this.merged(this.symbols(piece)) : [whole];
  }

  /** The ids of a piece's characters: bytes, or unknown, where the vocabulary does not have one. */
  symbols(piece) {
    const characters = Array.from(piece);
    const { unk_token, fuse_unk, byte_fallback } = this.settings;
    const unknown = unk_token === null ? undefined : this.ids.get(unk_token);
    const symbols = [];
    let is_unknown = false; // that the last character was, which is then still to be written
    const write_unknown = () => {
      if (is_unknown) symbols.push(unknown);
      is_unknown = false;
    };
    characters.forEach((character, at) => {
      const symbol = (at ? this.prefix : "") + character + (at === characters.length - 1 ? this.suffix : "");
      const id = this.ids.get(symbol);
      const bytes = id === undefined && byte_fallback ? this.bytes(symbol) : null;
      if (id !== undefined) {
        write_unknown();
        symbols.push(id);
      } else if (bytes !== null) symbols.push(...bytes);
      else if (unknown !== undefined) {
        if (!fuse_unk) write_unknown();
        is_unknown = true;
      }
    });
    write_unknown();
    return symbols;
  }

  /** The tokens of a symbol's bytes, "<0x0A>"; null where one is missing. */
  bytes(symbol) {
    const names = Array.from(to_utf8(symbol), (byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
    const ids = names.map((name) => this.ids.get(name));
    return ids.includes(undefined) ? null : ids;
  }

  merged(symbols) {
    const rank = (at) => this.merges.get(this.pair(symbols[at], symbols[at + 1]))?.[0] ?? Infinity;
    const ranks = symbols.slice(1).map((_, at) => rank(at));
    for (;;) {
      let best = 0;
      for (let at = 1; at < ranks.length; at++) if (ranks[at] < ranks[best]) best = at;
      if (!(ranks[best] < Infinity)) return symbols;
      symbols.splice(best, 2, this.merges.get(this.pair(symbols[best], symbols[best + 1]))[1]);
      ranks.splice(best, 1);
      for (const at of [best - 1, best]) if (at >= 0 && at < ranks.length) ranks[at] = rank(at);
    }
  }
}

/** WordPiece (Devlin et al. 2019): the longest token that the piece begins with, and so on; else unknown as a whole. */
function longest_pieces(piece, ids, { unk_token, continuing_subword_prefix: prefix, max_input_chars_per_word: most }) {
  const characters = Array.from(piece);
  const found = [];
  for (let start = 0; start < characters.length; ) {
    let end = characters.length > most ? start : characters.length;
    const token = () => (start ? prefix : "") + characters.slice(start, end).join("");
    while (end > start && !ids.has(token())) end--;
    if (end === start) return [ids.get(unk_token)];
    found.push(ids.get(token()));
    start = end;
  }
  return found;
}
