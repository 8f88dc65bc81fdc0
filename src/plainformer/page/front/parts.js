/** What the boxes of the page share: fields with their labels, the line of an error, a button that copies, links. */

import { fill, h } from "../views/elements.js";

const SHOWN = 1500; // milliseconds
const CARRIED = 300; // characters of a text that are taken along to the page of a model

/** @typedef {{id: string, task: string, languages: string[] | null, mask: string | null, look: boolean}} Model */

/** @returns {HTMLTextAreaElement} where a text is typed, of this name for those who hear the page */
export function area(id, label) {
  return h("textarea", { id, rows: 3, dir: "auto", "aria-label": label, spellcheck: "false", autocomplete: "off" });
}

/** @returns {{line: HTMLElement, show: (error: Error | null) => void}} where an error is said, in one line */
export function problem_line() {
  const line = h("p", { class: "problem", role: "alert" });
  const show = (error) => {
    const again = error?.retry_after ? ` It is asked again in ${error.retry_after} s.` : "";
    line.textContent = error ? `${said(error.message)}${again}` : "";
  };
  return { line, show };
}

/** A message as a sentence. */
function said(message) {
  return `${message.charAt(0).toUpperCase()}${message.slice(1)}${/[.?!]$/.test(message) ? "" : "."}`;
}

/** @param {Model[]} models of one task @returns {{list: HTMLSelectElement, row: (HTMLElement | false)[]}} */
export function model_list(models, id, change) {
  const options = models.map((model) => h("option", { value: model.id }, model.id));
  const list = h("select", { id, on: { change } }, options);
  return { list, row: [models.length > 1 && h("label", { for: id }, "Model"), models.length > 1 && list] };
}

/** @param {() => string} text @returns {HTMLElement} a button that copies it */
export function copier(text) {
  const said = h("span", { class: "said-of-copy", role: "status" });
  const copy = async () => {
    const is_done = await copied(text());
    said.textContent = is_done ? "Copied" : "The browser does not allow it";
    setTimeout(() => (said.textContent = ""), SHOWN);
  };
  return h("span", {}, h("button", { class: "copy-text", on: { click: copy } }, "Copy"), " ", said);
}

/** Whether it was copied. A page that came without encryption, from another machine, has the old way alone. */
async function copied(text) {
  if (navigator.clipboard) {
    return navigator.clipboard.writeText(text).then(
      () => true,
      () => false,
    );
  }
  const area = h("textarea", { "aria-hidden": "true", style: { position: "fixed", opacity: 0 } });
  area.value = text;
  document.body.append(area);
  area.select();
  const is_done = document.execCommand("copy");
  area.remove();
  return is_done;
}

/**
 * A link to the page on which a model is looked at.
 * @param {() => Model | undefined} model @param {() => string} text that it reads there first
 * @returns {{link: HTMLElement, update: () => void}}
 */
export function look_link(model, text) {
  const link = h("p", { class: "look" });
  const address = ({ id }) => {
    const start = [...text().trim()].slice(0, CARRIED).join("");
    return `/look/${encodeURIComponent(id)}${start ? `#text=${encodeURIComponent(start)}` : ""}`;
  };
  const update = () => {
    const found = model();
    fill(link, found?.look && h("a", { href: address(found) }, `Look inside ${found.id}`));
  };
  return { link, update };
}
