/** How a text is cut into pieces, which tokens do not cross: the `pre_tokenizer` of a `tokenizer.json`. */

import { BYTE_NAMES, to_utf8 } from "./bytes.js";
import { pattern_of } from "./normalizers.js";
import { one_of, to_regex } from "./regex.js";

/** @typedef {(piece: string, is_first: boolean) => string[]} PreTokenizer `is_first`: that it begins the text */

// GPT-2's rule: endings of English, words, numbers and signs with the space before them, white space.
const GPT2 = "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
const WORDS = /[\p{Alphabetic}\p{M}\p{Nd}\p{Pc}]+|[^\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{White_Space}]+/gu;
const SPACE = /\p{White_Space}/gu;

/** @type {Record<string, (settings: object, characters: import("./regex.js").Characters) => PreTokenizer>} */
export const PRE_TOKENIZERS = {
  Sequence: ({ pretokenizers }, characters) => {
    const steps = pretokenizers.map((one) => make_pre_tokenizer(one, characters));
    return (text, is_first) =>
      steps.reduce((pieces, cut) => pieces.flatMap((piece, at) => cut(piece, is_first && at === 0)), [text]);
  },
  Split: ({ pattern, behavior, invert }, characters) => {
    const regex = pattern_of(pattern, characters);
    return (text) => split(text, regex, behavior, invert);
  },
  ByteLevel: ({ add_prefix_space, use_regex = true }, characters) => {
    const regex = use_regex ? to_regex(GPT2, characters) : null;
    return (text) => {
      const led = add_prefix_space && !text.startsWith(" ") ? ` ${text}` : text;
      const pieces = regex === null ? [led] : split(led, regex, "Isolated");
      return pieces.map((piece) => Array.from(to_utf8(piece), (byte) => BYTE_NAMES[byte]).join(""));
    };
  },
  Metaspace: ({ replacement, prepend_scheme = "always", split: splits = true }) => (text, is_first) => {
    const marked = text.replaceAll(" ", replacement);
    const leads = prepend_scheme === "always" || (prepend_scheme === "first" && is_first);
    const led = leads && !marked.startsWith(replacement) ? replacement + marked : marked;
    return splits ? split(led, pattern_of({ String: replacement }), "MergedWithNext") : [led];
  },
  Whitespace: () => (text) => text.match(WORDS) ?? [],
  WhitespaceSplit: () => (text) => split(text, SPACE, "Removed"),
  BertPreTokenizer: (_, characters) => {
    const sign = one_of(characters, "punctuation");
    return (text) => split(text, SPACE, "Removed").flatMap((piece) => split(piece, sign, "Isolated"));
  },
  Punctuation: ({ behavior = "Isolated" }, characters) => {
    const sign = one_of(characters, "punctuation");
    return (text) => split(text, sign, behavior);
  },
  Digits: ({ individual_digits }) => (text) => split(text, /\p{N}/gu, individual_digits ? "Isolated" : "Contiguous"),
};

/** @param {object | null} described @returns {PreTokenizer} an error names what cannot be read */
export function make_pre_tokenizer(described, characters) {
  if (described === null) return (text) => [text];
  const make = PRE_TOKENIZERS[described.type];
  if (make === undefined) throw new Error(`the tokenizer's pre-tokenizer ${described.type} cannot be read here`);
  return make(described, characters);
}

/**
 * A text cut where a pattern matches.
 * @param {string} text
 * @param {RegExp} regex
 * @param {string} behavior what becomes of the matches: `Removed`, `Isolated`, `Contiguous` (neighbours stay together),
 *   `MergedWithPrevious`, `MergedWithNext`
 * @param {boolean} invert whether what does not match is taken for what does
 * @returns {string[]}
 */
export function split(text, regex, behavior, invert = false) {
  const parts = matches(text, regex).map(([part, is_match]) => [part, is_match !== invert]);
  if (behavior === "Removed") return parts.flatMap(([part, is_match]) => (is_match ? [] : [part]));
  if (behavior === "Isolated") return parts.map(([part]) => part);
  const backward = behavior === "MergedWithNext";
  const pieces = [];
  let before = false;
  for (const [part, is_match] of backward ? parts.reverse() : parts) {
    const joins = behavior === "Contiguous" ? is_match === before : is_match && !before;
    if (joins && pieces.length) pieces.push(backward ? part + pieces.pop() : pieces.pop() + part);
    else pieces.push(part);
    before = is_match;
  }
  return backward ? pieces.reverse() : pieces;
}

/** The parts of a text, and whether each is a match; none of them is empty. */
function matches(text, regex) {
  const parts = [];
  let end = 0;
  for (const found of text.matchAll(regex)) {
    parts.push([text.slice(end, found.index), false], [found[0], true]);
    end = found.index + found[0].length;
  }
  return [...parts, [text.slice(end), false]].filter(([part]) => part !== "");
}
