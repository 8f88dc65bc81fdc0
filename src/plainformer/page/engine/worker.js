/** The engine in a Web Worker: it answers the messages that client.js sends by the methods of a session. */

import { Session } from "./session.js";

/** @param {DedicatedWorkerGlobalScope} scope the worker's own */
export function answer(scope) {
  const session = new Session();
  scope.onmessage = ({ data: { id, method, asked } }) => {
    try {
      const result = session[method](asked);
      const arrays = method === "arrays" ? Object.values(result) : [];
      scope.postMessage({ id, result }, arrays.map(({ data }) => data.buffer));
    } catch (error) {
      scope.postMessage({ id, error: error.message });
    }
  };
}
