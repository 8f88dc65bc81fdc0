/** Texts that are handed to a model: encoded, and refused where it cannot read them (`decode.texts`). */

/**
 * @typedef {object} Encoded
 * @property {number[]} ids
 * @property {string[]} unknown characters that the vocabulary does not have
 * @property {number} cut tokens that the model has no room for, which are not read
 */

/**
 * @param {import("../tokenizer/tokenizer.js").Tokenizer} tokenizer
 * @param {string} text
 * @param {number} most tokens that are read
 * @param {{may_be_unknown?: boolean, truncate?: "head" | "tail" | "both"}} how whether the unknown token is read, as a
 *   translator does, or refused; what is read of a longer text
 * @returns {Encoded}
 */
export function encode_text(tokenizer, text, most = Infinity, { may_be_unknown = false, truncate = "head" } = {}) {
  const ids = tokenizer.encode(text);
  if (ids.length === 0) throw new Error("the text is empty");
  const unknown = unknown_characters(tokenizer, text, ids);
  check_known(unknown, may_be_unknown);
  return { ids: truncated(ids, most, truncate), unknown, cut: Math.max(0, ids.length - most) };
}

/** At most `most` of the ids, in their order: the first, the last, or half of each (`tokenizer.truncation`). */
export function truncated(ids, most, way) {
  if (ids.length <= most) return ids;
  const first = { head: most, tail: 0, both: most - Math.floor(most / 2) }[way] ?? most;
  return [...ids.slice(0, first), ...ids.slice(ids.length - (most - first))];
}

/** The characters of a text, or the words of a vocabulary of words, that become the unknown token: each once. */
export function unknown_characters(tokenizer, text, ids) {
  const is_unknown = (id) => id === tokenizer.special.unk;
  if (!ids.some(is_unknown)) return [];
  const found = tokenizer.pieces(text).flatMap((piece) => {
    const own = typeof piece === "string" ? tokenizer.model.encode(piece) : [];
    if (!own.some(is_unknown)) return [];
    if (own.length === 1) return [piece.replace(/^[ ▁](?=.)/u, "")];
    return [...piece].filter((character) => tokenizer.encode(character).some(is_unknown));
  });
  return [...new Set(found)];
}

export function check_known(unknown, may_be_unknown = false) {
  if (unknown.length && !may_be_unknown)
    throw new Error(`the model's vocabulary does not have ${unknown.map(quoted).join(", ")}`);
}

/** A piece of a text in one line. */
function quoted(piece) {
  return `'${piece.replace(/\p{Cc}/gu, (control) => JSON.stringify(control).slice(1, -1))}'`;
}
