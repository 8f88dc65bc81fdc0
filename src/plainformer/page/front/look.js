/** The page of `look` of one of the server's models. The same script is the worker's, which runs the model. */

import { connect } from "../engine/client.js";
import { answer } from "../engine/worker.js";
import { fill, h } from "../views/elements.js";
import { show } from "../views/page.js";
import { with_key } from "./key.js";
import { connect_remote } from "./remote.js";
import { Server } from "./server.js";

if (typeof document === "undefined") answer(self);
else begin(document.getElementById("page"), document.currentScript.textContent);

/** @param {HTMLElement} root @param {string} script this one */
async function begin(root, script) {
  const server = new Server();
  try {
    await with_key(root, server);
    const model = decodeURIComponent(location.pathname.split("/").at(-1));
    fill(root, h("p", { role: "status" }, `${model} is on its way.`));
    const path = `/v1/look/${encodeURIComponent(model)}`;
    const bundle = await server.ask(path);
    const { mask } = bundle; // of a model that stays on the server, which says it at once
    const ask = bundle.why ? connect_remote(server, path, start({ mask })) : engine(script);
    const description = await ask("load", { bundle });
    window.plainformer = await show(root, ask, description, { title: model, text: start(description), written: [] });
    root.prepend(h("p", { class: "back" }, h("a", { href: "/" }, "← All models")));
    root.dataset.ready = "";
  } catch (error) {
    fill(root, h("p", { id: "problem", role: "alert" }, `This page cannot be shown: ${error.message}`));
  }
}

/** The engine in a worker. */
function engine(script) {
  return connect(new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" }))));
}

/** What is read first: what the address says behind its #, or an example. */
function start({ mask }) {
  const given = new URLSearchParams(location.hash.slice(1)).get("text");
  return given ?? (mask ? `the ${mask} is in the park` : "the man is in the park");
}
