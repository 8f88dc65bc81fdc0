/** Light and dark: as the system has it, until somebody chooses. */

import { h } from "./elements.js";

const IS_DARK = "(prefers-color-scheme: dark)";

/** @returns {"light" | "dark"} */
export function system_theme() {
  return matchMedia(IS_DARK).matches ? "dark" : "light";
}

/** @param {import("./store.js").Store} store @returns {HTMLElement} the switch */
export function theme_switch(store) {
  let is_chosen = false;
  const other = () => (store.get("theme") === "dark" ? "light" : "dark");
  const change = () => {
    is_chosen = true;
    store.set({ theme: other() });
  };
  const button = h("button", { class: "theme", on: { click: change } });
  const show = () => {
    document.documentElement.dataset.theme = store.get("theme");
    button.textContent = other() === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Change to the ${other()} theme`);
  };
  matchMedia(IS_DARK).addEventListener("change", () => is_chosen || store.set({ theme: system_theme() }));
  store.on(["theme"], show); // the first that listens: others draw in the colours of the page
  show();
  return button;
}

/**
 * The colour of a weight on the page as it is now: nothing of it at 0, all of it at 1.
 * @returns {[number, number, number]} red, green and blue, 0 to 255, of which a weight is the opacity
 */
export function ink() {
  const said = getComputedStyle(document.documentElement).getPropertyValue("--ink");
  return said.split(",").map(Number);
}
