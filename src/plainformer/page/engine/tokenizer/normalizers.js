/** What is done to a text before it is cut: the `normalizer` of a `tokenizer.json`. */

import { one_of, quoted, to_regex } from "./regex.js";

/** @typedef {(text: string) => string} Normalizer */

/** @type {Record<string, (settings: object, characters: import("./regex.js").Characters) => Normalizer>} */
export const NORMALIZERS = {
  Sequence: ({ normalizers }, characters) => {
    const steps = normalizers.map((one) => make_normalizer(one, characters));
    return (text) => steps.reduce((changed, step) => step(changed), text);
  },
  Prepend: ({ prepend }) => (text) => (text === "" ? "" : prepend + text),
  Replace: ({ pattern, content }, characters) => {
    const regex = pattern_of(pattern, characters);
    return (text) => text.replace(regex, () => content);
  },
  Strip: ({ strip_left, strip_right }) => {
    const ends = [strip_left && "^\\p{White_Space}+", strip_right && "\\p{White_Space}+$"].filter(Boolean);
    return ends.length ? (text) => text.replace(new RegExp(ends.join("|"), "gu"), "") : (text) => text;
  },
  NFC: () => (text) => text.normalize("NFC"),
  NFD: () => (text) => text.normalize("NFD"),
  NFKC: () => (text) => text.normalize("NFKC"),
  NFKD: () => (text) => text.normalize("NFKD"),
  Lowercase: () => lowercase,
  StripAccents: () => (text) => text.replace(/\p{M}/gu, ""),
  BertNormalizer: (settings, characters) => {
    const [control, accent] = [one_of(characters, "control"), one_of(characters, "accent")];
    return (text) => bert(text, settings, control, accent);
  },
};

/** @param {object | null} described @returns {Normalizer} an error names what cannot be read */
export function make_normalizer(described, characters) {
  if (described === null) return (text) => text;
  const make = NORMALIZERS[described.type];
  if (make === undefined) throw new Error(`the tokenizer's normalizer ${described.type} cannot be read here`);
  return make(described, characters);
}

/** @param {{String?: string, Regex?: string}} pattern @returns {RegExp} */
export function pattern_of(pattern, characters) {
  return "String" in pattern ? new RegExp(quoted(pattern.String), "gu") : to_regex(pattern.Regex, characters);
}

/** Character by character, without regard to where in a word a character stands (as a final sigma). */
function lowercase(text) {
  return Array.from(text, (character) => character.toLowerCase()).join("");
}

// What Unicode calls ideographs of Chinese, Japanese and Korean, but for the last extensions.
const CHINESE = new RegExp(
  "[\\u4e00-\\u9fff\\u3400-\\u4dbf\\u{20000}-\\u{2a6df}\\u{2a700}-\\u{2b73f}\\u{2b740}-\\u{2b81f}" +
    "\\u{2b920}-\\u{2ceaf}\\uf900-\\ufaff\\u{2f800}-\\u{2fa1f}]",
  "gu",
);

/** BERT's (Devlin et al. 2019): control characters out, Chinese ones words of their own, accents and case off. */
function bert(text, { clean_text, handle_chinese_chars, strip_accents, lowercase: lower }, control, accent) {
  if (clean_text) text = text.replace(control, "").replace(/\p{White_Space}/gu, " ");
  if (handle_chinese_chars) text = text.replace(CHINESE, " $& ");
  if (strip_accents ?? lower) text = text.normalize("NFD").replace(accent, "");
  return lower ? lowercase(text) : text;
}
