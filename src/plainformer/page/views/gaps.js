/** The gaps of a text, and what a masked language model would put into each. */

import { CELL, Grid } from "./cells.js";
import { columns_picture } from "./columns.js";
import { fill, h } from "./elements.js";
import { belongs } from "./hover.js";
import { panel } from "./panel.js";
import { label, percent } from "./parts.js";
import { Places } from "./places.js";

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function gaps(page) {
  const { store, description } = page;
  if (description.mask === null || !description.kind.endsWith("masked-language-model")) return null;
  const text = h("p", { class: "gapped", dir: "auto" });
  const none = h("p", { class: "none" }, `There is no gap: write ${description.mask} where a word is to be guessed.`);
  const grid = new Grid((place, step) => places.beyond(place, step));
  const draw = () => {
    const result = store.get("result");
    if (result === null) return;
    const all = result.pass.gaps;
    fill(text, gapped_text(page, result));
    none.hidden = all.length > 0;
    grid.frame.hidden = text.hidden = all.length === 0;
    const shown = places.of(all);
    if (all.length === 0) return fill(grid.frame);
    const columns = shown.map((place) => column(page, result, place));
    grid.show(columns_picture("Guesses for each gap", columns, store.get("place")), `${shown[0]} 0`);
  };
  const places = new Places(store, { frame: grid.frame, width: CELL.width, noun: "gaps", base: 1, draw });
  store.on(["result", "place"], draw);
  return panel(
    {
      name: "gaps",
      title: "Gaps",
      help: `The best guesses for each gap, and how probable they are; each gap is filled by itself. ${
        description.recorded ? "" : "Choose one to put it into the text."
      }`,
      picture: () => grid.picture,
    },
    text,
    none,
    places.element,
    grid.frame,
  );
}

/** The text, with the best guess in each of its gaps. */
function gapped_text({ description: { mask } }, result) {
  return result.text.split(mask).flatMap((part, at) => {
    const place = result.pass.gaps[at - 1];
    if (at === 0) return [part];
    if (place === undefined) return [mask, part]; // in the part of the text that was cut
    const [best] = result.pass.predictions[place];
    const shade = { "--share": best.probability.toFixed(3) };
    const guess = label(result.token(best.id)).replace(/^␣/, "");
    return [h("mark", { style: shade, data: belongs("target", place) }, guess), part];
  });
}

/** @returns {import("./columns.js").Column} */
function column(page, result, place) {
  const { pass, token } = result;
  const gap = pass.gaps.indexOf(place);
  return {
    place,
    data: belongs("target", place),
    head: {
      text: `gap ${gap + 1}`,
      note: String(place),
      said: `Gap ${gap + 1}, place ${place}. Explain this place`,
      press: () => page.store.set({ place }),
    },
    entries: pass.predictions[place].map(({ id, probability }) => {
      const [text, note] = [label(token(id)), percent(probability)];
      const own = { text, note, shade: probability };
      if (page.description.recorded) return { ...own, said: `${text}, ${note}` };
      const said = `${text}, ${note}: put it into gap ${gap + 1}`;
      return { ...own, said, press: () => put(page, result, gap, token(id)) };
    }),
  };
}

/** Puts a token into a gap. A space before a gap is the token's own, where tokens begin with the space before them. */
function put({ store, description: { mask } }, { text: whole, pass, token }, gap, { token: piece, text }) {
  const parts = whole.split(mask);
  const known = [...pass.target, ...pass.predictions.flat().map(({ id }) => token(id))];
  const words_have_spaces = known.some((one) => /^ .*\S/su.test(one.text));
  const before = parts.slice(0, gap + 1).join(mask);
  const said = text === "" || text.includes("\ufffd") ? piece : text;
  const start = words_have_spaces ? before.replace(/ $/, "") : before;
  const put_in = start === "" ? said.replace(/^ /, "") : said;
  return store.set({ text: [start + put_in + parts[gap + 1], ...parts.slice(gap + 2)].join(mask) });
}
