/** Heads, sublayers and layers, each of which can be switched off, and what the model then says. */

import { changes, changes_picture } from "./changes.js";
import { copied } from "./copied.js";
import { fill, h, s } from "./elements.js";
import { stepped } from "./keys.js";
import { panel } from "./panel.js";
import { layers, spoken } from "./parts.js";

const SUBLAYERS = { self_attention: "self", cross_attention: "cross", feed_forward: "FFN" };

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function switches(page) {
  const { store, description } = page;
  if (description.recorded) return null;
  const rows = layers(description).map((layer) => parts_of(layer, description));
  const buttons = new Map();
  const toggle = (name) => {
    if (is_within_off(name, store.get("off"))) return;
    const off = store.get("off");
    store.set({ off: off.includes(name) ? off.filter((one) => one !== name) : [...off, name] });
  };
  const grid = h("div", { class: "grid", role: "group", "aria-label": "Parts of the model" });
  fill(grid, rows.map((row) => layer_row(row, buttons, toggle)));
  grid.addEventListener("keydown", (event) => step(event, rows, buttons));
  grid.addEventListener("focusin", ({ target }) => stop_at(buttons, target));
  const count = h("p", { class: "count", role: "status" });
  const all = h("button", { class: "all-on", on: { click: () => store.set({ off: [] }) } }, "All on");
  const show = () => {
    const off = store.get("off");
    for (const [name, button] of buttons) {
      const is_within = is_within_off(name, off);
      button.setAttribute("aria-pressed", !off.includes(name) && !is_within);
      button.setAttribute("aria-disabled", is_within);
    }
    const names = off.slice(0, 4).map(spoken).join(", ") + (off.length > 4 ? `, and ${off.length - 4} more` : "");
    count.textContent = off.length ? `Off: ${names}.` : "Everything is on.";
    all.disabled = off.length === 0;
  };
  const state = { is_all: false, is_open: false };
  const told = h("div", { class: "changes" });
  const draw = () => {
    const had_focus = told.contains(document.activeElement);
    const result = store.get("result");
    if (result !== null) fill(told, changes(page, result, state, draw));
    if (had_focus) told.querySelector(".all")?.focus();
  };
  store.on(["off"], show);
  store.on(["result", "theme"], draw);
  show();
  stop_at(buttons, buttons.get(rows[0][0].name));
  const help = "Switch a part off: it then adds nothing, and you see what the model says without it.";
  const copy = s("svg", { class: "copy" });
  const picture = () => changes_picture(told) ?? copied(copy, [...buttons.values()]);
  const of = { name: "switches", title: "Switch parts off", help, picture };
  return panel(of, grid, h("p", { class: "choice" }, all, count), told, copy);
}

/**
 * @param {string} layer as "decoder/0"
 * @returns {{name: string, text: string}[]} the layer, each sublayer behind which its heads stand
 */
function parts_of(layer, { heads }) {
  const kinds = Object.keys(SUBLAYERS).filter((one) => one !== "cross_attention" || layer.startsWith("decoder/"));
  const own = kinds.flatMap((kind) => {
    const each = kind === "feed_forward" ? [] : Array.from({ length: heads }, (_, head) => head);
    const name = `${layer}/${kind}`;
    return [{ name, text: SUBLAYERS[kind] }, ...each.map((head) => ({ name: `${name}/${head}`, text: `${head}` }))];
  });
  return [{ name: layer, text: spoken(layer) }, ...own];
}

/** Buttons of a layer, those of a sublayer and of its heads side by side. */
function layer_row(row, buttons, toggle) {
  const groups = [];
  for (const { name, text } of row) {
    const is_head = /\/\d+$/.test(name) && name.includes("attention");
    const kind = is_head ? "head" : "part";
    const on = { click: () => toggle(name) };
    const plain = { class: kind, tabindex: -1, "aria-label": spoken(name), data: { part: name } };
    const button = h("button", { ...plain, on }, text);
    buttons.set(name, button);
    if (is_head) groups.at(-1).append(button);
    else groups.push(h("span", { class: "sublayer" }, button));
  }
  return h("div", { class: "layer" }, groups);
}

/** Whether a part of which this one is a part is switched off. */
function is_within_off(name, off) {
  return off.some((one) => name.startsWith(`${one}/`));
}

/** One button is a stop of the tab key; the arrows go to the others. */
function stop_at(buttons, button) {
  for (const one of buttons.values()) one.tabIndex = one === button ? 0 : -1;
}

function step(event, rows, buttons) {
  const row = rows.findIndex((own) => own.some(({ name }) => buttons.get(name) === event.target));
  if (row < 0) return;
  const column = rows[row].findIndex(({ name }) => buttons.get(name) === event.target);
  const to = stepped(event, [row, column], [rows.length, rows[row].length]);
  if (to === null) return;
  const own = rows[to[0]];
  buttons.get(own[Math.min(to[1], own.length - 1)].name).focus();
}
