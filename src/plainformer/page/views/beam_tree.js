/** A translator's search: the tree of the beam, what was kept of it and why the rest was not, and how scores arise. */

import { path_to, score_of } from "./beam_layout.js";
import { draw_tree, nats } from "./beam_picture.js";
import { fill, h, s } from "./elements.js";
import { panel } from "./panel.js";
import { label } from "./parts.js";
import { choice, is_end, restore, setting, setting_changer, slider } from "./settings.js";

const VIEW = "beam_tree";
const HELP =
  "From left to right the search adds one token to each hypothesis that it keeps. The number is the token's " +
  "log-probability; a path's sum over its length penalty is its score, and the best score wins.";
const SETTINGS = ["beam_size", "length_penalty", "alpha"];
const KINDS = { gnmt: "gnmt: ((5 + length) / 6)^alpha", average: "average: length^alpha", none: "none" };
const PRUNED = { 0: "none", 1: "the best of each step", 2: "2 of each step", 1000: "all" };
const FATES = { live: "kept", finished: "finished", pruned: "pruned" };

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function beam_tree(page) {
  const { store, description } = page;
  if (!description.methods.includes("search") || description.methods.includes("step")) return null;
  const pruned = h("select", { id: `${VIEW}-pruned` });
  fill(pruned, Object.entries(PRUNED).map(([value, said]) => h("option", { value, selected: value === "2" }, said)));
  const parts = {
    status: h("p", { id: `${VIEW}-status`, class: "status", role: "status" }),
    tree: h("div", { class: "scroll" }),
    detail: h("div", { id: `${VIEW}-node`, class: "detail" }),
    list: h("div", { class: "scroll" }),
  };
  const state = { page, parts, drawn: null, chosen: 0 };
  const draw = () => store.get("result")?.search && draw_all(state, Number(pruned.value));
  pruned.addEventListener("change", draw);
  follow(state);
  store.on(["result"], draw);
  const element = panel(
    { name: VIEW, title: "The beam", help: HELP, picture: () => state.drawn?.svg ?? null },
    controls(page, pruned),
    parts.status,
    parts.tree,
    legend(),
    h("div", { class: "below" }, parts.detail, parts.list),
  );
  element.classList.add("wide");
  return element;
}

function controls(page, pruned) {
  const change = setting_changer(page.store);
  const alpha = { name: "alpha", title: "alpha", min: 0, max: 2, step: 0.1, said: (value) => value.toFixed(1) };
  const alphas = slider(page, VIEW, alpha, change);
  const show_pruned = h("div", { class: "setting" }, h("label", { for: `${VIEW}-pruned` }, "Show pruned"), pruned);
  if (page.description.recorded) return h("div", { class: "settings" }, show_pruned);
  const show = () => (alphas.querySelector("input").disabled = setting(page, "length_penalty") === "none");
  page.store.on(["settings"], show);
  show();
  return h(
    "div",
    { class: "settings", role: "group", "aria-label": "Settings of the search" },
    slider(page, VIEW, { name: "beam_size", title: "Beam width", min: 1, max: 12, step: 1 }, change),
    choice(page, VIEW, { name: "length_penalty", title: "Length penalty", options: KINDS }, change),
    alphas,
    show_pruned,
    restore(page, VIEW, SETTINGS),
  );
}

function legend() {
  const one = (kind, said) => h("span", {}, h("i", { class: `sample ${kind}` }), said);
  return h(
    "p",
    { class: "legend" },
    one("best", "the best hypothesis"),
    one("listed", "other hypotheses"),
    one("live", "kept for a while"),
    one("pruned", "× pruned"),
    one("finished", "#1 finished: its place and score"),
  );
}

function draw_all(state, pruned) {
  const { page, parts } = state;
  const result = page.store.get("result");
  const { nodes, hypotheses, settings } = result.search;
  const had_focus = [parts.tree, parts.detail].some((part) => part.contains(document.activeElement));
  state.drawn = draw_tree(result, pruned, (node) => described(result, node));
  state.chosen = hypotheses[0]?.node ?? 0;
  fill(parts.tree, state.drawn.svg);
  parts.status.textContent = summary(nodes, settings, state.drawn.hidden);
  fill(parts.list, table(result, (node) => choose(state, node)));
  choose(state, state.chosen);
  if (had_focus) state.drawn.boxes.get(state.chosen).focus({ preventScroll: true });
}

function summary(nodes, { beam_size, length_penalty, alpha }, hidden) {
  const count = (fate) => nodes.filter((node) => node.step > 0 && node.fate === fate).length;
  const has_none = length_penalty === "none";
  const penalty = has_none ? "no length penalty" : `${length_penalty}, alpha ${Number(alpha.toFixed(2))}`;
  const left = hidden ? `, of which ${hidden} are not shown` : "";
  const steps = Math.max(...nodes.map(({ step }) => step));
  return (
    `Beam of ${beam_size}, ${penalty}: in ${steps} steps ${count("live")} kept, ${count("finished")} finished, ` +
    `${count("pruned")} pruned${left}.`
  );
}

/** A node in words. */
function described(result, { token, step, fate, reason, logprob, total, score }) {
  if (step === 0) return "The start of the search";
  const why = reason === null ? "" : `: ${reason}`;
  return (
    `${label(result.token(token))}, step ${step}, ${FATES[fate]}${why}. ` +
    `Log-probability ${nats(logprob)}, sum ${nats(total)}, score ${nats(score)}`
  );
}

/** Pointer, focus, arrows and clicks in the tree. */
function follow(state) {
  const { tree } = state.parts;
  const found = (event) => event.target.closest?.("[data-node]");
  const look = (event) => {
    const box = found(event);
    if (!box) return;
    if (!box.querySelector("title")) box.append(s("title", {}, box.getAttribute("aria-label")));
    show_node(state, Number(box.dataset.node));
  };
  tree.addEventListener("pointerover", look);
  tree.addEventListener("focusin", look);
  tree.addEventListener("pointerleave", () => show_node(state, state.chosen));
  tree.addEventListener("click", (event) => found(event) && choose(state, Number(found(event).dataset.node)));
  tree.addEventListener("keydown", (event) => {
    if (!found(event)) return;
    const id = Number(found(event).dataset.node);
    const next = neighbour(state, id, event.key);
    if (next === undefined && event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    if (next === undefined) choose(state, id);
    else if (next >= 0) state.drawn.boxes.get(next)?.focus();
  });
}

/** The node that a key leads to, -1 where there is none, undefined of a key that leads nowhere. */
function neighbour({ page, drawn }, id, key) {
  const { nodes, hypotheses } = page.store.get("result").search;
  const [step, column] = [nodes[id].step, drawn.columns[nodes[id].step]];
  const beside = (by) => column[column.indexOf(id) + by] ?? -1;
  const children = () => drawn.columns[step + 1]?.find((one) => nodes[one].parent === id) ?? -1;
  const keys = {
    ArrowLeft: () => nodes[id].parent,
    ArrowRight: children,
    ArrowUp: () => beside(-1),
    ArrowDown: () => beside(1),
    Home: () => 0,
    End: () => hypotheses[0]?.node ?? -1,
  };
  return keys[key]?.();
}

/** Marks the path to a node, and tells about it. */
function choose(state, id) {
  const { drawn, page, parts } = state;
  const { nodes } = page.store.get("result").search;
  state.chosen = id;
  const path = new Set(path_to(nodes, id));
  for (const [one, element] of drawn.boxes) {
    element.classList.toggle("on_path", path.has(one));
    element.setAttribute("aria-selected", one === id);
    element.setAttribute("tabindex", one === id ? 0 : -1);
  }
  for (const button of parts.list.querySelectorAll("button"))
    button.setAttribute("aria-pressed", Number(button.dataset.end) === id);
  show_node(state, id);
}

/** The detail of one node: what became of it, and its path, which sums to its score. */
function show_node({ page, parts }, id) {
  const result = page.store.get("result");
  const { nodes, settings } = result.search;
  const node = nodes[id];
  const path = path_to(nodes, id).slice(1);
  const { sum, penalty, formula, score } = score_of(nodes, id, settings);
  const said = { node: id, sum, total: node.total, penalty, score, found: node.score };
  Object.assign(parts.detail.dataset, said);
  const name = (one) => h("b", { dir: "auto" }, label(result.token(nodes[one].token)));
  const term = (one) => h("span", { class: "term" }, name(one), ` ${nats(nodes[one].logprob)}`);
  const of = `${nats(sum, 4)} / ${formula} = ${nats(sum, 4)} / ${penalty.toFixed(4)}`;
  const ids = path.map((one) => nodes[one].token).filter((token) => !is_end(page, token));
  fill(
    parts.detail,
    h("h3", {}, fate_of(result, node, id)),
    node.step > 0 && h("p", { class: "terms" }, path.map(term)),
    node.step > 0 && h("p", { class: "sum" }, `Sum ${nats(node.total, 4)}. Score ${of} = `, h("b", {}, nats(score, 4))),
    h("p", {}, go_on(page, ids), page.store.get("written").length > 0 && let_go(page)),
  );
}

function fate_of(result, { token, step, fate, reason }, id) {
  if (step === 0) return "The start of the search";
  const { nodes, hypotheses } = result.search;
  const place = hypotheses.findIndex(({ node }) => node === id);
  const is_dead = fate === "live" && !nodes.some((one) => one.parent === id && one.fate !== "pruned");
  const why = [
    place >= 0 && `hypothesis ${place + 1} of ${hypotheses.length}`,
    reason,
    is_dead && "but none of its extensions was",
  ].filter(Boolean);
  const name = h("bdi", {}, label(result.token(token)));
  return [name, ` at step ${step}: ${FATES[fate]}${why.length ? `, ${why.join(", ")}` : ""}`];
}

/** Has the search begin with a path. */
function go_on({ store, description }, ids) {
  const go = () => store.set({ written: ids });
  const can_go = ids.length > 0 && !description.recorded;
  return can_go && h("button", { class: "force", on: { click: go } }, "Search on from here");
}

function let_go({ store }) {
  const n = store.get("written").length;
  const said = `Let the ${n} forced token${n > 1 ? "s" : ""} go`;
  return h("button", { class: "free", on: { click: () => store.set({ written: [] }) } }, said);
}

/** The hypotheses, the best first. */
function table({ search }, choose_path) {
  const { hypotheses, nodes } = search;
  const row = ({ text, logprob, score, node, finished }, place) =>
    h(
      "tr",
      {},
      h("th", { scope: "row" }, `#${place + 1}`),
      h(
        "td",
        {},
        h(
          "button",
          { class: "hypothesis", dir: "auto", data: { end: node }, on: { click: () => choose_path(node) } },
          text || "(empty)",
        ),
        !finished && " (cut by the length limit)",
      ),
      h("td", { class: "number" }, nodes[node].step),
      h("td", { class: "number" }, nats(logprob, 3)),
      h("td", { class: "number" }, nats(score, 3)),
    );
  const heads = ["", "Hypothesis", "Tokens", "Sum", "Score"];
  return h(
    "table",
    { class: "hypotheses" },
    h("caption", {}, "Hypotheses, the best first"),
    h("thead", {}, h("tr", {}, heads.map((one) => (one ? h("th", { scope: "col" }, one) : h("td", {}))))),
    h("tbody", {}, hypotheses.map(row)),
  );
}
