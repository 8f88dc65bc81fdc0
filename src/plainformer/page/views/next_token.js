/** A language model's next token: how probable each is, what the settings cut, and the text that is written so. */

import { fill, h, s } from "./elements.js";
import { CUTS, draw_bars, pattern_of } from "./next_token_bars.js";
import { panel } from "./panel.js";
import { label, percent } from "./parts.js";
import { restore, setting, setting_changer, slider } from "./settings.js";
import { writing } from "./writing.js";

const VIEW = "next_token";
const HELP =
  "Each row is a token that could come next. The upper bar is the model's probability, the lower one the chance to " +
  "be drawn under the settings; a patterned bar was cut.";
const [FEW, ALL] = [16, 50]; // rows
const MOST_SEED = 2 ** 32 - 1;

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function next_token(page) {
  const { store, description } = page;
  if (!description.methods.includes("step")) return null;
  const can_write = !description.recorded;
  const { text, buttons, write } = writing(page, VIEW);
  const status = h("p", { id: `${VIEW}-status`, class: "status", role: "status" });
  const cuts = h("ul", { id: `${VIEW}-cuts`, class: "cuts" });
  const bars = h("div", { class: "bars" });
  const more = h("button", { id: `${VIEW}-all` });
  let rows = FEW;
  const draw = () => {
    const result = store.get("result");
    if (!result?.step) return;
    const had_focus = bars.contains(document.activeElement);
    fill(bars, draw_bars(result, rows, bars.clientWidth, can_write));
    if (had_focus) bars.querySelector('[tabindex="0"]')?.focus();
    more.hidden = result.step.predictions.length <= FEW;
    more.textContent = rows === FEW ? `Show the ${ALL} most probable` : `Show the ${FEW} most probable`;
    status.textContent = summary(result, setting(page, "seed"));
    fill(cuts, cut_by(page, result.step));
  };
  more.addEventListener("click", () => {
    rows = rows === FEW ? ALL : FEW;
    draw();
  });
  follow(bars, can_write ? write : () => {});
  store.on(["result"], draw);
  const picture = () => bars.querySelector("svg");
  const below = h("div", { class: "below" }, h("div", {}, bars, more), h("div", {}, status, cuts));
  const parts = [controls(page), text, can_write ? buttons : [], below].flat();
  const help = can_write ? `${HELP} Choose a row to write its token.` : HELP;
  const element = panel({ name: VIEW, title: "The next token", help, picture }, ...parts);
  element.classList.add("wide");
  return element;
}

function controls(page) {
  const change = setting_changer(page.store);
  const share = (value) => Number(value.toFixed(2)).toString();
  const none = (nothing) => (value) => (value === nothing ? `${nothing}, all` : share(value));
  const greedy = (value) => (value === 0 ? "0, the best" : share(value));
  const most = Math.min(page.description.config.vocab ?? 100, 100);
  return h(
    "div",
    { class: "settings", role: "group", "aria-label": "Settings of sampling" },
    slider(page, VIEW, { name: "temperature", title: "Temperature", min: 0, max: 2, step: 0.05, said: greedy }, change),
    slider(page, VIEW, { name: "top_k", title: "top-k", min: 0, max: most, step: 1, said: none(0) }, change),
    slider(page, VIEW, { name: "top_p", title: "top-p", min: 0.01, max: 1, step: 0.01, said: none(1) }, change),
    slider(page, VIEW, { name: "min_p", title: "min-p", min: 0, max: 1, step: 0.01, said: none(0) }, change),
    seed(page, change),
    restore(page, VIEW, ["temperature", "top_k", "top_p", "min_p", "seed"]),
  );
}

function seed(page, change) {
  const id = `${VIEW}-seed`;
  const input = h("input", { id, type: "number", min: 0, max: MOST_SEED, step: 1, inputmode: "numeric" });
  const show = () => (input.value = setting(page, "seed"));
  input.addEventListener("change", () => {
    if (input.value !== "" && input.validity.valid) change({ seed: Number(input.value) });
    else show();
  });
  const another = () => change({ seed: (setting(page, "seed") + 1) % (MOST_SEED + 1) });
  page.store.on(["settings"], show);
  show();
  const button = h("button", { id: `${VIEW}-another`, on: { click: another } }, "Another seed");
  return h("div", { class: "setting" }, h("label", { for: id }, "Seed"), input, button);
}

function summary({ step, token }, of_seed) {
  const { drawn } = step.predictions.find(({ id }) => id === step.token);
  const name = label(token(step.token));
  const ends = step.ended ? " It ends the text." : "";
  const many = step.kept === 1 ? "1 token" : `${step.kept} tokens`;
  return `${many} can be drawn. Seed ${of_seed} draws “${name}”, with a chance of ${percent(drawn)}.${ends}`;
}

/** What each setting that is in use cut, in words, with its pattern. */
function cut_by(page, { cuts }) {
  const [top_k, top_p, min_p] = ["top_k", "top_p", "min_p"].map((name) => setting(page, name));
  const is_greedy = setting(page, "temperature") === 0;
  const rules = {
    temperature: is_greedy && "takes the most probable token alone",
    top_k: !is_greedy && top_k > 0 && `keeps the ${top_k} most probable`,
    top_p: !is_greedy && top_p < 1 && `keeps the most probable that together have ${percent(top_p)}`,
    min_p: !is_greedy && min_p > 0 && `keeps those at least ${min_p} times as probable as the best`,
  };
  const used = Object.keys(rules).filter((name) => rules[name]);
  return used.map((name) => {
    const { tokens, probability } = cuts[name] ?? { tokens: 0, probability: 0 };
    const many = tokens === 1 ? "1 token" : `${tokens} tokens`;
    const cut = tokens ? `it cuts ${many} (${percent(probability)})` : "it cuts nothing more";
    const sample = s("rect", { width: 24, height: 14, fill: pattern_of(name) });
    const square = s("svg", { viewBox: "0 0 24 14", width: 24, height: 14, "aria-hidden": "true" }, sample);
    return h("li", { data: { setting: name, tokens } }, square, ` ${CUTS[name].said} ${rules[name]}: ${cut}.`);
  });
}

/** A row by pointer, arrows, Enter. */
function follow(bars, write) {
  const found = (event) => event.target.closest?.("[data-id]");
  const take = (event) => found(event) && write(Number(found(event).dataset.id));
  bars.addEventListener("click", take);
  bars.addEventListener("keydown", (event) => {
    if (!found(event)) return;
    const rows = [...bars.querySelectorAll("[data-id]")];
    const at = rows.indexOf(found(event));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (next === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (next === undefined) take(event);
    else if (rows[next]) focus_on(rows, next);
  });
}

function focus_on(rows, at) {
  rows.forEach((row, place) => row.setAttribute("tabindex", place === at ? 0 : -1));
  rows[at].focus();
}
