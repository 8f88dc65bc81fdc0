/** Where a key is asked for, which the page keeps while it is open. */

import { fill, h } from "../views/elements.js";
import { problem_line } from "./parts.js";

/**
 * @param {HTMLElement} root which has the form until a key was right
 * @param {import("./server.js").Server} server
 * @returns {Promise<void>} when the server has taken it, or wants none
 */
export async function with_key(root, server) {
  const { keyRequired } = await server.ask("/frontend/settings");
  if (!keyRequired) return;
  const input = h("input", { id: "key", type: "password", autocomplete: "off", required: true });
  const problem = problem_line();
  await new Promise((go) => {
    const give = async (event) => {
      event.preventDefault();
      server.key = input.value;
      try {
        await server.ask("/v1/models");
        go();
      } catch (error) {
        server.key = "";
        problem.show(error.status === 401 ? new Error("This is not the key of the server.") : error);
      }
    };
    const form = h(
      "form",
      { class: "panel key", on: { submit: give } },
      h("label", { for: "key" }, "The key of this server"),
      h("p", { class: "quiet" }, "It is kept while this page is open, and nowhere else."),
      h("div", { class: "foot" }, input, h("button", { class: "main" }, "Go on")),
      problem.line,
    );
    fill(root, form);
    input.focus();
  });
}
