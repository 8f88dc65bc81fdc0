/** Controls of the settings of decoding, by the library's names; what was not changed is as the model has it. */

import { h } from "./elements.js";

/** @param {import("./page.js").Page} page @param {string} name @returns {any} the setting as it is now */
export function setting({ store, description }, name) {
  return store.get("settings")[name] ?? description.generation[name];
}

/** Whether a token ends what is written, so that nothing comes behind it. @param {number} id */
export function is_end(page, id) {
  const ends = setting(page, "end_tokens") ?? [];
  return ends.length ? ends.includes(id) : id === page.description.target_special.eos;
}

/**
 * How a view changes settings: while the page draws what was wished last, only the latest wish waits.
 * @param {import("./store.js").Store} store
 * @returns {(changes: Record<string, any>) => Promise<void>}
 */
export function setting_changer(store) {
  let [is_busy, wished] = [false, null];
  return async (changes) => {
    wished = { ...wished, ...changes };
    if (is_busy) return;
    is_busy = true;
    while (wished !== null) {
      const settings = { ...store.get("settings"), ...wished };
      wished = null;
      await store.set({ settings });
    }
    is_busy = false;
  };
}

/**
 * A slider with its name and its value.
 * @param {import("./page.js").Page} page
 * @param {string} view whose control it is
 * @param {object} of
 * @param {string} of.name of the setting
 * @param {string} of.title
 * @param {number} of.min
 * @param {number} of.max
 * @param {number} of.step
 * @param {(value: number) => string} [of.said] the value as people say it
 * @param {(changes: Record<string, any>) => void} change
 * @returns {HTMLElement}
 */
export function slider(page, view, { name, title, min, max, step, said = String }, change) {
  const id = `${view}-${name}`;
  const value = h("output", { for: id });
  const own = setting(page, name);
  const input = h("input", { id, type: "range", min: Math.min(min, own), max: Math.max(max, own), step });
  const say = (number) => {
    value.textContent = said(number);
    input.setAttribute("aria-valuetext", said(number));
  };
  const show = () => {
    input.value = setting(page, name);
    say(setting(page, name));
  };
  input.addEventListener("input", () => {
    say(Number(input.value));
    change({ [name]: Number(input.value) });
  });
  page.store.on(["settings"], show);
  show();
  return h("div", { class: "setting" }, h("label", { for: id }, title), input, value);
}

/**
 * A choice among names.
 * @param {import("./page.js").Page} page
 * @param {string} view whose control it is
 * @param {{name: string, title: string, options: Record<string, string>}} of how each option is said
 * @param {(changes: Record<string, any>) => void} change
 * @returns {HTMLElement}
 */
export function choice(page, view, { name, title, options }, change) {
  const id = `${view}-${name}`;
  const all = Object.entries(options).map(([value, said]) => h("option", { value }, said));
  const select = h("select", { id, on: { change: () => change({ [name]: select.value }) } }, all);
  const show = () => (select.value = setting(page, name));
  page.store.on(["settings"], show);
  show();
  return h("div", { class: "setting" }, h("label", { for: id }, title), select);
}

/** A button that gives the settings back to the model. @returns {HTMLElement} */
export function restore({ store }, view, names) {
  const back = () => {
    const kept = Object.entries(store.get("settings")).filter(([name]) => !names.includes(name));
    return store.set({ settings: Object.fromEntries(kept) });
  };
  const button = h("button", { id: `${view}-restore`, class: "restore", on: { click: back } }, "As the model has them");
  const show = () => (button.disabled = !names.some((name) => name in store.get("settings")));
  store.on(["settings"], show);
  show();
  return button;
}
