/** "How to read this": what the page shows, for someone who has never seen a Transformer. */

import { fill, h } from "./elements.js";

/** What is told, and the views that show it; what no view of this model shows is left out. */
const PARTS = [
  [
    ["tokens"],
    "Tokens",
    "A model reads no letters. Its text is cut into pieces, tokens, and each has a number. Point at one: all that " +
      "belongs to it lights up.",
  ],
  [
    ["attention", "attention_grid", "attention_map"],
    "Attention",
    "Layer by layer, each token gathers what it needs from others. Each head does so in its own way: the stronger " +
      "the colour of a square, the more the token of its row takes from the token of its column.",
  ],
  [
    ["head-steps", "head_steps"],
    "One head",
    "The token asks with a query, the others answer with keys. The better they match, the more of the other's value " +
      "is taken. Here are the numbers, step by step.",
  ],
  [
    ["lens", "attribution"],
    "What the layers add",
    "Each layer adds to a token's numbers. The lens shows what the model would say after each layer; the attribution " +
      "shows which parts spoke for a token, and which against.",
  ],
  [
    ["alternatives"],
    "Alternatives",
    "At each place the model gives every token a probability. What was taken is framed, beside what could have been.",
  ],
  [
    ["beam_tree"],
    "The beam",
    "The first good word is not always the way to the best sentence. So several beginnings are kept side by side, " +
      "and the weakest dropped at each step.",
  ],
  [
    ["next_token"],
    "The next token",
    "The model writes by drawing one token after another. The sliders say how bold it is, and what is never drawn.",
  ],
  [
    ["gaps"],
    "Gaps",
    "The model guesses what stands in a gap from the text on both sides of it.",
  ],
  [
    ["labels"],
    "Labels",
    "The model gives the whole text a label. What a word adds is seen by leaving it out.",
  ],
  [
    ["switches"],
    "Parts switched off",
    "Switch a head or a layer off: what breaks tells what it was for.",
  ],
];

/** @param {import("./page.js").Page} page @returns {HTMLElement} a button, and the dialog that it opens */
export function guide({ description }) {
  const list = h("dl", {});
  const close = h("button", { class: "close", on: { click: () => dialog.close() } }, "Close");
  const title = h("h2", { id: "guide-title" }, "How to read this");
  const lead = description.remote
    ? "You see what a Transformer computes of a text; it runs on the server, and its arrays come here in float16."
    : description.recorded
      ? "You see what a Transformer computed of one text; that was kept in this page, the arrays in float16."
      : "You see a Transformer at work: the model runs in this page, and every number is its own.";
  const dialog = h("dialog", { id: "guide", "aria-labelledby": "guide-title" }, title, h("p", {}, lead), list, close);
  const open = () => {
    fill(list, PARTS.map((part) => told(part, dialog)));
    dialog.showModal();
  };
  const outside = ({ target }) => target === dialog && dialog.close();
  dialog.addEventListener("click", outside);
  const button = { id: "guide-open", "aria-haspopup": "dialog", on: { click: open } };
  return h("span", { class: "guide" }, h("button", button, "How to read this"), dialog);
}

/** One part, with a link to the first of its views that the page has. */
function told([names, title, text], dialog) {
  const view = names.map((name) => document.getElementById(name)).find((one) => one !== null);
  if (view === undefined) return null;
  const go = (event) => {
    event.preventDefault();
    dialog.close();
    const heading = view.querySelector("h2");
    heading.setAttribute("tabindex", -1);
    heading.focus({ preventScroll: true });
    view.scrollIntoView();
  };
  return [h("dt", {}, h("a", { href: `#${view.id}`, on: { click: go } }, title)), h("dd", {}, text)];
}
