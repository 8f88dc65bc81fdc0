/** The engine in a Web Worker: it answers the messages that client.js sends by the methods of a session. */

import { Session } from "./session.js";

const session = new Session();

self.onmessage = ({ data: { id, method, asked } }) => {
  try {
    const result = session[method](asked);
    self.postMessage({ id, result }, method === "arrays" ? Object.values(result).map(({ data }) => data.buffer) : []);
  } catch (error) {
    self.postMessage({ id, error: error.message });
  }
};
