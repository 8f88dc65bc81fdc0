/** The text that a language model goes on with: what was given, what was written behind it, buttons for more. */

import { fill, h } from "./elements.js";
import { belongs } from "./hover.js";
import { label } from "./parts.js";
import { is_end } from "./settings.js";

const AT_ONCE = 4; // tokens that are generated before they are shown
const [MORE, MOST] = [20, 500]; // tokens

/**
 * @param {import("./page.js").Page} page
 * @param {string} view whose part it is
 * @returns {{text: HTMLElement, buttons: HTMLElement, write: (id: number) => Promise<void>}}
 */
export function writing(page, view) {
  const { store } = page;
  const state = { page, is_busy: false, views: new Map(), asked: null };
  const about = { id: `${view}-text`, class: "text", dir: "auto", tabindex: 0, role: "group" };
  const text = h("div", { ...about, "aria-label": "The text so far; underlined is what was written" });
  const write = async (id) => {
    const result = store.get("result");
    if (state.is_busy || !result?.step || is_end(page, id)) return;
    await set_written(state, [...store.get("written"), id]);
  };
  const { row, buttons, count, note } = make_buttons(view);
  const go = {
    sample: () => write(store.get("result").step.token),
    step: () => write(store.get("result").step.predictions[0].id),
    back: () => !state.is_busy && set_written(state, store.get("written").slice(0, -1)),
    clear: () => !state.is_busy && set_written(state, []),
    more: () => generate(state, text, Math.min(Math.max(1, Math.trunc(Number(count.value)) || MORE), MOST), note),
  };
  for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", go[name]);
  store.on(["result"], async () => {
    const result = store.get("result");
    if (!result?.step) return;
    const nothing = store.get("written").length === 0;
    for (const name of ["back", "clear"]) buttons[name].setAttribute("aria-disabled", nothing);
    buttons.sample.setAttribute("aria-disabled", result.step.ended);
    buttons.more.setAttribute("aria-disabled", result.step.ended);
    buttons.step.setAttribute("aria-disabled", is_end(page, result.step.predictions[0].id));
    note.textContent = said_of(result);
    await show_text(state, text, result, result.ids.slice(result.prompt));
  });
  return { text, buttons: row, write };
}

function make_buttons(view) {
  const make = (name, said) => h("button", { id: `${view}-${name}` }, said);
  const buttons = {
    sample: make("sample", "Sample"),
    step: make("step", "Step: the most probable"),
    back: make("back", "Go back"),
    clear: make("clear", "Back to the start"),
    more: make("more", "Generate"),
  };
  const id = `${view}-count`;
  const count = h("input", { id, type: "number", min: 1, max: MOST, value: MORE, inputmode: "numeric" });
  const note = h("p", { id: `${view}-note`, class: "note", role: "status" });
  const { more, ...others } = buttons;
  const several = h("span", { class: "setting" }, more, count, h("label", { for: id }, "tokens more"));
  const group = { class: "buttons", role: "group", "aria-label": "Write" };
  const row = h("div", {}, h("div", group, Object.values(others), several), note);
  return { row, buttons, count, note };
}

/** What is not as one would expect. */
function said_of({ ids, pass, step }) {
  const [read, unread] = [pass.target.length, ids.length - pass.target.length];
  const said = [];
  if (unread > 0) said.push(`The model reads the last ${read} tokens; ${unread} before them are forgotten.`);
  if (step.ended) said.push("The token that was drawn ends the text.");
  return said.join(" ");
}

async function set_written(state, written) {
  state.is_busy = true;
  await state.page.store.set({ written });
  state.is_busy = false;
}

/** Writes several tokens, which appear as they come; the views follow in the end. */
async function generate(state, text, number, note) {
  const { store, ask } = state.page;
  const result = store.get("result");
  if (state.is_busy || !result?.step || result.step.ended) return;
  state.is_busy = true;
  let ids = result.ids;
  try {
    for (let left = number; left > 0; left -= AT_ONCE) {
      const wanted = Math.min(left, AT_ONCE);
      const settings = { ...store.get("settings"), max_tokens: wanted };
      const known = ids.length;
      ids = (await ask("generate", { ids, settings, off: store.get("off") })).ids;
      if (store.get("result") !== result) return; // something else was asked for meanwhile
      note.textContent = `${ids.length - result.ids.length} tokens`;
      await show_text(state, text, result, ids.slice(result.prompt));
      if (ids.length - known < wanted) break; // the text has ended
    }
    await store.set({ written: ids.slice(result.prompt) });
  } finally {
    state.is_busy = false;
  }
}

/** The prompt as it was typed, and each token behind it. */
async function show_text(state, text, result, written) {
  const { store, ask } = state.page;
  state.asked = written;
  const fresh = [...new Set(written)].filter((id) => !state.views.has(id));
  if (fresh.length > 0)
    for (const view of (await ask("tokens", { ids: fresh, side: "target" })).tokens) state.views.set(view.id, view);
  if (state.asked !== written) return;
  const first = result.prompt - (result.ids.length - result.pass.target.length);
  const decoder = new TextDecoder(); // bytes of a character may come in several tokens
  const spans = written.map((id, at) => {
    const { bytes, special, token } = state.views.get(id);
    const said = special ? token : decoder.decode(Uint8Array.from(bytes), { stream: true });
    const is_read = first + at >= 0 && first + at < result.pass.target.length;
    return h("span", { class: "written", data: is_read ? belongs("target", first + at) : {} }, said);
  });
  const { token: drawn, ended } = result.step;
  const is_whole = written.length === result.ids.length - result.prompt;
  const next = is_whole && !ended && h("span", { class: "coming" }, label(result.token(drawn)));
  fill(text, h("span", { class: "prompt" }, store.get("text")), spans, next);
  text.scrollTop = text.scrollHeight;
}
