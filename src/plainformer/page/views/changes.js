/** What the model says with all its parts, and what without those that are switched off. */

import { h } from "./elements.js";
import { belongs } from "./hover.js";
import { label, percent } from "./parts.js";
import { rows_picture } from "./strips.js";

const MOST = 12; // places that are shown before all of them are asked for

/**
 * @typedef {object} Change of the probability of one token, or label
 * @property {number} at its place; of a label, its number
 * @property {number} [token] the place that it is predicted at
 * @property {string} label
 * @property {number} before with all parts
 * @property {number} after
 */

/**
 * @param {import("./page.js").Page} page
 * @param {import("./results.js").Result} result
 * @param {{is_all: boolean, is_open: boolean}} state
 * @param {() => void} draw again
 * @returns {Node[]}
 */
export function changes({ description }, result, state, draw) {
  if (result.whole === null) return [];
  const found = result.whole.labels.length ? of_labels(result) : of_places(result);
  const main = state.is_all ? found : largest(found);
  const more = () => {
    state.is_all = !state.is_all;
    draw();
  };
  const name = state.is_all ? `Show the ${MOST} largest changes` : `Show all ${found.length} changes`;
  const what = result.whole.labels.length ? "Label" : "Predicted token";
  const rest = { class: "all", "aria-expanded": `${state.is_all}`, on: { click: more } };
  return [
    said(description.kind, result),
    h("figure", {}, picture(largest(found)), h("figcaption", { class: "help" }, caption(found, what))),
    h(
      "details",
      { class: "numbers", open: state.is_open, on: { toggle: ({ target }) => (state.is_open = target.open) } },
      h("summary", {}, "In numbers"),
      table(main, what),
      found.length > MOST && h("button", rest, name),
    ),
  ].filter(Boolean);
}

/** @param {HTMLElement} told @returns {SVGElement | null} */
export function changes_picture(told) {
  return told.querySelector("svg");
}

/** The output, before and after. */
function said(kind, result) {
  const [before, after] = outputs(kind, result);
  const what = { "plainformer-language-model": "next token", "plainformer-classifier": "label" }[kind] ?? "output";
  const line = (name, term, text) => [h("dt", {}, term), h("dd", { class: name, dir: "auto" }, text)];
  const lines = [line("before", "All parts on", before), line("after", "Without them", after)];
  const verdict = before === after ? `The ${what} stays the same.` : `The ${what} changes.`;
  return [h("p", { class: "verdict", role: "status" }, verdict), h("dl", { class: "outputs" }, lines)];
}

/** @returns {[string, string]} */
function outputs(kind, result) {
  const { whole } = result;
  if (kind !== "plainformer-language-model" && whole.output + result.output) return [whole.output, result.output];
  const gaps = result.pass.gaps ?? [result.pass.target.length - 1];
  const best = ({ predictions }) => gaps.map((at) => label(result.token(predictions[at][0].id))).join(" ");
  return [best(whole), best(result.pass)];
}

function of_labels({ pass, whole }) {
  return pass.labels.map(({ label, probability }, at) => {
    return { at, label, before: whole.labels[at].probability, after: probability };
  });
}

/** At each place the token that was taken; of a masked model, what the whole model would have there. */
function of_places({ pass, whole, token }) {
  const places = pass.gaps?.length ? pass.gaps : whole.chosen.map((_, at) => at);
  return places.map((at) => {
    const [{ id, probability }, without] = [whole.chosen[at], whole.without[at]];
    return { at, token: at, label: label(token(id)), before: probability, after: without.probability };
  });
}

function largest(found) {
  const by_size = [...found].sort((one, other) => size(other) - size(one));
  return by_size.slice(0, MOST).sort((one, other) => one.at - other.at);
}

function size({ before, after }) {
  return Math.abs(after - before);
}

function picture(found) {
  const rows = found.map((one) => {
    const value = one.after - one.before;
    const token = "token" in one ? { side: "target", index: one.token } : undefined;
    return { label: token ? `${one.at} ${one.label}` : one.label, said: signed(value), bar: { value }, token };
  });
  const told = rows.map(({ label, said }) => `${label} ${said}`).join(", ");
  return rows_picture(rows, `Changes of probability: ${told}`, { least: -0.01, most: 0.01 });
}

/** @returns {string} percentage points with their sign */
function signed(value) {
  const points = (value * 100).toFixed(1);
  return points === "0.0" || points === "-0.0" ? "0.0" : `${value > 0 ? "+" : ""}${points}`;
}

function caption(found, what) {
  const some = found.length > MOST ? `, the ${MOST} largest changes of ${found.length}` : "";
  return `${what}: the change of its probability in percentage points${some}`;
}

function table(found, what) {
  const rows = found.map((one) => {
    const is_token = "token" in one;
    return h(
      "tr",
      { data: { ...(is_token && belongs("target", one.token)), place: one.at } },
      h("td", {}, one.at),
      h("th", { scope: "row", dir: "auto" }, one.label),
      h("td", { class: "before" }, percent(one.before)),
      h("td", { class: "after" }, percent(one.after)),
      h("td", { class: one.after < one.before ? "less" : "more" }, signed(one.after - one.before)),
    );
  });
  const head = ["place", what, "all on", "without", "change"].map((name) => h("th", { scope: "col" }, name));
  const own = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes in numbers" }, own);
}
