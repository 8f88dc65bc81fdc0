/** Direct attribution: what each part of the model added to one logit (Elhage et al. 2021). */

import { bars_picture, signed } from "./bars.js";
import { Grid } from "./cells.js";
import { fill, h } from "./elements.js";
import { panel } from "./panel.js";
import { label, percent, spoken } from "./parts.js";
import { unless_stale } from "./results.js";

const WIDEST = 720; // pixels
const AGREE = 1e-5; // by how much of the logit the sum may differ from it

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function attribution(page) {
  const { store, description } = page;
  if (!description.methods.includes("attribution")) return null;
  const is_classifier = description.kind.endsWith("classifier");
  const [grid, open] = [new Grid(), new Set()];
  const choose = () => store.set({ token: Number(choice.value) });
  const choice = h("select", { id: "attribution-token", on: { change: choose } });
  const said = h("p", { class: "sum", role: "status" });
  let [found, drawn] = [null, 0];
  const show = () => {
    if (found === null) return;
    const width = Math.max(260, Math.min(grid.frame.clientWidth, WIDEST));
    const toggle = (name) => {
      if (!open.delete(name)) open.add(name);
      show();
    };
    drawn = width;
    grid.show(bars_picture(`Added to the logit of ${found.name}`, [{ bars: rows(found.parts, open, toggle) }], width));
  };
  const draw = async () => {
    const [result, place] = [store.get("result"), store.get("place")];
    if (result === null) return;
    const choices = is_classifier ? labels_of(result) : tokens_of(result, place);
    const token = store.get("token") ?? (is_classifier ? choices[0].id : result.chosen[place].id);
    const name = is_classifier ? description.config.labels[token] : label(result.token(token));
    const asked = { position: is_classifier ? 0 : place, token };
    const answer = await unless_stale(result.attribution(asked)).catch((error) => error);
    if (answer === null || store.get("result") !== result || store.get("place") !== place) return;
    if (!choices.some(({ id }) => id === token)) choices.push({ id: token, name });
    fill(choice, choices.map((one) => h("option", { value: one.id, selected: one.id === token }, one.name)));
    grid.frame.hidden = answer instanceof Error;
    if (answer instanceof Error) return (said.textContent = answer.message);
    found = { ...answer, name };
    say_sum(said, found);
    show();
  };
  new ResizeObserver(() => Math.min(grid.frame.clientWidth, WIDEST) === drawn || show()).observe(grid.frame);
  store.on(["result", "place", "token"], draw);
  return panel(
    {
      name: "attribution",
      title: "What made the logit",
      help: help_of(is_classifier),
      picture: () => grid.picture,
    },
    h("p", { class: "held" }, h("label", { for: "attribution-token" }, "Logit of"), choice),
    said,
    grid.frame,
  );
}

function help_of(is_classifier) {
  const whole = is_classifier ? "The logit of a label" : "The logit of a token at the chosen place";
  return (
    `${whole} is the sum of what embeddings, heads and feed-forwards wrote into the stream, the scales of norms held ` +
    "at what they were. To the right: for it; to the left: against it. Open a row to see its heads."
  );
}

function tokens_of({ pass, token }, place) {
  return pass.predictions[place].map(({ id, probability }) => {
    return { id, name: `${label(token(id))} ${percent(probability)}` };
  });
}

/** The labels of a classifier, the most probable first. */
function labels_of({ pass }) {
  const all = pass.labels.map(({ label: name, probability }, id) => ({ id, name, probability }));
  return all.sort((one, other) => other.probability - one.probability);
}

function say_sum(said, { parts, logit }) {
  const sum = parts.reduce((total, { value }) => total + value, 0);
  const differs = Math.abs(sum - logit) > AGREE * Math.max(1, Math.abs(logit));
  Object.assign(said.dataset, { sum, logit });
  said.textContent = differs
    ? `The parts sum to ${sum}, but the logit is ${logit}.`
    : `The parts sum to ${signed(sum, 4)}: the logit is ${signed(logit, 4)}.`;
}

/** One bar for each group of parts, and under those that are open one for each part. */
function rows(parts, open, toggle) {
  return grouped(parts).flatMap(({ name, members }) => {
    const value = members.reduce((total, one) => total + one.value, 0);
    const [expanded, is_one] = [open.has(name), members.length === 1];
    const group = { text: spoken(name), value, note: signed(value), said: `${spoken(name)} ${signed(value, 4)}` };
    const press = is_one ? null : () => toggle(name);
    const own = { ...group, kind: "group", expanded: is_one ? undefined : expanded, press };
    return expanded ? [own, ...members.map((one) => member(one, name))] : [own];
  });
}

function member({ name, value }, group) {
  const text = spoken(name).replace(`${spoken(group)} `, "");
  return { text, value, note: signed(value), said: `${spoken(name)} ${signed(value, 4)}`, indent: 1, press: null };
}

/** Parts by the sublayer that they are of; before the layers the embeddings, behind them the output. */
function grouped(parts) {
  const groups = new Map();
  for (const part of parts) {
    const [sublayer] = part.name.match(/^.*?\d+\/[a-z_]+/) ?? [];
    const name = sublayer ?? (part.name.includes("embedding/") ? "embeddings" : "output");
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(part);
  }
  return Array.from(groups, ([name, members]) => ({ name, members }));
}
