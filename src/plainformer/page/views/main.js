/** Where the page begins. The same script is the worker's, which runs the model beside the page. */

import { connect, connect_here } from "../engine/client.js";
import { answer } from "../engine/worker.js";
import { fill, h } from "./elements.js";
import { show } from "./page.js";
import { connect_recorded } from "./recorded.js";

if (typeof document === "undefined") answer(self);
else begin(document.currentScript.textContent);

/** @param {string} script this one */
async function begin(script) {
  const root = document.getElementById("page");
  const carried = (id) => document.getElementById(id).textContent;
  try {
    const start = JSON.parse(carried("start"));
    const is_recorded = document.getElementById("recording") !== null;
    const ask = is_recorded ? connect_recorded(JSON.parse(carried("recording"))) : engine(script);
    const description = await ask("load", is_recorded ? {} : { bundle: carried("bundle") });
    document.getElementById(is_recorded ? "recording" : "bundle").remove();
    window.plainformer = await show(root, ask, description, start);
    root.dataset.ready = "";
  } catch (error) {
    fill(root, h("p", { id: "problem", role: "alert" }, `This page cannot be shown: ${error.message}`));
    throw error;
  }
}

/** @returns {import("../engine/client.js").Ask} in a worker, or here where a browser lets a file start none */
function engine(script) {
  try {
    return connect(new Worker(URL.createObjectURL(new Blob([script], { type: "text/javascript" }))));
  } catch {
    return connect_here();
  }
}
