/** The table of a row of a head: each step adds its column. */

import { h } from "./elements.js";
import { belongs } from "./hover.js";
import { four } from "./steps_numbers.js";

/**
 * @typedef {import("./steps_numbers.js").KeyNumbers} KeyNumbers
 * @type {{name: string, step: number, title: string, of_bias?: boolean, cell: (one: KeyNumbers) => string}[]} `step` is
 *   that which adds the column
 */
const COLUMNS = [
  { name: "dot", step: 0, title: "q · k", cell: ({ dot }) => four(dot) },
  { name: "scaled", step: 1, title: "/ √dₖ", cell: ({ scaled }) => four(scaled) },
  { name: "bias", step: 1, title: "bias", of_bias: true, cell: ({ bias }) => four(bias) },
  { name: "score", step: 1, title: "score", of_bias: true, cell: ({ score }) => four(score) },
  { name: "masked", step: 2, title: "masked", cell: ({ is_masked, score }) => (is_masked ? "−∞" : four(score)) },
  { name: "weight", step: 3, title: "softmax", cell: ({ weight }) => four(weight) },
];

/**
 * @param {number} step counted from 0
 * @param {import("./steps_pictures.js").Shown} shown
 * @param {KeyNumbers[]} keys those that have a row
 * @returns {HTMLElement}
 */
export function steps_table(step, { numbers, token, key_label, key_token }, keys) {
  const columns = COLUMNS.filter((one) => one.step <= step && (numbers.has_bias || !one.of_bias));
  const kind = (one) => (one.step === step ? "current" : null);
  const rows = keys.map((one) => {
    const { side, index } = key_token(one.at);
    const cells = columns.map((column) => {
      return h("td", { class: kind(column), data: { column: column.name } }, column.cell(one));
    });
    const first = h("th", { scope: "row", dir: "auto" }, key_label(one.at));
    const data = { ...belongs(side, index), key: one.at };
    return h("tr", { class: one.is_masked && step >= 2 ? "masked" : null, data }, first, cells);
  });
  const name = `Row of ${token}: ${keys.length} of ${numbers.keys.length} keys`;
  const heads = columns.map((one) => h("th", { scope: "col", class: kind(one) }, one.title));
  const head = h("thead", {}, h("tr", {}, h("th", { scope: "col" }, "key"), heads));
  const table = h("table", { class: "numbers", "aria-label": name }, head, h("tbody", {}, rows));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers. ${name}` }, table);
}
