/** The box that translates: what is typed on one side stands on the other, in another language. */

import { fill, h } from "../views/elements.js";
import { latest } from "./latest.js";
import { area, copier, look_link, problem_line } from "./parts.js";

const AUTO = "auto";
const ALTERNATIVES = 3;

/** @typedef {{code: string, name: string, targets: string[]}} Language */

/**
 * @param {import("./server.js").Server} server
 * @param {import("./parts.js").Model[]} models translators
 * @param {Language[]} languages
 * @param {number} most characters
 * @returns {HTMLElement}
 */
export function translate_box(server, models, languages, most) {
  const sides = language_lists(languages);
  const text = area("text", "Text to translate");
  const output = h("output", { id: "translation", for: "text", dir: "auto", tabindex: 0, "aria-label": "Translation" });
  const problem = problem_line();
  const others = alternatives_list(() => ask(0));
  const count = h("span", { id: "count", class: "quiet" });
  const own = () => models.find(({ languages: pair }) => pair[0] === sides.from() && pair[1] === sides.target.value);
  const look = look_link(own, () => text.value.split("\n", 1)[0]);
  const is_old = (old) => {
    output.classList.toggle("old", old);
    output.setAttribute("aria-busy", old);
  };
  const ask = latest({
    answer: async (signal) => {
      const q = text.value;
      if (q.trim() === "") return { translatedText: "" };
      const alternatives = others.element.open ? { alternatives: ALTERNATIVES } : {};
      const [source, target] = [sides.source.value, sides.target.value];
      return { ...(await server.ask("/translate", { q, source, target, ...alternatives }, signal)), target };
    },
    begun: () => {
      count.textContent = `${size(text.value)} of ${most.toLocaleString("en")} characters`;
      is_old(true);
      others.wait();
      look.update();
    },
    came: ({ translatedText, target, detectedLanguage, alternatives = [] }) => {
      output.textContent = translatedText;
      output.lang = target ?? "";
      is_old(false);
      problem.show(null);
      sides.detected(detectedLanguage);
      others.show(alternatives, target);
      look.update();
    },
    failed: (error) => {
      output.textContent = "";
      is_old(false);
      others.show([], "");
      problem.show(error);
    },
  });
  const clear = h("button", { id: "clear", on: { click: () => replace(text, "", ask) } }, "Clear");
  text.addEventListener("input", () => ask());
  sides.changed(() => ask(0));
  ask(0);
  return framed(
    h("div", { class: "sides" }, [
      h("div", { class: "head" }, h("label", { for: "source" }, "From"), sides.source),
      swap_button(sides, text, output, ask),
      h("div", { class: "head" }, h("label", { for: "target" }, "To"), sides.target),
      h("div", { class: "typed" }, text, h("div", { class: "foot" }, count, clear)),
      h("div", { class: "given" }, output, h("div", { class: "foot" }, copier(() => output.textContent))),
    ]),
    problem.line,
    others.element,
    look.link,
  );
}

function framed(...children) {
  const title = h("h2", { id: "translate-title" }, "Translate");
  const about = { class: "panel box translate", id: "translate", "aria-labelledby": title.id };
  return h("section", about, title, children);
}

/** Characters as the server counts them. */
function size(text) {
  return [...text].length.toLocaleString("en");
}

function replace(area, text, ask) {
  area.value = text;
  area.focus();
  ask(0);
}

/** The two lists of languages: the second has what the first is translated into. */
function language_lists(languages) {
  const names = new Map(languages.map(({ code, name }) => [code, name]));
  const sources = languages.filter(({ targets }) => targets.length > 0);
  const option = (code) => h("option", { value: code }, names.get(code));
  const auto = sources.length > 1 && h("option", { value: AUTO }, "Detect the language");
  const source = h("select", { id: "source" }, auto, sources.map(({ code }) => option(code)));
  const target = h("select", { id: "target" });
  let found = sources[0].code;
  const targets_of = (code) => {
    const of = code === AUTO ? sources.flatMap(({ targets }) => targets) : languages.find((one) => one.code === code);
    return [...new Set(code === AUTO ? of : of.targets)];
  };
  const show_targets = (wanted = target.value) => {
    const codes = targets_of(source.value);
    fill(target, codes.map(option));
    target.value = codes.includes(wanted) ? wanted : codes[0];
  };
  source.value = found;
  show_targets();
  return {
    source,
    target,
    from: () => (source.value === AUTO ? found : source.value),
    has: (from, to) => sources.some(({ code, targets }) => code === from && targets.includes(to)),
    choose: (from, to) => {
      source.value = from;
      show_targets(to);
    },
    detected: (language) => {
      if (auto) auto.textContent = language ? `Detected: ${names.get(language.language)}` : "Detect the language";
      found = language?.language ?? found;
    },
    changed: (listener) => {
      source.addEventListener("change", () => (show_targets(), listener()));
      target.addEventListener("change", listener);
    },
  };
}

/** Exchanges the languages, and goes on from the translation; where no model goes that way, it can do nothing. */
function swap_button(sides, text, output, ask) {
  const button = h("button", { id: "swap", "aria-label": "Swap the languages" }, "⇄");
  const show = () => {
    const is_way = sides.has(sides.target.value, sides.from());
    button.disabled = !is_way;
    button.title = is_way ? "Swap the languages" : "No model of this server translates the other way";
  };
  button.addEventListener("click", () => {
    const said = output.classList.contains("old") ? "" : output.textContent;
    sides.choose(sides.target.value, sides.from());
    show();
    replace(text, said || text.value, ask);
  });
  sides.changed(show);
  show();
  return button;
}

/** Other translations, which are asked for while this is open. */
function alternatives_list(ask) {
  const list = h("ol", {});
  const none = h("p", { class: "quiet" });
  const title = h("summary", {}, "Alternatives");
  const element = h("details", { id: "alternatives", on: { toggle: ask } }, title, none, list);
  const wait = () => {
    none.textContent = list.children.length === 0 ? "They are being looked for." : "";
  };
  const show = (texts, language) => {
    none.textContent = texts.length === 0 ? "There are none." : "";
    fill(list, texts.map((text) => h("li", { dir: "auto", lang: language }, text)));
  };
  return { element, show, wait };
}
