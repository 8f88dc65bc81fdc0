/** What else could have stood at every place, and what would have followed from it. */

import { CELL, Grid } from "./cells.js";
import { columns_picture } from "./columns.js";
import { h } from "./elements.js";
import { belongs } from "./hover.js";
import { panel } from "./panel.js";
import { is_translator, label, percent } from "./parts.js";
import { Places } from "./places.js";
import { is_end } from "./settings.js";

const SHOWN = 8; // alternatives of a place

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function alternatives(page) {
  const { store, description } = page;
  if (description.kind.endsWith("classifier")) return null;
  const is_written = !description.kind.endsWith("masked-language-model"); // token after token
  const can_change = is_written && !description.recorded;
  const grid = new Grid((place, step) => places.beyond(place, step));
  const draw = () => {
    const result = store.get("result");
    if (result === null) return;
    const shown = places.of(result.pass.target.map((_, at) => at));
    const columns = shown.map((at) => column(page, result, at, { is_written, can_change }));
    const here = store.get("place");
    grid.show(columns_picture("Alternatives at every place", columns, here), `${here} 0`);
    held.textContent = can_change ? said_of_held(result, store.get("written")) : "";
    free.disabled = store.get("written").length === 0;
  };
  const places = new Places(store, { frame: grid.frame, width: CELL.width, draw });
  const held = h("span", { role: "status" });
  const free = h("button", { class: "free", on: { click: () => store.set({ written: [] }) } }, "Free");
  store.on(["result", "place"], draw);
  const own = panel(
    {
      name: "alternatives",
      title: "Alternatives",
      help: help_of(is_written, can_change, is_translator(description)),
      picture: () => grid.picture,
    },
    can_change ? h("div", { class: "held" }, free, held) : [],
    places.element,
    grid.frame,
  );
  own.classList.add("wide");
  return own;
}

function help_of(is_written, can_change, is_translation) {
  const place = "The top of a column chooses the place that all views explain.";
  if (!is_written) return `Under each token, what the model thinks stands there; framed is its best guess. ${place}`;
  const shown = "Under each token, what could come next and how probable it is; framed is what was taken.";
  if (!can_change) return `${shown} ${place}`;
  const rest = is_translation ? "the rest is translated" : "what follows is written";
  return `${shown} Choose another: ${rest} anew. ${place}`;
}

function said_of_held({ step, pass }, written) {
  if (written.length === 0) return "Nothing is held: every token is the model's choice.";
  const count = `${written.length} ${written.length === 1 ? "token is" : "tokens are"}`;
  if (step) return `${count} written behind the prompt; “Free” takes them away.`;
  const is_all = written.length >= pass.target.length;
  return `The first ${count} held${is_all ? "" : ", the rest follows from them"}; “Free” lets the search choose again.`;
}

/** @returns {import("./columns.js").Column} */
function column(page, result, place, { is_written, can_change }) {
  const { store } = page;
  const { pass, chosen } = result;
  const token = pass.target[place];
  const ranked = with_chosen(pass.predictions[place], chosen[place]);
  const can_be_taken = can_change && place >= first_free(result);
  const [where, next] = [is_written ? "after" : "at", pass.target[place + 1] && belongs("target", place + 1)];
  return {
    place,
    data: belongs("target", place),
    head: {
      text: label(token),
      note: String(place),
      said: `Place ${place}: ${label(token)}. Explain this place`,
      press: () => store.set({ place }),
    },
    entries: ranked.map(({ id, probability }) => {
      const is_chosen = id === chosen[place].id;
      const is_possible = can_be_taken && !(result.step && is_end(page, id)); // behind its end, no text is written
      const [text, share] = [label(result.token(id)), percent(probability)];
      const marks = [is_chosen && "chosen", is_chosen && is_held(result, store, place) && "forced"].filter(Boolean);
      return {
        ...{ text, note: share, shade: probability, kind: marks.join(" ") },
        said: `${text}, ${share}, ${where} ${label(token)}${is_chosen ? `, ${is_written ? "taken" : "best"}` : ""}`,
        data: is_chosen && is_written && next ? next : {},
        press: is_possible && !is_chosen ? () => take(page, place, id) : null,
      };
    }),
  };
}

/** The best of a place, and the chosen one if it is none of these. */
function with_chosen(predictions, chosen) {
  const best = predictions.slice(0, SHOWN);
  if (best.some(({ id }) => id === chosen.id)) return best;
  return [...best.slice(0, SHOWN - 1), chosen];
}

/** The first place behind which the token was not given: in a translation 0, in a text the prompt's last. */
function first_free({ step, prompt, pass }) {
  return step ? prompt - 1 - pass.cut : 0;
}

function is_held({ step }, store, place) {
  return !step && place < store.get("written").length;
}

/** Puts a token behind a place, and lets the model go on from it. */
async function take({ store, ask }, place, id) {
  const result = store.get("result");
  const { step, ids, prompt, pass } = result;
  if (!step) return store.set({ written: [...pass.target.slice(1, place + 1).map((one) => one.id), id], place });
  const kept = [...ids.slice(0, pass.cut + place + 1), id];
  const more = ids.length - kept.length;
  const [settings, off] = [{ ...store.get("settings"), max_tokens: more }, store.get("off")];
  const all = more > 0 ? (await ask("generate", { ids: kept, settings, off })).ids : kept;
  if (store.get("result") === result) await store.set({ written: all.slice(prompt), place });
}
