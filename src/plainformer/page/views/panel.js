/** The frame of a view: its title, what it shows in one sentence, a button that saves its picture. */

import { h } from "./elements.js";
import { save_svg } from "./save.js";

/**
 * @param {object} of
 * @param {string} of.name of the view: of its element and of the file that is saved
 * @param {string} of.title
 * @param {string} of.help one sentence: how to read this
 * @param {(() => SVGElement | null) | null} [of.picture] what is saved; null where nothing is drawn
 * @param {...Node} children
 * @returns {HTMLElement}
 */
export function panel({ name, title, help, picture = null }, ...children) {
  const said = h("span", { class: "unsaved", role: "status" });
  const save = () => {
    const drawn = picture();
    said.textContent = drawn ? "" : "Nothing is drawn here now.";
    if (drawn) save_svg(drawn, name);
  };
  return h(
    "section",
    { class: `panel ${name}`, id: name, "aria-labelledby": `${name}-title` },
    h(
      "header",
      {},
      h("h2", { id: `${name}-title` }, title),
      picture && said,
      picture && h("button", { class: "save", "aria-label": `Save ${title} as SVG`, on: { click: save } }, "SVG"),
    ),
    h("p", { class: "help" }, help),
    ...children,
  );
}
