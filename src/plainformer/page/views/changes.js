/** What the model says with all its parts, and what without those that are switched off. */

import { h } from "./elements.js";
import { belongs } from "./hover.js";
import { is_translator, label, percent } from "./parts.js";
import { rows_picture } from "./strips.js";

const MOST = 12; // places that are shown before all of them are asked for

/**
 * @typedef {object} Change of the probability of one token, or label
 * @property {number} at its place; of a label, its number
 * @property {string} label
 * @property {number} before with all parts
 * @property {number} after
 * @property {[boolean, boolean]} is_less whether each of the two is a bound: less than that
 */

/**
 * @param {import("./page.js").Page} page
 * @param {import("./results.js").Result} result
 * @param {{is_all: boolean}} state
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
  const what = result.whole.labels.length ? "Label" : "Token that is predicted";
  return [
    said(description, result),
    h("figure", {}, picture(largest(found)), h("figcaption", { class: "help" }, caption(found, what))),
    h("details", { class: "numbers" }, h("summary", {}, "In numbers"), table(main, what)),
    found.length > MOST && h("button", { class: "all", "aria-expanded": `${state.is_all}`, on: { click: more } }, name),
  ].filter(Boolean);
}

/** @param {HTMLElement} told @returns {SVGElement | null} */
export function changes_picture(told) {
  return told.querySelector("svg");
}

/** The output, before and after. */
function said(description, result) {
  const [before, after] = outputs(description, result);
  const line = (name, term, text) => [h("dt", {}, term), h("dd", { class: name, dir: "auto" }, text)];
  const lines = [line("before", "All parts on", before), line("after", "Without them", after)];
  const verdict = before === after ? "The output stays the same." : "The output changes.";
  return [h("p", { class: "verdict", role: "status" }, verdict), h("dl", { class: "outputs" }, lines)];
}

/** @returns {[string, string]} */
function outputs({ kind }, result) {
  const { whole } = result;
  if (kind !== "plainformer-language-model" && whole.output + result.output) return [whole.output, result.output];
  const gaps = result.pass.gaps ?? [result.pass.target.length - 1];
  const best = ({ predictions }) => gaps.map((at) => label(result.token(predictions[at][0].id))).join(" ");
  return [best(whole), best(result.pass)];
}

function of_labels({ pass, whole }) {
  return pass.labels.map(({ label, probability }, at) => {
    return { at, label, before: whole.labels[at].probability, after: probability, is_less: [false, false] };
  });
}

/** At each place the token that was taken; of a masked model, what the whole model would have there. */
function of_places({ pass, whole, chosen, token }) {
  const places = pass.gaps?.length ? pass.gaps : chosen.map((_, at) => at);
  return places.map((at) => {
    const { id } = pass.gaps ? whole.chosen[at] : chosen[at];
    const [before, after] = [whole.predictions[at], pass.predictions[at]].map((ranked) => probability(ranked, id));
    const is_less = [before, after].map((one) => one.is_less);
    return { at, label: label(token(id)), before: before.value, after: after.value, is_less };
  });
}

/** Of a token that is not among the best, no more is known than that it is less probable than the last of those. */
function probability(ranked, id) {
  const found = ranked.find((one) => one.id === id);
  return found ? { value: found.probability, is_less: false } : { value: ranked.at(-1).probability, is_less: true };
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
    return { label: one.label, said: signed(value), bar: { value } };
  });
  const name = `Changes of probability: ${found.map((one) => `${one.label} ${signed(one.after - one.before)}`).join(", ")}`;
  return rows_picture(rows, name, { least: -0.01, most: 0.01 });
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
    const [before, after] = [one.before, one.after].map((value, at) => (one.is_less[at] ? "≤ " : "") + percent(value));
    return h(
      "tr",
      { data: { ...belongs("target", one.at), place: one.at } },
      h("td", {}, one.at),
      h("th", { scope: "row", dir: "auto" }, one.label),
      h("td", { class: "before" }, before),
      h("td", { class: "after" }, after),
      h("td", { class: one.after < one.before ? "less" : "more" }, signed(one.after - one.before)),
    );
  });
  const head = ["place", what, "all on", "without", "change"].map((name) => h("th", { scope: "col" }, name));
  const own = h("table", {}, h("thead", {}, h("tr", {}, head)), h("tbody", {}, rows));
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Changes in numbers" }, own);
}
