/** The labels of a classifier, and what each word of the text adds to one of them: what changes without the word. */

import { bars_picture, signed } from "./bars.js";
import { Grid } from "./cells.js";
import { fill, h } from "./elements.js";
import { panel } from "./panel.js";
import { percent } from "./parts.js";

const WIDEST = 720; // pixels
const AT_ONCE = 4; // words that are left out at a time, so that other questions are answered between
const STRONGEST = 10; // words that are drawn as bars
const DARKEST = 0.35; // opacity of the strongest word's shade
const HARDLY = 0.001; // changes of probability below this are told as changes of log-odds

/** @param {import("./page.js").Page} page @returns {HTMLElement | null} */
export function labels(page) {
  const { store, ask, description } = page;
  if (!description.kind.endsWith("classifier")) return null;
  const grid = new Grid();
  const text = h("p", { class: "shaded", dir: "auto" });
  const said = h("p", { class: "read", role: "status" });
  let [drawn, left_out] = [0, []];
  const width = () => Math.max(260, Math.min(grid.frame.clientWidth, WIDEST));
  const draw = () => {
    const result = store.get("result");
    if (result === null) return;
    drawn = width();
    const chosen = chosen_label(store, result);
    const effects = effects_of(result.pass.labels, left_out, chosen);
    const title = `What words add to “${result.pass.labels[chosen].label}”${effects.unit}`;
    const groups = [{ bars: label_bars(store, result, chosen), most: 1 }, { title, bars: word_bars(effects) }];
    grid.show(bars_picture("Labels, and the words with the strongest effect", groups, drawn));
    fill(text, shaded(effects));
  };
  new ResizeObserver(() => width() === drawn || draw()).observe(grid.frame);
  const draw_anew = (changed) => {
    if (changed.includes("result")) left_out = [...store.get("result").left_out];
    draw();
    if (changed.includes("result")) read_on(store.get("result"), store.get("text"), store.get("off"));
  };
  const read_on = async (result, text, off) => {
    const count = text.match(/\P{White_Space}+/gu)?.length ?? 0;
    while (left_out.length < count) {
      said.textContent = `${left_out.length} of ${count} words have been left out so far.`;
      const asked = { text, off, from: left_out.length, count: AT_ONCE };
      const more = await ask("without_each_word", asked).catch(() => []);
      if (store.get("result") !== result || store.get("text") !== text) return;
      if (more.length === 0) break;
      left_out.push(...more);
      draw();
    }
    said.textContent = "";
  };
  store.on(["result", "token"], draw_anew);
  return panel(
    {
      name: "labels",
      title: "Labels",
      help:
        "How probable the model finds each label; choose one. A word is left out at a time: by how much the label's " +
        "probability (if that hardly moves, its log-odds) falls without it, it adds. Blue is for, red against.",
      picture: () => grid.picture,
    },
    grid.frame,
    text,
    said,
  );
}

/** The number of the label that is explained: the most probable, unless another was chosen. */
function chosen_label(store, { pass }) {
  const best = pass.labels.reduce((found, { probability }, at, all) => {
    return probability > all[found].probability ? at : found;
  }, 0);
  return store.get("token") ?? best;
}

function label_bars(store, { pass }, chosen) {
  return pass.labels.map(({ label, probability, logit }, id) => ({
    ...{ text: label, value: probability, note: percent(probability), selected: id === chosen },
    said: `${label}, ${percent(probability)}, logit ${signed(logit)}`,
    press: () => store.set({ token: id }),
  }));
}

/**
 * By how much a label grows with each word: its probability or, where that hardly changes and its logits are known, its
 * log-odds; null of the only word of a text.
 */
function effects_of(whole, left_out, chosen) {
  const by = (measure) =>
    left_out.map(({ word, labels: without }) => {
      return { word, effect: without.length ? measure(whole) - measure(without) : null };
    });
  const effects = by((all) => all[chosen].probability);
  const has_logits = left_out.every(({ labels: without }) => without.every(({ logit }) => logit !== undefined));
  if (!has_logits || effects.some(({ effect }) => Math.abs(effect) >= HARDLY))
    return { effects, told: points, unit: "" };
  return { effects: by((all) => log_odds(all, chosen)), told: signed, unit: ", in log-odds" };
}

/** log(p / (1 - p)) of a label, by the logits. */
function log_odds(all, chosen) {
  const others = all.filter((_, at) => at !== chosen).map(({ logit }) => logit);
  const most = Math.max(...others);
  const rest = others.reduce((sum, logit) => sum + Math.exp(logit - most), 0);
  return all[chosen].logit - most - Math.log(rest);
}

function shaded({ effects, told }) {
  const most = Math.max(1e-9, ...effects.map(({ effect }) => Math.abs(effect ?? 0)));
  return effects.flatMap(({ word, effect }) => {
    const share = (Math.abs(effect ?? 0) / most) * DARKEST * 100;
    const said = effect === null ? "the only word" : told(effect);
    const kind = effect < 0 ? "word against" : "word for";
    return [h("span", { class: kind, title: said, style: { "--share": `${share.toFixed(1)}%` } }, word), " "];
  });
}

function word_bars({ effects, told }) {
  const known = effects.filter(({ effect }) => effect !== null);
  const strongest = known.sort((one, other) => Math.abs(other.effect) - Math.abs(one.effect)).slice(0, STRONGEST);
  return strongest.map(({ word, effect }) => {
    return { text: word, value: effect, note: told(effect), said: `${word}: ${told(effect)}` };
  });
}

/** A difference of probabilities, in percentage points. */
function points(effect) {
  return `${signed(effect * 100, Math.abs(effect) < 0.001 ? 3 : 1)} pt`;
}
