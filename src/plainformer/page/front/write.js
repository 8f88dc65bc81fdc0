/** The box in which a language model goes on with a text, as it writes. */

import { fill, h } from "../views/elements.js";
import { area, copier, look_link, model_list, problem_line } from "./parts.js";

const [TOKENS, MOST] = [60, 1000];

/**
 * @param {import("./server.js").Server} server
 * @param {import("./parts.js").Model[]} models language models
 * @returns {HTMLElement}
 */
export function write_box(server, models) {
  const prompt = area("prompt", "Text to go on with");
  const { list, row } = model_list(models, "writer", () => look.update());
  const about = { for: "prompt", dir: "auto", tabindex: 0, "aria-label": "The whole text" };
  const output = h("output", { id: "written", ...about });
  const problem = problem_line();
  const look = look_link(() => models.find(({ id }) => id === list.value), () => prompt.value);
  const count = h("input", { id: "tokens", type: "number", min: 1, max: MOST, value: TOKENS, inputmode: "numeric" });
  const warmth = h("input", { id: "temperature", type: "number", min: 0, max: 5, step: 0.1, inputmode: "decimal" });
  warmth.placeholder = "its own";
  const [go, on, stop] = [
    h("button", { id: "write-go", class: "main" }, "Write"),
    h("button", { id: "write-on" }, "Go on"),
    h("button", { id: "write-stop" }, "Stop"),
  ];
  const state = { server, output, problem, text: "", asking: null };
  const show = () => {
    stop.disabled = state.asking === null;
    on.disabled = state.asking !== null || state.text === "";
  };
  const write = async (start) => {
    state.asking?.abort();
    const tokens = Math.min(Math.max(1, Math.trunc(count.valueAsNumber) || TOKENS), MOST);
    const settings = { model: list.value, max_tokens: tokens };
    if (!Number.isNaN(warmth.valueAsNumber)) settings.temperature = warmth.valueAsNumber;
    const done = written(state, start, settings);
    show();
    await done;
    show();
  };
  go.addEventListener("click", () => write(prompt.value));
  on.addEventListener("click", () => write(state.text));
  stop.addEventListener("click", () => state.asking?.abort());
  prompt.addEventListener("input", look.update);
  prompt.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) write(prompt.value);
  });
  show();
  look.update();
  return h(
    "section",
    { class: "panel box", id: "write", "aria-labelledby": "write-title" },
    h("h2", { id: "write-title" }, "Write"),
    prompt,
    h("div", { class: "foot" }, go, on, stop, row, [
      h("label", { for: "tokens" }, "Tokens"),
      count,
      h("label", { for: "temperature" }, "Temperature"),
      warmth,
    ]),
    problem.line,
    output,
    h("div", { class: "foot" }, copier(() => state.text)),
    look.link,
  );
}

/** Has a text gone on with: what is written appears as it comes, until the end, an error, or another wish. */
async function written(state, start, settings) {
  const { server, output, problem } = state;
  const asking = (state.asking = new AbortController());
  const added = h("span", { class: "added" });
  output.setAttribute("aria-busy", true); // it is read aloud when it is whole
  fill(output, start, added);
  problem.show(null);
  state.text = start;
  try {
    for await (const { choices } of server.events("/v1/completions", { prompt: start, ...settings }, asking.signal)) {
      if (state.asking !== asking) return;
      added.append(choices[0].text);
      state.text += choices[0].text;
      output.scrollTop = output.scrollHeight;
    }
  } catch (error) {
    if (state.asking === asking && error.name !== "AbortError") problem.show(error);
  } finally {
    if (state.asking === asking) {
      state.asking = null;
      output.setAttribute("aria-busy", false);
    }
  }
}
