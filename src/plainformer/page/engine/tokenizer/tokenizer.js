/**
 * A tokenizer: text to ids and back, and which ids are pad, bos, eos, unk and mask (`tokenizer.tokenizer`).
 *
 * It reads a `tokenizer.json` of the components in `normalizers.js`, `pre_tokenizers.js`, `models.js`, `decoders.js`.
 * Encoding adds no special tokens, and never finds any in the text: "</s>" there is four characters.
 */

import { byte_of, to_utf8 } from "./bytes.js";
import { make_decoder, named_bytes } from "./decoders.js";
import { make_model } from "./models.js";
import { make_normalizer } from "./normalizers.js";
import { make_pre_tokenizer } from "./pre_tokenizers.js";

/**
 * @typedef {object} TokenView a token, to be shown
 * @property {number} id
 * @property {string} token as it stands in the vocabulary
 * @property {string} text what it says inside of a text, its space included; "" of a special token
 * @property {number[]} bytes of that text; of a token that is part of a character, its own
 * @property {boolean} special
 */

export class Tokenizer {
  /**
   * @param {object} described
   * @param {object} described.tokenizer the `tokenizer.json`
   * @param {Record<string, number | null>} described.special the id of each role
   * @param {boolean} described.leads_with_bos whether a text stands behind bos
   * @param {import("./regex.js").Characters} described.characters of the classes that its patterns name
   */
  constructor({ tokenizer, special, leads_with_bos, characters }) {
    this.special = special;
    this.leads_with_bos = leads_with_bos;
    this.silent = new Set(Object.values(special).filter((id) => id !== null));
    this.normalize = make_normalizer(tokenizer.normalizer, characters);
    this.cut = make_pre_tokenizer(tokenizer.pre_tokenizer, characters);
    this.model = make_model(tokenizer.model);
    this.decoder = make_decoder(tokenizer.decoder, characters);
    this.is_byte_level = JSON.stringify(tokenizer.decoder ?? null).includes('"ByteLevel"');
    /** @type {string[]} by their ids */
    this.tokens = [];
    for (const [token, id] of this.model.ids) this.tokens[id] = token;
    for (const { id, content } of tokenizer.added_tokens) this.tokens[id] = content;
    this.added = tokenizer.added_tokens.filter((one) => !one.special);
    for (const one of tokenizer.added_tokens) if (one.special) this.silent.add(one.id);
  }

  get vocab_size() {
    return this.tokens.length;
  }

  /** @param {string} text @returns {number[]} its ids; an error where it is not Unicode */
  encode(text) {
    if (/\p{Surrogate}/u.test(text)) throw new Error("the text holds a lone surrogate, which is not valid Unicode");
    return this.pieces(text).flatMap((piece) => (typeof piece === "string" ? this.model.encode(piece) : [piece.id]));
  }

  /** What the model encodes one by one, and the added tokens between. @returns {(string | {id: number})[]} */
  pieces(text) {
    return this.sections(text).flatMap((section, at) => {
      return typeof section === "string" ? this.cut(this.normalize(section), at === 0).filter(Boolean) : [section];
    });
  }

  /** A text between the tokens that were added to a vocabulary and stand for text: the longest first. */
  sections(text) {
    const added = this.added.filter(({ content }) => text.includes(content));
    const sections = [];
    let [start, at] = [0, 0];
    while (added.length && at < text.length) {
      const here = added.filter(({ content }) => text.startsWith(content, at));
      const [found] = here.sort((one, other) => other.content.length - one.content.length);
      if (found === undefined) at++;
      else {
        sections.push(text.slice(start, at), found);
        start = at = at + found.content.length;
      }
    }
    return [...sections, text.slice(start)];
  }

  /** The ids of a text that goes on from something else: nothing is put before it, as before a whole text. */
  encode_inside(text) {
    for (const before of ["\n", "."]) {
      const [alone, whole] = [this.encode(before), this.encode(before + text)];
      if (alone.every((id, at) => whole[at] === id)) return whole.slice(alone.length);
    }
    return this.encode(text);
  }

  /** @param {number[]} ids @returns {string} special tokens are skipped; bytes that are not UTF-8 become U+FFFD */
  decode(ids) {
    const said = ids.filter((id) => !this.silent.has(id) && this.tokens[id] !== undefined);
    return this.decoder(said.map((id) => this.tokens[id])).join("");
  }

  /** @param {number} id @returns {TokenView} */
  view(id) {
    const [token, special] = [this.tokens[id] ?? "", this.silent.has(id)];
    const text = special ? "" : this.text_inside(id);
    const byte = byte_of(token);
    const is_part = text.includes("\ufffd");
    const own = this.is_byte_level ? named_bytes(token) : byte === null ? Array.from(to_utf8(text)) : [byte];
    const bytes = is_part || byte !== null ? own : Array.from(to_utf8(text));
    return { id, token, text, bytes: special ? [] : bytes, special };
  }

  /** What a token says after a letter, since a text may lose the space that it begins with. */
  text_inside(id) {
    this.letter ??= this.tokens.findIndex((_, one) => !this.silent.has(one) && /^\p{L}+$/u.test(this.decode([one])));
    if (this.letter < 0) return this.decode([id]);
    this.said ??= this.decode([this.letter]);
    return this.decode([this.letter, id]).slice(this.said.length);
  }
}
