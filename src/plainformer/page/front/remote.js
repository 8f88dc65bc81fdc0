/**
 * Stands in an engine's place where a model does not travel: the server computes each text that is read, and what it
 * recorded (`page/recorded.py`) answers as a page of arrays does.
 */

import { Recording } from "../views/recorded.js";

/**
 * Questions with a text are about that text; a pass is of the text of its `forward`, and what is asked of it afterwards
 * is answered of that one, while another text may be on its way.
 * @param {import("./server.js").Server} server
 * @param {string} path where recordings are asked for
 * @param {string} first text that is read
 * @returns {import("../engine/client.js").Ask}
 */
export function connect_remote(server, path, first) {
  let [read, passed] = [null, null];
  const recording = async (text) => {
    if (text === undefined || read?.text === text) return read.recording;
    const { data, ...told } = await server.ask(path, { text });
    const found = new Recording(told, async (name) => data[name]);
    read = { text, recording: found };
    return found;
  };
  const of_text = ["load", "search", "step", "without_each_word", "tokens"];
  return async (method, asked = {}) => {
    if (method === "load") return { ...(await recording(first)).load(), remote: true };
    if (method === "forward") {
      const found = await recording(asked.text);
      passed = found;
      return found.forward(asked);
    }
    const found = of_text.includes(method) ? await recording(asked.text) : passed;
    return found[method](asked);
  };
}
