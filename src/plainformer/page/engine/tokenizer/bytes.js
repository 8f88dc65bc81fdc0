/** Bytes as vocabularies of GPT-2's kind write them (`tokenizer.byte`). */

/**
 * What the bytes are called, by their value: one that is a visible character of Latin-1 is that character, the others
 * are U+0100 and on, in their order.
 * @type {readonly string[]}
 */
export const BYTE_NAMES = names();

/** The byte of a name. @type {ReadonlyMap<string, number>} */
export const NAMED_BYTES = new Map(BYTE_NAMES.map((name, byte) => [name, byte]));

function names() {
  const is_visible = (byte) => (byte >= 0x21 && byte < 0x7f) || (byte >= 0xa1 && byte !== 0xad);
  let hidden = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(is_visible(byte) ? byte : 0x100 + hidden++));
}

/** @param {string} text @returns {Uint8Array} its UTF-8 */
export function to_utf8(text) {
  return new TextEncoder().encode(text);
}

/** @param {Iterable<number>} bytes @returns {string} what is not UTF-8 becomes U+FFFD */
export function from_utf8(bytes) {
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(bytes));
}

/** @param {Iterable<number>} bytes @returns {string | null} null where they are not UTF-8 */
export function from_whole_utf8(bytes) {
  try {
    return new TextDecoder("utf-8", { ignoreBOM: true, fatal: true }).decode(Uint8Array.from(bytes));
  } catch {
    return null;
  }
}

/** @param {string} token @returns {number | null} the byte that "<0x0A>" is, null of another token */
export function byte_of(token) {
  const found = /^<0x([0-9A-Fa-f]{2})>$/.exec(token);
  return found ? parseInt(found[1], 16) : null;
}
