/**
 * The views' side of the engine. A message to the worker is {id, method, asked}; its answer {id, result}, or
 * {id, error: string}. What is sent are plain objects; the methods are those of `Session` (session.js).
 */

import { Session } from "./session.js";

/** @typedef {(method: string, asked: object) => Promise<any>} Ask */

/**
 * An engine in a worker, so that the page never waits.
 * @param {Worker} worker that runs worker.js
 * @returns {Ask} answers come in the order of the questions
 */
export function connect(worker) {
  const waiting = new Map();
  let [last, broken] = [0, null];
  worker.onmessage = ({ data: { id, result, error } }) => {
    const { resolve, reject } = waiting.get(id);
    waiting.delete(id);
    if (error === undefined) resolve(result);
    else reject(new Error(error));
  };
  worker.onerror = ({ message }) => {
    broken = new Error(message || "the browser does not start its worker");
    for (const { reject } of waiting.values()) reject(broken);
    waiting.clear();
  };
  return (method, asked = {}) =>
    new Promise((resolve, reject) => {
      if (broken !== null) return reject(broken);
      waiting.set(++last, { resolve, reject });
      worker.postMessage({ id: last, method, asked });
    });
}

/** The engine without a worker, for a browser that lets a page from a file start none. @returns {Ask} */
export function connect_here() {
  const session = new Session();
  return async (method, asked = {}) => session[method](asked);
}
