/**
 * What the model makes of a text: everything that the views draw, asked for in one go.
 *
 * @typedef {object} Result
 * @property {number} serial counted from 1
 * @property {object | null} search of a translator: its `hypotheses`, and `nodes` of the tree (decode/beam.js)
 * @property {import("../engine/session.js").Pass} pass over source and target
 * @property {number} prompt of a language model: how many tokens of `pass.target` were given, the rest was written
 * @property {number[]} ids of a language model: all of them, those outside of the pass's window, too
 * @property {object | null} step of a language model: what comes next (`Session.step`)
 * @property {{name: string, predictions: object[][]}[]} lens the best tokens after each layer; [] of a classifier
 * @property {{word: string, labels: object[]}[]} left_out of a classifier: the labels without each
 *   word of a short text
 * @property {Prediction[]} chosen for each place of `pass.target` the one that was taken there: the token that comes
 *   next (of a masked model, that stands there); [] of a classifier
 * @property {{chosen: Prediction[], without: Prediction[], predictions: Prediction[][], labels: object[],
 *   output: string} | null} whole the same with no part left out, where some are; `without` are the tokens of its
 *   `chosen` in `pass`
 * @property {string} output what the model says, as text
 * @property {(id: number) => import("../engine/tokenizer/tokenizer.js").TokenView} token a token that is predicted
 * @property {(name: string, head?: number) => Promise<{shape: number[], data: Float32Array}>} array of this pass
 * @property {(name: string) => Promise<{shape: number[], data: Float32Array}>} maps of an attention in this pass
 *
 * @typedef {{id: number, probability: number, logprob: number}} Prediction
 */

const BEST = 12; // predictions that are kept of each place
const LENS = 5; // and of each layer
const KEPT = 24; // arrays of a pass that are kept, the last ones asked for
const WORDS = 12; // of a text with no more, each is left out before anything is shown; else the views ask for that

/** What a result is asked for while another text is being read. */
class Stale extends Error {}

/**
 * @template T
 * @param {Promise<T>} answer of a result's `array` or `maps`
 * @returns {Promise<T | null>} null where another text is read meanwhile: its result will be told, too
 */
export async function unless_stale(answer) {
  try {
    return await answer;
  } catch (error) {
    if (error instanceof Stale) return null;
    throw error;
  }
}

/** Asks the engine; an answer that is no longer wanted when it comes is dropped. */
export class Results {
  /**
   * @param {import("../engine/client.js").Ask} ask
   * @param {import("../engine/session.js").Description} description
   */
  constructor(ask, description) {
    Object.assign(this, { ask, description, serial: 0, views: new Map() });
  }

  has(method) {
    return this.description.methods.includes(method);
  }

  /**
   * @param {{text: string, settings: object, off: string[], written: number[]}} wanted
   * @returns {Promise<Result | null>} null where something else was wanted meanwhile
   */
  async of({ text, settings, off, written }) {
    const serial = ++this.serial;
    const asked = { text, settings, off };
    const search = this.is_searched ? await this.ask("search", { ...this.of_a_beam(asked), prefix: written }) : null;
    const step = this.has("step") ? await this.after(asked, written) : null;
    if (serial !== this.serial) return null;
    const read = step ? { text, ids: step.ids } : { text, target: search?.hypotheses[0]?.ids ?? [] };
    const whole = off.length ? await this.of_the_whole(read, settings, search, step) : null;
    const pass = await this.ask("forward", { ...read, off, best: BEST });
    const chosen = await this.chosen(pass, search, step);
    if (whole) whole.without = await this.probable(pass, whole.chosen.map(({ id }) => id));
    const lens = this.has("lens") ? await this.ask("lens", { best: LENS }) : [];
    const words = { text, off, count: first_words(text) };
    const left_out = this.has("without_each_word") ? await this.ask("without_each_word", words) : [];
    const [ids, prompt] = [step?.ids ?? [], step ? step.ids.length - written.length : 0];
    const found = { serial, search, pass, lens, left_out, step, prompt, ids, whole, chosen };
    await this.look_up(found);
    if (serial !== this.serial) return null;
    const token = (id) => this.views.get(id);
    const maps = (name) => this.of_pass(serial, "maps", { name });
    return { ...found, output: output_of(pass, search), token, array: this.arrays(serial), maps };
  }

  /** Whether what is looked at is found by a search, as translations are. */
  get is_searched() {
    return this.has("search") && !this.has("step");
  }

  /** All hypotheses of a beam are asked for, not the best alone. */
  of_a_beam(asked) {
    const n_best = asked.settings.beam_size ?? this.description.generation.beam_size;
    return { ...asked, settings: { ...asked.settings, n_best } };
  }

  /** What comes after a prompt and what was written behind it. */
  async after({ text, settings, off }, written) {
    if (this.read?.text !== text) this.read = { text, ids: (await this.ask("step", { text, settings, off })).ids };
    return this.ask("step", { ids: [...this.read.ids, ...written], settings, off });
  }

  /** The same tokens in the whole model, and what that model would have said by itself. */
  async of_the_whole(read, settings, search, step) {
    const pass = await this.ask("forward", { ...read, best: BEST });
    const chosen = await this.chosen(pass, search, step);
    const own = this.is_searched ? await this.ask("search", { text: read.text, settings }) : null;
    const { predictions, labels = [] } = pass;
    return { predictions, labels, chosen, output: output_of(pass, own) };
  }

  /** At each place of the last pass the prediction that was taken. */
  async chosen(pass, search, step) {
    const { target, gaps } = pass;
    const taken = gaps ? [] : target.slice(1).map(({ id }) => id);
    if (search?.hypotheses[0]?.finished) taken.push(this.description.target_special.eos);
    if (step) taken.push(step.token);
    return this.probable(pass, taken);
  }

  /** How probable tokens were in the last pass, one at each place; where none is given, the best. */
  async probable({ predictions }, ids) {
    const found = predictions.map((ranked, at) => (at in ids ? ranked.find(({ id }) => id === ids[at]) : ranked[0]));
    return found.every(Boolean) ? found : (await this.ask("probabilities", { tokens: ids })).predictions;
  }

  /** Finds the texts of all tokens that are predicted somewhere. */
  async look_up({ pass, lens, search, step, whole, chosen }) {
    const rows = [pass.predictions, ...lens.map(({ predictions }) => predictions), whole?.predictions ?? []];
    const taken = [...chosen, ...(whole?.chosen ?? []), ...(step?.predictions ?? [])];
    const ids = [...rows.flat(2), ...taken].map(({ id }) => id);
    ids.push(...(search?.nodes ?? []).map(({ token }) => token));
    const fresh = [...new Set(ids)].filter((id) => !this.views.has(id));
    if (fresh.length === 0) return;
    const { tokens } = await this.ask("tokens", { ids: fresh, side: "target" });
    for (const one of tokens) this.views.set(one.id, one);
  }

  arrays(serial) {
    const known = new Map();
    return (name, head) => {
      const key = `${name} ${head}`;
      const found = known.get(key) ?? this.array(serial, name, head);
      known.delete(key);
      known.set(key, found); // as the last
      if (known.size > KEPT) known.delete(known.keys().next().value);
      return found;
    };
  }

  async array(serial, name, head) {
    return (await this.of_pass(serial, "arrays", { names: [name], head }))[name];
  }

  /** What is asked of the last pass, as long as that is the pass of this number. */
  async of_pass(serial, method, asked) {
    const check = () => {
      if (serial !== this.serial) throw new Stale("another text is being read");
    };
    check();
    try {
      return await this.ask(method, asked);
    } finally {
      check();
    }
  }
}

/** How many words are left out at once: all of a short text, none of a longer one. */
function first_words(text) {
  return text.split(/\p{White_Space}+/u).length > WORDS ? 0 : WORDS + 1;
}

function output_of({ labels }, search) {
  if (labels) return [...labels].sort((one, other) => other.probability - one.probability)[0].label;
  return search?.hypotheses[0]?.text ?? "";
}
