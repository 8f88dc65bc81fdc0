/** The three views of attention side by side, as long as there is room for them. */

import { attention_grid } from "./attention_grid.js";
import { attention_lines } from "./attention_lines.js";
import { attention_map } from "./attention_map.js";
import { h } from "./elements.js";

/** @param {import("./page.js").Page} page */
export function attention(page) {
  const views = [attention_grid, attention_map, attention_lines];
  return h(
    "div",
    { class: "attention" },
    views.map((view) => view(page)),
  );
}
