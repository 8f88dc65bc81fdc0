/** One head, step by step, with its real numbers: the row of one token through equation 1 and the output projection. */

import { fill, h } from "./elements.js";
import { panel } from "./panel.js";
import { axes, label, spoken } from "./parts.js";
import { unless_stale } from "./results.js";
import { four, main_keys, row_numbers } from "./steps_numbers.js";
import { step_picture, step_picture_name, step_vectors } from "./steps_pictures.js";
import { steps_table } from "./steps_table.js";
import { SCHEMES, STEPS } from "./steps_words.js";

const MOST = 12; // keys that are shown before all of them are asked for
const ARRAYS = ["query", "key", "value", "scores", "weights", "heads"];

/** @param {import("./page.js").Page} page @returns {HTMLElement} */
export function head_steps(page) {
  const { store } = page;
  const state = { step: 0, is_all: false, is_open: false, shown: null, drawn: 0 };
  const heading = h("h3", { "aria-live": "polite", hidden: true });
  const body = h("div", { class: "step" });
  const where = h("strong", { class: "where" });
  const rows = h("select", { id: "head-steps-row", on: { change: () => store.set({ query: Number(rows.value) }) } });
  const stepper = make_stepper((step) => {
    state.step = step;
    show();
  });
  const show = () => {
    stepper.show(state.step);
    heading.hidden = state.shown === null;
    heading.textContent = `Step ${state.step + 1} of ${STEPS.length}: ${STEPS[state.step].title}`;
    if (state.shown) fill(body, step_content(page, state, show));
    else fill(body, left_out(page, store.get("attention")));
  };
  const draw = async () => {
    const [result, turn] = [store.get("result"), ++state.drawn];
    if (result === null) return;
    const attention = store.get("attention");
    where.textContent = spoken(`${attention.name}/${attention.head}`);
    const row = fill_rows(rows, result.pass[axes(page.description, attention.name).queries], store.get("query"));
    const is_there = `${attention.name}/weights` in result.pass.names;
    const shown = is_there ? await unless_stale(read(page, result, attention, row)) : null;
    if (turn !== state.drawn || (is_there && shown === null)) return;
    state.shown = shown;
    show();
  };
  store.on(["result", "attention", "query", "theme"], draw);
  const choice = h("p", { class: "choice" }, where, h("label", { for: rows.id }, "row of"), rows);
  const help = "Choose a head and a row in a map of attention, or a row here; go on by the buttons or the arrow keys.";
  const picture = () => body.querySelector("svg");
  const of = { name: "head-steps", title: "One head, step by step", help, picture };
  const found = panel(of, choice, stepper.element, heading, body);
  found.addEventListener("keydown", (event) => stepper.turn(event, state.step));
  found.classList.add("wide");
  return found;
}

/** Previous, one button for each step, Next. */
function make_stepper(go) {
  const last = STEPS.length - 1;
  const steps = STEPS.map(({ short, title }, at) => {
    const name = `Step ${at + 1}: ${title}`;
    return h("button", { class: "number", "aria-label": name, on: { click: () => go(at) } }, `${at + 1} ${short}`);
  });
  let now = 0;
  const previous = h("button", { class: "previous", on: { click: () => go(Math.max(0, now - 1)) } }, "Previous");
  const next = h("button", { class: "next", on: { click: () => go(Math.min(last, now + 1)) } }, "Next");
  const show = (step) => {
    now = step;
    steps.forEach((one, at) => {
      one.tabIndex = at === step ? 0 : -1;
      if (at === step) one.setAttribute("aria-current", "step");
      else one.removeAttribute("aria-current");
    });
    previous.setAttribute("aria-disabled", step === 0);
    next.setAttribute("aria-disabled", step === last);
  };
  const turn = (event) => {
    const to = now + ({ ArrowLeft: -1, ArrowRight: 1 }[event.key] ?? 0);
    if (to === now || to < 0 || to > last || event.target.closest("select, .scroll")) return;
    event.preventDefault();
    go(to);
    if (steps.includes(document.activeElement)) steps[to].focus();
  };
  show(0);
  const element = h("div", { class: "stepper", role: "group", "aria-label": "Steps" }, previous, steps, next);
  return { element, show, turn };
}

/** The tokens whose rows can be chosen. @returns {number} the chosen one */
function fill_rows(select, tokens, query) {
  const names = tokens.map((one, at) => `${at} ${label(one)}`);
  if (select.length !== names.length || names.some((name, at) => select[at].textContent !== name))
    fill(select, names.map((name, at) => h("option", { value: at }, name)));
  const row = Math.max(0, Math.min(query, names.length - 1));
  select.value = row;
  return row;
}

/** The numbers of a row, and all that is told of them. @returns {Promise<object>} */
async function read({ description }, result, { name, head }, row) {
  const { queries, keys } = axes(description, name);
  const wanted = `${name}/bias` in result.pass.names ? [...ARRAYS, "bias"] : ARRAYS;
  const asked = wanted.map((one) => result.array(`${name}/${one}`, head));
  const [added, ...found] = await Promise.all([result.heads_added({ name, position: row }), ...asked]);
  const arrays = Object.fromEntries(wanted.map((one, at) => [one, found[at]]));
  const is_off = result.off.includes(`${name}/${head}`);
  const is_causal = description.kind === "plainformer-language-model" || /^decoder\/.*self_attention$/.test(name);
  const [own, others] = [result.pass[queries], result.pass[keys]];
  const numbers = row_numbers({ bias: null, ...arrays }, row, { is_causal, is_off });
  return {
    ...{ numbers, name, head, is_off, added: added_of(added.parts, name, head) },
    token: label(own[row]),
    key_label: (at) => `${at} ${label(others[at])}`,
    key_token: (index) => ({ side: keys, index }),
    query_token: { side: queries, index: row },
    told: {
      ...{ token: `“${label(own[row])}”`, d_k: numbers.query.length, keys: others.length, is_causal },
      ...{ has_bias: numbers.has_bias, masked: numbers.keys.filter(({ is_masked }) => is_masked).length },
    },
  };
}

function added_of(parts, name, head) {
  const sum = (vectors) => vectors[0].map((_, i) => vectors.reduce((total, vector) => total + vector[i], 0));
  const [bias, own] = [`${name}/bias`, `${name}/${head}`].map((one) => parts.find((part) => part.name === one)?.vector);
  const none = own.map(() => 0);
  const others = parts.map(({ vector }) => vector).filter((vector) => vector !== own && vector !== bias);
  return { head: own, others: sum([none, ...others]), bias: bias ?? null, all: sum(parts.map(({ vector }) => vector)) };
}

/** What is said where nothing was computed. */
function left_out({ store }, { name, head }) {
  const layer = name.replace(/\/[^/]*$/, "");
  const own = (one) => one === name || one === layer || one.startsWith(`${name}/`);
  const back = () => store.set({ off: store.get("off").filter((one) => !own(one)) });
  const said = `${spoken(name)} is switched off: nothing of it was computed. `;
  const button = h("button", { class: "back", on: { click: back } }, "Switch it on");
  return h("p", { class: "off", role: "status" }, said, button);
}

/** All of one step: sentence, formula, sources, picture, table, vectors. */
function step_content({ description }, state, show) {
  const [{ shown, is_all }, step] = [state, STEPS[state.step]];
  const drawing = { ...shown, keys: main_keys(shown.numbers.keys, MOST) };
  const off = "This head is switched off: it adds nothing. What is shown is what it would give.";
  const more = () => {
    state.is_all = !is_all;
    show();
    document.querySelector("#head-steps .all").focus();
  };
  const figure = h("figcaption", { class: "help" }, step_picture_name(step.name));
  return [
    h("p", { class: "sentence", dir: "auto" }, step.sentence(shown.told)),
    shown.is_off && h("p", { class: "off", role: "status" }, off),
    h("p", { class: "formula" }, step.formula(shown.told)),
    sources(step),
    notes(step, shown, description),
    h(
      "div",
      { class: "side" },
      h("figure", {}, step_picture(step.name, drawing), figure),
      numbers_of(state, drawing.keys, more),
      vectors(step, drawing, state),
    ),
  ];
}

/** The table, a button for the rest of its rows, and how well the model agrees. */
function numbers_of({ shown, step, is_all }, main, more) {
  const { keys, apart } = shown.numbers;
  const name = is_all ? `Show the main ${MOST} keys` : `Show all ${keys.length} keys`;
  return h(
    "div",
    { class: "table" },
    steps_table(step, shown, is_all ? keys : main),
    keys.length > main.length && h("button", { class: "all", "aria-expanded": `${is_all}`, on: { click: more } }, name),
    h("p", { class: "help agreement" }, `The model's own arrays differ by at most ${apart.toExponential(1)}.`),
  );
}

function sources({ paper, library }) {
  const functions = library.map((name, at) => [at ? ", " : "", h("code", {}, name)]);
  const said = paper && `“Attention Is All You Need”, ${paper}. `;
  return h("p", { class: "help sources" }, said, "In the library: ", functions);
}

/** What this model does that the paper does not. */
function notes(step, { name, head }, { config }) {
  if (name.endsWith("cross_attention")) return null;
  const size = config.kv_heads ? config.heads / config.kv_heads : 1;
  const first = Math.floor(head / size) * size;
  const own = [size > 1 && "grouped", config.position].filter((one) => SCHEMES[one]?.steps.includes(step.name));
  return own.map((one) => {
    const { sentence, library } = SCHEMES[one];
    return [h("p", { class: "note" }, sentence({ first, last: first + size - 1 })), sources({ library })];
  });
}

function vectors(step, shown, state) {
  const found = step_vectors(step.name, shown);
  if (found.length === 0) return null;
  const lines = found.map(({ name, label, vector }) => [
    h("dt", { dir: "auto" }, label),
    h("dd", { data: { vector: name } }, Array.from(vector, four).join(", ")),
  ]);
  const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": "Vectors in numbers" };
  const keep = ({ target }) => (state.is_open = target.open);
  const summary = h("summary", {}, "Vectors in numbers");
  const { is_open: open } = state;
  return h("details", { class: "vectors", open, on: { toggle: keep } }, summary, h("div", region, h("dl", {}, lines)));
}
