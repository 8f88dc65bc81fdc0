/** Tokens to their text: the `decoder` of a `tokenizer.json`, in steps from tokens to tokens. */

import { NAMED_BYTES, byte_of, from_utf8, from_whole_utf8, to_utf8 } from "./bytes.js";
import { pattern_of } from "./normalizers.js";

/** @typedef {(tokens: string[]) => string[]} Decoder */

/** @type {Record<string, (settings: object, characters: import("./regex.js").Characters) => Decoder>} */
export const DECODERS = {
  Sequence: ({ decoders }, characters) => {
    const steps = decoders.map((one) => make_decoder(one, characters));
    return (tokens) => steps.reduce((changed, step) => step(changed), tokens);
  },
  Fuse: () => (tokens) => [tokens.join("")],
  Strip: ({ content, start, stop }) => (tokens) => tokens.map((token) => stripped(token, content, start, stop)),
  Replace: ({ pattern, content }, characters) => {
    const regex = pattern_of(pattern, characters);
    return (tokens) => tokens.map((token) => token.replace(regex, () => content));
  },
  ByteFallback: () => from_fallen_back,
  ByteLevel: () => (tokens) => [from_utf8(tokens.flatMap(named_bytes))],
  Metaspace: ({ replacement, prepend_scheme = "always" }) => (tokens) =>
    tokens.map((token, at) => {
      const leads = at === 0 && prepend_scheme !== "never" && token.startsWith(replacement);
      return (leads ? token.slice(replacement.length) : token).replaceAll(replacement, " ");
    }),
  WordPiece: ({ prefix, cleanup }) => (tokens) =>
    tokens.map((token, at) => {
      const joined = at === 0 ? token : token.startsWith(prefix) ? token.slice(prefix.length) : ` ${token}`;
      return cleanup ? cleaned(joined) : joined;
    }),
};

/** @param {object | null} described @returns {Decoder} an error names what cannot be read */
export function make_decoder(described, characters) {
  if (described === null) return (tokens) => [tokens.join(" ")];
  const make = DECODERS[described.type];
  if (make === undefined) throw new Error(`the tokenizer's decoder ${described.type} cannot be read here`);
  return make(described, characters);
}

/** @param {string} token of a vocabulary of GPT-2's kind @returns {number[]} */
export function named_bytes(token) {
  const bytes = Array.from(token, (name) => NAMED_BYTES.get(name));
  return bytes.includes(undefined) ? Array.from(to_utf8(token)) : bytes;
}

/** Runs of bytes as their text, or as many U+FFFD where a run is not UTF-8. */
function from_fallen_back(tokens) {
  const found = [];
  let run = [];
  const write_run = () => {
    if (run.length) found.push(from_whole_utf8(run) ?? "\ufffd".repeat(run.length));
    run = [];
  };
  for (const token of tokens) {
    const byte = byte_of(token);
    if (byte !== null) run.push(byte);
    else {
      write_run();
      found.push(token);
    }
  }
  write_run();
  return found;
}

/** A token without as many as `start` of a character at its beginning, and `stop` at its end. */
function stripped(token, content, start, stop) {
  const characters = Array.from(token);
  let [first, last] = [0, characters.length];
  while (first < start && characters[first] === content) first++;
  while (characters.length - last < stop && last > first && characters[last - 1] === content) last--;
  return characters.slice(first, last).join("");
}

/** English as it was before its signs were words of their own. */
function cleaned(text) {
  const written = [" .", " ?", " !", " ,", " ' ", " n't", " 'm", " do not", " 's", " 've", " 're"];
  const meant = [".", "?", "!", ",", "'", "n't", "'m", " don't", "'s", "'ve", "'re"];
  return written.reduce((changed, one, at) => changed.replaceAll(one, meant[at]), text);
}
