/** The server's first page: a box for each thing that its models do. */

import { fill, h } from "../views/elements.js";
import { Store } from "../views/store.js";
import { system_theme, theme_switch } from "../views/theme.js";
import { with_key } from "./key.js";
import { problem_line } from "./parts.js";
import { classify_box, fill_box } from "./read.js";
import { Server } from "./server.js";
import { translate_box } from "./translate.js";
import { write_box } from "./write.js";

begin(document.getElementById("page"));

/** @param {HTMLElement} root */
async function begin(root) {
  const server = new Server();
  const content = h("div", { class: "boxes" });
  const store = new Store({ theme: system_theme() });
  fill(root, h("header", { class: "top" }, h("h1", {}, "plainformer"), theme_switch(store)), content);
  try {
    await with_key(content, server);
    fill(content, await boxes(server));
    root.dataset.ready = "";
  } catch (error) {
    const problem = problem_line();
    fill(content, problem.line);
    problem.show(error);
  }
}

/** @returns {Promise<HTMLElement[]>} for each task that there is a model for */
async function boxes(server) {
  const paths = ["/v1/models", "/languages", "/frontend/settings"];
  const [{ data }, languages, { charLimit }] = await Promise.all(paths.map((path) => server.ask(path)));
  const of = (task) => data.filter((model) => model.task === task);
  const kinds = [
    [of("translate"), (models) => translate_box(server, models, languages, charLimit)],
    [of("generate"), (models) => write_box(server, models)],
    [of("fill"), (models) => fill_box(server, models)],
    [of("classify"), (models) => classify_box(server, models)],
  ];
  return kinds.filter(([models]) => models.length > 0).map(([models, box]) => box(models));
}
