/**
 * Patterns in Oniguruma's syntax, in which a `tokenizer.json` has them, as JavaScript's regular expressions.
 *
 * What is different: \x{…}, \z, (?i:…), the dot; and which characters are letters, digits and blanks, which the page
 * carries (`page/characters.py`). Possessive quantifiers, nested brackets and the ends of lines (^ and $) are refused.
 */

/**
 * @typedef {Record<string, number[]>} Characters the first and the last code point of each run of a class, one after
 * the other, by the class as Oniguruma writes it, "\p{L}" or "\s"
 */

const ESCAPED = new Set(["^", "$", "\\", ".", "*", "+", "?", "(", ")", "[", "]", "{", "}", "|", "/"]);
const CONTROLS = new Set(["r", "n", "t", "f", "v"]);
const ENDS = { z: "$", A: "^" }; // of the text

/**
 * @param {string} pattern in Oniguruma's syntax
 * @param {Characters} characters
 * @returns {RegExp} with the flags `gu`; an error names what cannot be said in JavaScript
 */
export function to_regex(pattern, characters) {
  return new RegExp(translated(pattern, characters), "gu");
}

/** @param {string} text @returns {string} a pattern that matches this text alone */
export function quoted(text) {
  return Array.from(text, (character) => (ESCAPED.has(character) ? `\\${character}` : character)).join("");
}

function translated(pattern, characters) {
  const scanner = { pattern, characters, at: 0, inside: false, groups: [] };
  let out = "";
  while (scanner.at < pattern.length) out += next_part(scanner);
  return out;
}

/** The next part of a pattern, translated. `groups` has, for each open group, whether case counts not in it. */
function next_part(scanner) {
  const { pattern, at, inside, groups } = scanner;
  const character = String.fromCodePoint(pattern.codePointAt(at));
  scanner.at += character.length;
  if (character === "\\") return escape(scanner);
  if (inside) return in_brackets(scanner, character);
  if (character === "[") {
    scanner.inside = true;
    if (pattern[scanner.at] !== "^") return "[";
    scanner.at++;
    return "[^";
  }
  const group = /^\((\?i:|\?:|\?=|\?!|\?<=|\?<!|(?!\?))/.exec(pattern.slice(at));
  if (group) return open_group(scanner, group[1]);
  if (character === "(") throw unreadable(pattern, pattern.slice(at, at + 4));
  if (character === ")") groups.pop();
  const possessive = "*+?".includes(character) && pattern[scanner.at] === "+";
  if (possessive) throw unreadable(pattern, `${character}+`);
  if ("^$".includes(character)) throw unreadable(pattern, character);
  if (character === ".") return "[^\\n]";
  return groups.includes(true) ? any_case(character) : character;
}

function open_group(scanner, kind) {
  scanner.at += kind.length;
  scanner.groups.push(kind === "?i:");
  return kind === "?i:" ? "(?:" : `(${kind}`;
}

function in_brackets(scanner, character) {
  if (character === "]") scanner.inside = false;
  else if (character === "[" || scanner.pattern.startsWith("&&", scanner.at - 1))
    throw unreadable(scanner.pattern, character);
  return character;
}

function escape(scanner) {
  const { pattern, inside, characters } = scanner;
  const rest = pattern.slice(scanner.at - 1);
  const [known] = /^\\([pP]\{\w+\}|[sSdDwW])/.exec(rest) ?? [null];
  const [code, hex, short] = /^\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))/.exec(rest) ?? [null];
  scanner.at += (known ?? code ?? rest.slice(0, 2)).length - 1;
  if (known !== null) return a_class(known, characters, inside);
  if (code !== null) return `\\u{${hex ?? short}}`;
  const letter = rest[1];
  if (letter in ENDS && !inside) return ENDS[letter];
  if (CONTROLS.has(letter) || ESCAPED.has(letter)) return rest.slice(0, 2);
  if (/[A-Za-z0-9]/.test(letter)) throw unreadable(pattern, rest.slice(0, 2));
  return letter === "-" && inside ? "\\-" : letter;
}

/** A class of characters, or those that are not in it. */
function a_class(escape, characters, inside) {
  const positive = escape.startsWith("\\") ? `\\${escape[1].toLowerCase()}${escape.slice(2)}` : escape;
  const runs = characters[positive];
  if (runs === undefined) throw new Error(`the page does not say which characters are ${positive}`);
  const written = ranges(escape === positive ? runs : complement(runs));
  return inside ? written : `[${written}]`;
}

/** The runs between those of a class. */
function complement(runs) {
  const between = [0, ...runs.map((code, at) => (at % 2 ? code + 1 : code - 1)), 0x10ffff];
  return between.filter((_, at) => between[at - (at % 2)] <= between[at - (at % 2) + 1]);
}

/** @param {Characters} characters @param {string} name of a class @returns {RegExp} any one of it, flags `gu` */
export function one_of(characters, name) {
  return new RegExp(a_class(name, characters, false), "gu");
}

function ranges(runs) {
  const hex = (code) => `\\u{${code.toString(16)}}`;
  return runs.map((code, at) => (at % 2 ? `-${hex(code)}` : hex(code))).join("");
}

/** A letter in both cases, and what Unicode folds with it. */
function any_case(character) {
  if (!/[A-Za-z]/.test(character)) return character;
  const folded = { s: "ſ", k: "\u212a" }[character.toLowerCase()] ?? "";
  return `[${character.toLowerCase()}${character.toUpperCase()}${folded}]`;
}

function unreadable(pattern, part) {
  return new Error(`the tokenizer's pattern ${pattern} has ${part}, which cannot be read here`);
}
