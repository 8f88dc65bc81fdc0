/** Tokens as they are cut: those that are read and those that are written, each with its id and its bytes. */

import { copied } from "./copied.js";
import { fill, h, s } from "./elements.js";
import { belongs } from "./hover.js";
import { stepped } from "./keys.js";
import { panel } from "./panel.js";
import { axes, is_translator, label } from "./parts.js";

const HELP = "A model reads numbers, not letters: each of these pieces has one. Choose one to have it explained below.";

/** @param {import("./page.js").Page} page */
export function tokens(page) {
  const { store, description } = page;
  const sides = is_translator(description) ? ["source", "target"] : ["target"];
  const lists = Object.fromEntries(sides.map((side) => [side, list(page, side)]));
  const copy = s("svg", { class: "copy" });
  const detail = h("p", { class: "detail", id: "tokens-detail" });
  const own = panel(
    { name: "tokens", title: "Tokens", help: HELP, picture: () => picture_of(own, copy) },
    sides.map((side) => row(side, description, lists[side])),
    detail,
    copy,
  );
  own.classList.add("wide");
  const draw = () => {
    const result = store.get("result");
    if (result) for (const side of sides) fill(lists[side], chips(result, side, description));
  };
  const mark = () => {
    for (const side of sides) press(lists[side], side === "target" ? store.get("place") : -1);
    tell(detail, store);
  };
  store.on(["result"], draw);
  store.on(["result", "place", "hover"], mark);
  return own;
}

function row(side, description, chips) {
  if (!is_translator(description)) return chips;
  return h("div", { class: "side" }, h("h3", {}, side === "source" ? "Source" : "Target"), chips);
}

/** One stop of the tab key; arrow keys go along. */
function list(page, side) {
  const choose = ({ target }) => {
    const chip = target.closest("button");
    if (chip) choose_token(page, side, Number(chip.dataset.token.split(":")[1]));
  };
  const walk = (event) => {
    const chips = [...root.children];
    const sign = getComputedStyle(root).direction === "rtl" ? -1 : 1;
    const next = stepped(event, [0, chips.indexOf(event.target)], [1, chips.length], sign);
    if (next) chips[next[1]].focus();
  };
  const stop = ({ target }) => {
    for (const one of root.children) one.tabIndex = one === target ? 0 : -1;
  };
  const about = { class: "chips", dir: "auto", role: "toolbar", "aria-label": `Tokens of the ${side}` };
  const root = h("div", { ...about, on: { click: choose, keydown: walk, focusin: stop } });
  return root;
}

/** A target token is explained; the row of the open map is that of the token, where its rows are of this side. */
function choose_token({ store, description }, side, index) {
  const is_row = axes(description, store.get("attention").name).queries === side;
  const chosen = side === "target" ? { place: index, token: null } : {};
  return store.set({ ...chosen, ...(is_row ? { query: index } : {}) });
}

function chips({ pass, prompt, ids }, side, { special, target_special, stacks }) {
  const before = Math.max(0, ids.length - pass.target.length); // tokens that the window does not reach
  const { unk } = side === "source" || !("decoder/" in stacks) ? special : target_special;
  return pass[side].map((view, index) => {
    const kinds = {
      special: view.special && view.id !== unk,
      unknown: view.id === unk,
      gap: pass.gaps?.includes(index),
      written: prompt > 0 && before + index >= prompt,
    };
    const named = Object.keys(kinds).filter((kind) => kinds[kind]);
    const said = [label(view), `id ${view.id}`, bytes(view), ...named].filter(Boolean).join(", ");
    const plain = { class: ["chip", ...named].join(" "), "aria-label": said, data: belongs(side, index) };
    return h("button", { ...plain, tabindex: index ? -1 : 0 }, label(view));
  });
}

function press(list, place) {
  [...list.children].forEach((chip, index) => {
    if (place === index) chip.setAttribute("aria-pressed", "true");
    else chip.removeAttribute("aria-pressed");
  });
}

function bytes(view) {
  if (view.bytes.length === 0) return "";
  const written = view.bytes.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ");
  return `${view.bytes.length === 1 ? "byte" : "bytes"} ${written}`;
}

/** What is pointed at, and otherwise what is chosen. */
function tell(detail, store) {
  const [result, place] = [store.get("result"), store.get("place")];
  const { side, index } = store.get("hover") ?? { side: "target", index: place };
  const view = result?.pass[side][index];
  if (!view) return fill(detail, "");
  const facts = [`${side} ${index}`, `id ${view.id}`, bytes(view) || "a special token", `in the vocabulary as `];
  fill(detail, h("bdi", { class: "name" }, label(view)), ` · ${facts.join(" · ")}`, h("bdi", {}, view.token));
}

/** The chips where they stand when there is room for all. */
function picture_of(own, copy) {
  own.classList.add("whole");
  copied(copy, [...own.querySelectorAll("h3, .chip")]);
  own.classList.remove("whole");
  return copy;
}
