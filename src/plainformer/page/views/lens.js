/** The logit lens: what the model would say if it ended after each layer (nostalgebraist 2020). */

import { CELL, Grid, cell } from "./cells.js";
import { s } from "./elements.js";
import { belongs } from "./hover.js";
import { panel } from "./panel.js";
import { label, percent, spoken } from "./parts.js";
import { Places } from "./places.js";

const SIDE = 96; // pixels of the layers' names

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function lens({ store, description }) {
  if (!description.methods.includes("lens")) return null;
  const grid = new Grid((place, step) => places.beyond(place, step));
  const draw = () => {
    const result = store.get("result");
    if (result === null) return;
    const shown = places.of(result.pass.target.map((_, at) => at));
    grid.show(picture(store, result, shown), `${store.get("place")} 0`);
  };
  const places = new Places(store, { frame: grid.frame, width: CELL.width, side: SIDE, draw });
  store.on(["result", "place", "token"], draw);
  const own = panel(
    {
      name: "lens",
      title: "Logit lens",
      help:
        "Each row reads the stream after one layer as if it were the last: its best token, shaded by probability. " +
        "The last row is the model's output. Framed is the token that was taken; choose a token to explain it.",
      picture: () => grid.picture,
    },
    places.element,
    grid.frame,
  );
  own.classList.add("wide");
  return own;
}

function picture(store, result, shown) {
  const [width, height] = [SIDE + shown.length * CELL.width, (result.lens.length + 1) * CELL.height + 4];
  const names = result.lens.map(({ name }) => layer_name(name));
  return s(
    "svg",
    { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": "Best token after each layer" },
    names.map((name, row) => s("text", { x: 0, y: (row + 1) * CELL.height + 20, class: "side" }, name)),
    shown.map((place, at) => column(store, result, names, place, SIDE + at * CELL.width)),
  );
}

/** "decoder/0/output" to "decoder 0". */
function layer_name(name) {
  return name.includes("embedding") ? "embeddings" : spoken(name.replace(/\/output$/, ""));
}

function column(store, result, names, place, x) {
  const token = label(result.pass.target[place]);
  const box = (y) => [x, y, CELL.width, CELL.height];
  const head = cell({
    at: [place, 0],
    box: box(0),
    text: token,
    note: String(place),
    said: `Place ${place}: ${token}. Explain this place`,
    kind: place === store.get("place") ? "head here" : "head",
    press: () => store.set({ place }),
  });
  const cells = result.lens.map(({ predictions }, row) => {
    const [best] = predictions[place];
    const told = ({ id, probability }) => `${label(result.token(id))} ${percent(probability)}`;
    const ranked = predictions[place].map(told);
    return cell({
      at: [place, row + 1],
      box: box((row + 1) * CELL.height + 4),
      text: label(result.token(best.id)),
      note: percent(best.probability),
      shade: best.probability,
      said: `${names[row]}, ${token}: ${ranked.join(", ")}`,
      kind: best.id === result.chosen[place]?.id ? "chosen" : "",
      press: () => store.set({ place, token: best.id }),
    });
  });
  return s("g", { class: "column", data: belongs("target", place) }, head, cells);
}
