/** Where a text is typed, and what is said about it: what was found, what went wrong, what was cut. */

import { h } from "./elements.js";
import { is_translator } from "./parts.js";

const PAUSE = 250; // milliseconds without a key, after which a text is read

const SHOWN = 40; // characters of a text that is named

const ASKS = {
  "plainformer-transformer": "Text to translate",
  "plainformer-language-model": "Text to go on with",
  "plainformer-masked-language-model": "Text with a gap",
  "plainformer-classifier": "Text to classify",
};

const REMOTE = "The model runs on the server, and no part can be switched off";

/** Where a text is cut, by what is read of it. */
const CUT = { head: "at its end", tail: "at its beginning", both: "in its middle" };

/** @returns {HTMLElement} */
export function entry({ store, description }) {
  const { kind, mask, recorded, remote, why } = description;
  const can_type = !recorded || remote;
  const has_gaps = mask && can_type;
  const area = h("textarea", { id: "text", rows: 2, dir: "auto", spellcheck: "false", autocomplete: "off" });
  area.value = store.get("text");
  area.readOnly = !can_type;
  let waiting = 0;
  const read = () => {
    clearTimeout(waiting);
    if (area.value !== store.get("text")) store.set({ text: area.value, written: [], token: null });
  };
  area.addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(read, PAUSE);
  });
  area.addEventListener("change", read);
  const gap = () => {
    area.setRangeText(mask, area.selectionStart, area.selectionEnd, "end");
    area.focus();
    read();
  };
  const output = h("output", { id: "output", for: "text", dir: "auto" });
  const note = h("p", { id: "note", role: "status" });
  const problem = h("p", { id: "problem", role: "alert" });
  store.on(["text"], () => area.value === store.get("text") || (area.value = store.get("text")));
  store.on(["result", "problem", "busy"], () => {
    const [result, said, is_busy] = ["result", "problem", "busy"].map((name) => store.get(name));
    problem.textContent = is_busy ? "" : (said ?? "");
    if (result === null) return;
    const is_old = is_busy || said;
    output.textContent = is_old ? "" : result.output;
    const old = `${is_busy ? "Being computed. " : ""}What is shown below is still of “${result.text.slice(0, SHOWN)}”.`;
    note.textContent = is_old ? old : notes(result, description).join(" ");
  });
  return h(
    "div",
    { class: "entry" },
    h("label", { for: "text" }, ASKS[kind]),
    h("div", { class: "row" }, area, has_gaps && h("button", { class: "gap", on: { click: gap } }, `Gap ${mask}`)),
    (is_translator(description) || kind.endsWith("classifier")) && h("p", { class: "said" }, "→ ", output),
    recorded && h("p", { id: "recorded" }, `${remote ? REMOTE : "This text cannot be changed here"}: ${why}`),
    note,
    problem,
  );
}

/** What is not as one would expect. @returns {string[]} one sentence each */
function notes({ pass, search, step }, { kind, generation, recorded }) {
  const said = [];
  const unknown = pass.unknown.map((one) => JSON.stringify(one)).join(", ");
  if (unknown) said.push(`The vocabulary does not have ${unknown}: read as unknown.`);
  const way = kind === "plainformer-language-model" ? "tail" : (generation.truncate ?? "head");
  if (pass.cut && (recorded || !step)) // what a text that is written has outgrown is told where it is written
    said.push(`This is more than the model reads at once: ${pass.cut} tokens ${CUT[way]} were left out.`);
  const [best] = search?.hypotheses ?? [];
  if (best && !best.finished) said.push("The length limit cut the translation.");
  return said;
}
