/** What is typed is answered when the typing pauses, and only the answer to what stands there now is shown. */

const PAUSE = 250; // milliseconds without a key

/**
 * @template Answer
 * @param {object} of
 * @param {(signal: AbortSignal) => Promise<Answer>} of.answer asks for what is wanted now; `signal` gives it up
 * @param {() => void} of.begun something else is wanted: what is shown is old
 * @param {(answer: Answer) => void} of.came
 * @param {(error: Error) => void} of.failed it is asked again by itself where the error says when that may help
 * @returns {(pause?: number) => void} to be called when something else is wanted
 */
export function latest({ answer, begun, came, failed }) {
  let [timer, serial, asking] = [0, 0, new AbortController()];
  const ask = async (own) => {
    asking = new AbortController();
    try {
      const found = await answer(asking.signal);
      if (own === serial) came(found);
    } catch (error) {
      if (own !== serial) return;
      failed(error);
      if (error.retry_after) timer = setTimeout(ask, 1000 * error.retry_after, own);
    }
  };
  return (pause = PAUSE) => {
    clearTimeout(timer);
    asking.abort();
    serial += 1;
    begun();
    timer = setTimeout(ask, pause, serial);
  };
}
