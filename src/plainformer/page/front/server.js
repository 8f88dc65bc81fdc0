/** The server that this page is from, and what is asked of it. The key, where one is wanted, is in memory alone. */

const EVENT = "data: ";
const END = "[DONE]";

/** An answer that is an error: one line for the reader, and when to ask again, in seconds, where that may help. */
export class Refusal extends Error {
  constructor(said, status, retry_after) {
    super(said);
    Object.assign(this, { status, retry_after });
  }
}

export class Server {
  constructor() {
    this.key = "";
  }

  /**
   * @param {string} path
   * @param {object} [body] what is sent; without one the answer is only fetched
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>} the answer. Throws Refusal.
   */
  async ask(path, body, signal) {
    return (await this.reply(path, body, signal)).json();
  }

  /**
   * @param {string} path @param {object} body @param {AbortSignal} signal
   * @returns {AsyncGenerator<any>} the parts of an answer, as they come. Throws Refusal.
   */
  async *events(path, body, signal) {
    const reader = (await this.reply(path, { ...body, stream: true }, signal)).body.getReader();
    const decoder = new TextDecoder();
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) throw new Refusal("the answer ended in the middle", 0);
      text += decoder.decode(value, { stream: true });
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) {
        const said = event.slice(EVENT.length);
        if (said === END) return;
        const part = JSON.parse(said);
        if (part.error) throw new Refusal(said_of(part), 0);
        yield part;
      }
    }
  }

  async reply(path, body, signal) {
    const headers = { ...(body && { "Content-Type": "application/json" }) };
    if (this.key) headers.Authorization = `Bearer ${this.key}`;
    const how = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body), signal };
    let reply;
    try {
      reply = await fetch(path, { ...how, cache: "no-store", credentials: "omit", referrerPolicy: "no-referrer" });
    } catch (error) {
      if (error.name === "AbortError") throw error;
      throw new Refusal("the server does not answer; is it running?", 0, 3);
    }
    if (reply.ok) return reply;
    const said = said_of(await reply.json().catch(() => ({})));
    throw new Refusal(said, reply.status, Number(reply.headers.get("Retry-After")) || undefined);
  }
}

/** What went wrong, in either of the forms that errors have. */
function said_of({ error }) {
  return (typeof error === "string" ? error : error?.message) ?? "the server cannot answer this";
}
