/** The page: the text, its tokens, and the views of what the model makes of it. */

import { alternatives } from "./alternatives.js";
import { attention } from "./attention.js";
import { attribution } from "./attribution.js";
import { beam_tree } from "./beam_tree.js";
import { entry } from "./entry.js";
import { fill, h } from "./elements.js";
import { gaps } from "./gaps.js";
import { guide } from "./guide.js";
import { head_steps } from "./head_steps.js";
import { follow_hover } from "./hover.js";
import { labels } from "./labels.js";
import { lens } from "./lens.js";
import { next_token } from "./next_token.js";
import { attentions, is_translator } from "./parts.js";
import { Results } from "./results.js";
import { Store } from "./store.js";
import { switches } from "./switches.js";
import { system_theme, theme_switch } from "./theme.js";
import { tokens } from "./tokens.js";

/**
 * What every view is given. A view is a function of it that returns its element, or null where the model has nothing of
 * the kind to show; it listens to the store, and draws when it is told.
 * @typedef {object} Page
 * @property {Store} store
 * @property {import("../engine/client.js").Ask} ask
 * @property {import("../engine/session.js").Description} description
 */

/** @type {((page: Page) => HTMLElement | null)[]} in the order in which they stand */
const VIEWS = [
  ...[tokens, gaps, labels, beam_tree, next_token, attention],
  ...[head_steps, alternatives, lens, attribution, switches],
];

const PATIENCE = 300; // milliseconds, after which it is said that the views are not of what is wanted yet

/**
 * Shows a model that was loaded.
 * @param {HTMLElement} root
 * @param {import("../engine/client.js").Ask} ask
 * @param {import("../engine/session.js").Description} description
 * @param {{text: string, title: string, written: number[]}} start
 * @returns {Promise<Page>} when everything is drawn
 */
export async function show(root, ask, description, start) {
  const own = attentions(description);
  const store = new Store({
    ...{ text: start.text, settings: {}, off: [], written: start.written, result: null, problem: null },
    busy: false,
    ...{ place: 0, query: 0, token: null, hover: null, theme: system_theme() },
    attention: { name: own.at(is_translator(description) ? -1 : 0), head: 0 },
  });
  const page = { store, ask, description };
  const views = VIEWS.map((view) => view(page)).filter((element) => element !== null);
  const title = h("h1", {}, start.title);
  const top = h("header", { class: "top" }, title, guide(page), theme_switch(store));
  fill(root, top, entry(page), h("div", { class: "views" }, views));
  follow_hover(root, store);
  const results = new Results(ask, description);
  const read = () => read_anew(store, results);
  store.on(["text", "settings", "off", "written"], read);
  await read();
  return page;
}

async function read_anew(store, results) {
  const wanted = Object.fromEntries(["text", "settings", "off", "written"].map((name) => [name, store.get(name)]));
  const late = setTimeout(() => store.set({ busy: true }), PATIENCE);
  try {
    const result = await results.of(wanted).finally(() => clearTimeout(late)); // not while views draw
    if (result === null) return; // what is wanted instead is being read
    const last = Math.max(0, result.pass.target.length - 1);
    const is_first = result.step && !store.get("result"); // of a language model, whose last place is of interest
    const place = is_first ? last : Math.min(store.get("place"), last);
    const query = is_first ? last : Math.min(store.get("query"), last);
    await store.set({ result, problem: null, busy: false, place, query, token: null });
  } catch (error) {
    await store.set({ problem: error.message, busy: false });
  }
}
