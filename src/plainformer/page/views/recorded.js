/**
 * Stands in an engine's place where the model itself does not travel: it answers what was recorded of one text
 * (`page/recorded.py`), in the words of a session (engine/session.js). Arrays are unpacked when they are asked for.
 */

import { drawn_token, next_tokens } from "../engine/decode/generate.js";
import { scaled_scores } from "../engine/equations/attention.js";
import { Tensor } from "../engine/tensor.js";
import { from_base64, from_float16 } from "../engine/weights.js";

const OPEN = 8; // blocks that are kept unpacked, the last ones asked for
const WAIT = 10; // milliseconds, for what is still on its way

/** What an array of each type is read as, and how many bytes a number has. */
const TYPES = {
  float16: { width: 2, read: (buffer) => from_float16(new Uint16Array(buffer)) },
  float32: { width: 4, read: (buffer) => new Float32Array(buffer) },
  int32: { width: 4, read: (buffer) => new Int32Array(buffer) },
};

/**
 * @param {object} told by the page: what JSON can say
 * @returns {import("../engine/client.js").Ask}
 */
export function connect_recorded(told) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("it needs a browser of 2023 or later: Chrome 103, Firefox 113, Safari 16.4");
  const recording = new Recording(told);
  return async (method, asked = {}) => {
    if (asked.off?.length) throw new Error("the model does not travel with this page: no part can be switched off");
    if (method !== "load" && !told.description.methods.includes(method))
      throw new Error(`the model does not travel with this page: it has no ${method}`);
    return recording[method](asked);
  };
}

export class Recording {
  /**
   * @param {object} told what JSON can say
   * @param {(name: string) => Promise<string>} packed the text of a block
   */
  constructor(told, packed = in_page) {
    Object.assign(this, { told, packed });
    this.open = new Map();
    this.views = {};
    for (const [side, views] of Object.entries(told.tokens))
      this.views[side] = new Map(views.map((view) => [view.id, view]));
  }

  load() {
    return this.told.description;
  }

  tokens({ ids, side = "source" }) {
    if (ids === undefined) throw new Error("the model does not travel with this page: no other text can be cut");
    return { tokens: ids.map((id) => this.view(id, side)), unknown: [] };
  }

  view(id, side) {
    return this.views[side].get(id) ?? { id, token: `<${id}>`, text: "", bytes: [], special: false };
  }

  async forward({ best = Infinity } = {}) {
    const { pass } = this.told;
    const told = await this.block("told");
    const predictions = ranked(told.get("predictions/ids"), told.get("predictions/logprobs"), best);
    const own = this.told.description.kind === "plainformer-transformer" ? "source" : "target";
    const source = pass.source.map((id) => this.view(id, own));
    return { ...pass, source, target: pass.target.map((id) => this.view(id, "target")), predictions };
  }

  /** The scores follow from what was recorded, and are computed for the head. */
  async arrays({ names = Object.keys(this.told.pass.names), head }) {
    const found = {};
    for (const name of names) {
      const shape = this.told.pass.names[name];
      if (shape === undefined) throw new Error(`the last pass has no array called ${name}`);
      const wanted = head === undefined ? Array.from({ length: shape[0] }, (_, at) => at) : [head];
      const size = shape[1] * shape[2];
      const data = new Float32Array(wanted.length * size);
      for (const [at, one] of wanted.entries()) data.set(await this.of_head(name, one), at * size);
      found[name] = { shape: head === undefined ? shape : shape.slice(1), data };
    }
    return found;
  }

  /** @returns {Promise<Float32Array>} an array of one head */
  async of_head(name, head) {
    const [, attention, part] = name.match(/^(.*)\/(\w+)$/);
    const block = await this.block(`${attention}/${part === "heads" ? "output" : head}`);
    if (part === "heads") return slice_of(block.get("heads"), head);
    if (block.has(part)) return block.get(part).data;
    const one = (own) => new Tensor(block.get(own).data, [1, ...block.get(own).shape]);
    const scores = scaled_scores(one("query"), one("key")).data;
    const bias = block.get("bias")?.data;
    return bias ? scores.map((score, at) => score + bias[at]) : scores;
  }

  async maps({ name }) {
    const { shape, data } = (await this.block("maps")).get(name);
    return { shape, data: data.slice() };
  }

  /** What each head of an attention added at a position, and its bias. */
  async heads_added({ name, position }) {
    const block = await this.block(`${name}/output`);
    const { shape, data } = block.get("heads");
    const [heads, seq, d_v] = shape;
    const weight = new Tensor(block.get("weight").data, block.get("weight").shape);
    const parts = Array.from({ length: heads }, (_, head) => {
      const vector = new Float64Array(weight.width);
      for (let i = 0; i < d_v; i++) {
        const value = data[(head * seq + position) * d_v + i];
        weight.row(head * d_v + i).forEach((one, j) => (vector[j] += value * one));
      }
      return { name: `${name}/${head}`, vector };
    });
    const bias = block.get("bias");
    return { parts: bias ? [...parts, { name: `${name}/bias`, vector: Float64Array.from(bias.data) }] : parts };
  }

  /** Of the tokens that were recorded: those that were taken, and the best. */
  async probabilities({ tokens }) {
    const told = await this.block("told");
    const best = ranked(told.get("predictions/ids"), told.get("predictions/logprobs"), 1);
    const next = this.told.next && (await this.block("next")).get("logits").data; // of the last place, all of them
    const predictions = best.map(([first], position) => {
      const id = tokens[position] ?? first.id;
      const logit = (one) => (next && position === best.length - 1 ? next[one] : this.logit(told, position, one));
      const logprob = first.logprob + logit(id) - logit(first.id);
      return { id, logprob, probability: Math.exp(logprob) };
    });
    return { predictions };
  }

  logit(told, position, token) {
    return told.get("attribution/logits").data[this.explained(told, position, token)];
  }

  /** Where a token of a place stands among those whose logits were recorded. */
  explained(told, position, token) {
    const { shape, data } = told.get("attribution/ids");
    const rank = data.subarray(position * shape[1], (position + 1) * shape[1]).indexOf(token);
    if (rank < 0) throw new Error("the logit of this token was not recorded, as those of the likeliest are");
    return position * shape[1] + rank;
  }

  async lens({ best = Infinity } = {}) {
    const told = await this.block("told");
    const { shape, data: ids } = told.get("lens/ids");
    const { data: logprobs } = told.get("lens/logprobs");
    const size = shape[1] * shape[2];
    return this.told.lens.map((name, depth) => {
      const own = (data) => ({ shape: shape.slice(1), data: data.subarray(depth * size, (depth + 1) * size) });
      return { name, predictions: ranked(own(ids), own(logprobs), best) };
    });
  }

  async attribution({ position = 0, token }) {
    const told = await this.block("told");
    const at = this.explained(told, position, token);
    const { shape, data } = told.get("attribution/values");
    const parts = this.told.parts.map((name, part) => ({ name, value: data[part * shape[1] * shape[2] + at] }));
    return { parts, logit: this.logit(told, position, token) };
  }

  /** The next token, drawn from its logits: by any settings, but of this one text. */
  async step({ settings = {}, best = 50 }) {
    const { next, description, pass } = this.told;
    const changed = { ...description.generation, ...settings };
    const logits = (await this.block("next")).get("logits").data;
    const drawn = drawn_token(logits, pass.target, changed, next.banned, next.place);
    const ended = next.ends.includes(drawn.token);
    return { ids: pass.target, token: drawn.token, ended, ...next_tokens(drawn, changed, best) };
  }

  async search() {
    return this.told.search;
  }

  async without_each_word() {
    return this.told.without_each_word;
  }

  /** @returns {Promise<Map<string, {shape: number[], data: Float32Array | Int32Array}>>} the arrays of a block */
  block(name) {
    const known = this.open.get(name) ?? this.unpacked(name);
    this.open.delete(name);
    this.open.set(name, known); // as the last
    if (this.open.size > OPEN) this.open.delete(this.open.keys().next().value);
    return known;
  }

  async unpacked(name) {
    const packed = from_base64(await this.packed(name));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const planes = new Uint8Array(await new Response(stream).arrayBuffer());
    let start = 0;
    return new Map(
      this.told.blocks[name].map(({ name, shape, dtype }) => {
        const { width, read } = TYPES[dtype];
        const size = shape.reduce((product, length) => product * length, 1);
        const data = read(from_planes(planes.subarray(start, start + size * width), width).buffer);
        start += size * width;
        return [name, { shape, data }];
      }),
    );
  }
}

/** @returns {Float32Array} of an array (heads, …) that of one head */
function slice_of({ shape, data }, head) {
  const size = data.length / shape[0];
  return data.slice(head * size, (head + 1) * size);
}

/** Numbers whose first bytes come first, then all second ones, as a computer has them. @returns {Uint8Array} */
function from_planes(planes, width) {
  const bytes = new Uint8Array(planes.length);
  const size = planes.length / width;
  for (let plane = 0; plane < width; plane++)
    for (let at = 0; at < size; at++) bytes[at * width + plane] = planes[plane * size + at];
  return bytes;
}

/** @returns {import("../engine/inspect.js").Prediction[][]} of each place; -1 stands for none */
function ranked({ shape: [places, kept], data: ids }, { data: logprobs }, best) {
  return Array.from({ length: places }, (_, place) => {
    const found = [];
    for (let at = place * kept; at < place * kept + Math.min(kept, best); at++)
      if (ids[at] >= 0) found.push({ id: ids[at], probability: Math.exp(logprobs[at]), logprob: logprobs[at] });
    return found;
  });
}

/** The text of a block in the page, which may still be on its way: the arrays stand behind everything else. */
async function in_page(name) {
  const id = `block ${name}`;
  while (!is_whole(id) && document.readyState === "loading") await new Promise((go) => setTimeout(go, WAIT));
  const found = document.getElementById(id);
  if (found === null) throw new Error("the page is not whole: it was cut when it was saved or copied");
  return found.textContent;
}

/** Whether an element has its end: something stands behind it. */
function is_whole(id) {
  return Boolean(document.getElementById(id)?.nextSibling);
}
