/** Light and dark: as the system has it, until somebody chooses. */

import { h } from "./elements.js";

/** @param {import("./store.js").Store} store @returns {HTMLElement} the switch */
export function theme_switch(store) {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const is_dark = () => (store.get("theme") || (system.matches ? "dark" : "light")) === "dark";
  const change = () => store.set({ theme: is_dark() ? "light" : "dark" });
  const button = h("button", { class: "theme", on: { click: change } });
  const show = () => {
    document.documentElement.dataset.theme = is_dark() ? "dark" : "light";
    button.textContent = is_dark() ? "Light" : "Dark";
    button.setAttribute("aria-label", `Change to the ${is_dark() ? "light" : "dark"} theme`);
  };
  system.addEventListener("change", () => store.set({ theme: "" }).then(show));
  store.on(["theme"], show);
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
