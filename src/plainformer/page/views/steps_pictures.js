/** The picture of each step of a head, and the vectors that it speaks of. */

import { four, norm, sum_of_values } from "./steps_numbers.js";
import { rows_picture } from "./strips.js";

/**
 * @typedef {object} Shown
 * @property {import("./steps_numbers.js").RowNumbers} numbers
 * @property {import("./steps_numbers.js").KeyNumbers[]} keys those that are drawn
 * @property {string} token the query's
 * @property {(at: number) => string} key_label
 * @property {(at: number) => {side: "source" | "target", index: number}} key_token
 * @property {{side: "source" | "target", index: number}} query_token
 * @property {{head: ArrayLike<number>, others: ArrayLike<number>, bias: ArrayLike<number> | null,
 *   all: ArrayLike<number>} | null} added of the last step: vectors of d_model
 */

/** @type {Record<string, (shown: Shown) => import("./strips.js").Row[]>} rows of a picture by the names of the steps */
const ROWS = {
  product: (shown) => [
    { label: `q: ${shown.token}`, strip: shown.numbers.query, said: "q · k", token: shown.query_token },
    ...shown.keys.map((one, at) => {
      return { ...of_key(shown, one), strip: one.key, said: four(one.dot), is_apart: at === 0 };
    }),
  ],
  scale: (shown) => shown.keys.map((one) => scored(shown, one, one.dot)),
  mask: (shown) => shown.keys.map((one) => (one.is_masked ? hidden(shown, one) : scored(shown, one))),
  softmax: (shown) =>
    shown.keys.map((one) => {
      if (one.is_masked) return { ...hidden(shown, one), said: four(0) };
      return { ...of_key(shown, one), bar: { value: one.weight }, said: four(one.weight) };
    }),
  values: (shown) => {
    const own = shown.keys.filter(({ is_masked }) => !is_masked);
    const rows = own.map((one) => ({ ...of_key(shown, one), strip: weighted(one), said: `× ${four(one.weight)}` }));
    const rest = shown.numbers.keys.filter((one) => !one.is_masked && !own.includes(one));
    const weight = rest.reduce((sum, one) => sum + one.weight, 0);
    const said = `Σ ${four(weight)}`;
    if (rest.length) rows.push({ label: `${rest.length} other keys`, strip: sum_of_values(rest), said });
    return [...rows, { label: "sum: output", strip: shown.numbers.output, said: "Σ α v", is_apart: true }];
  },
  projection: ({ numbers, added }) => {
    const row = (label, strip, more = {}) => ({ label, strip, said: four(norm(strip)), ...more });
    const found = [row("output", numbers.output)];
    if (added === null) return found;
    found.push(row("× Wᴼ: this", added.head, { is_apart: true }), row("other heads", added.others));
    if (added.bias !== null) found.push(row("bias", added.bias));
    return [...found, row("all together", added.all, { is_apart: true })];
  },
};

const NAMES = {
  product: "The query above, the keys below it, and their products",
  scale: "The products in pale, the scores in full colour",
  mask: "The scores; those that are masked are dotted boxes",
  softmax: "The weights, from 0 to 1",
  values: "The values times their weights, and their sum",
  projection: "The output of the head, what it and the other heads added to the stream, and the lengths of all these",
};

/** @param {string} step @param {Shown} shown @returns {SVGElement} */
export function step_picture(step, shown) {
  const rows = ROWS[step](shown);
  return rows_picture(rows, NAMES[step], step === "softmax" ? { most: 1 } : {});
}

/** @param {string} step @returns {string} what the picture of a step shows */
export function step_picture_name(step) {
  return NAMES[step];
}

/**
 * The vectors of a step in numbers.
 * @param {string} step
 * @param {Shown} shown
 * @returns {{name: string, label: string, vector: ArrayLike<number>}[]}
 */
export function step_vectors(step, { numbers, keys, token, key_label, added }) {
  const each = (label, name, vectors) =>
    vectors.map(({ at, vector }) => ({ name: `${name}-${at}`, label: `${label} of ${key_label(at)}`, vector }));
  const output = { name: "output", label: "output of the head", vector: numbers.output };
  if (step === "product") {
    const own = keys.map(({ at, key }) => ({ at, vector: key }));
    return [{ name: "query", label: `query of ${token}`, vector: numbers.query }, ...each("key", "key", own)];
  }
  const values = keys.map(({ at, value }) => ({ at, vector: value }));
  if (step === "values") return [...each("value", "value", values), output];
  if (step !== "projection" || added === null) return [];
  return [output, { name: "added", label: "what this head added to the stream", vector: added.head }];
}

function of_key({ key_label, key_token }, { at }) {
  return { label: key_label(at), token: key_token(at) };
}

function scored(shown, one, pale) {
  return { ...of_key(shown, one), bar: { value: one.score, pale }, said: four(one.score) };
}

function hidden(shown, one) {
  return { ...of_key(shown, one), is_masked: true, said: "−∞" };
}

function weighted({ weight, value }) {
  return Float64Array.from(value, (one) => one * weight);
}
