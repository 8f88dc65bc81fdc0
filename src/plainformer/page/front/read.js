/** Boxes for what reads a text: the labels of a classifier, what could stand in the gaps of a masked model. */

import { fill, h } from "../views/elements.js";
import { percent } from "../views/parts.js";
import { latest } from "./latest.js";
import { area, look_link, model_list, problem_line } from "./parts.js";

const TOP = 6; // words for a gap

/**
 * @param {import("./server.js").Server} server
 * @param {import("./parts.js").Model[]} models classifiers
 */
export function classify_box(server, models) {
  const answer = async (input, model, signal) => {
    const { data } = await server.ask("/v1/classify", { input, model: model.id }, signal);
    const found = Object.entries(data[0].probabilities).map(([name, probability]) => ({ name, probability }));
    return [bars("", found.sort((one, other) => other.probability - one.probability))];
  };
  return box({ id: "classify", title: "Classify", label: "Text to classify", models, answer });
}

/**
 * @param {import("./server.js").Server} server
 * @param {import("./parts.js").Model[]} models masked language models
 */
export function fill_box(server, models) {
  const answer = async (input, model, signal) => {
    if (!input.includes(model.mask)) return [h("p", { class: "quiet" }, `A gap is written ${model.mask}.`)];
    const { data } = await server.ask("/fill", { input, model: model.id, top: TOP }, signal);
    return data[0].gaps.map((gap, at) => {
      const found = gap.map(({ text, probability }) => ({ name: text, probability }));
      return bars(data[0].gaps.length > 1 ? `Gap ${at + 1}` : "", found);
    });
  };
  const gap = (text, model, ask) => {
    const put = () => {
      text.setRangeText(model().mask, text.selectionStart, text.selectionEnd, "end");
      text.focus();
      ask(0);
    };
    return h("button", { id: "put-gap", on: { click: put } }, "Put a gap here");
  };
  return box({ id: "fill", title: "Fill gaps", label: "Text with a gap", models, answer, more: gap });
}

/** @returns {HTMLElement} a text, and what is found in it as one types */
function box({ id, title, label, models, answer, more = () => false }) {
  const text = area(`${id}-text`, label);
  const found = h("div", { id: `${id}-found`, class: "found", role: "status" });
  const problem = problem_line();
  const { list, row } = model_list(models, `${id}-model`, () => ask(0));
  const model = () => models.find((one) => one.id === list.value);
  const look = look_link(model, () => text.value);
  const ask = latest({
    answer: async (signal) => (text.value.trim() === "" ? [] : answer(text.value, model(), signal)),
    begun: () => {
      found.classList.add("old");
      look.update();
    },
    came: (elements) => {
      found.classList.remove("old");
      fill(found, elements);
      problem.show(null);
    },
    failed: (error) => {
      fill(found);
      problem.show(error);
    },
  });
  text.addEventListener("input", () => ask());
  ask(0);
  return h(
    "section",
    { class: `panel box ${id}`, id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title),
    text,
    h("div", { class: "foot" }, more(text, model, ask), row),
    problem.line,
    found,
    look.link,
  );
}

/** @param {{name: string, probability: number}[]} rows the likeliest first */
function bars(title, rows) {
  const items = rows.map(({ name, probability }) =>
    h(
      "li",
      {},
      h("span", { class: "name", dir: "auto" }, name),
      h("span", { class: "bar", "aria-hidden": "true", style: { "--part": probability } }),
      h("span", { class: "percent" }, percent(probability)),
    ),
  );
  return h("div", {}, title && h("h3", {}, title), h("ol", { class: "bars" }, items));
}
