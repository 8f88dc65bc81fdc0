/**
 * What the model makes of a text: everything that the views draw, asked for in one go.
 *
 * @typedef {object} Result
 * @property {number} serial counted from 1
 * @property {string} text that was read
 * @property {string[]} off names of the parts that were left out
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
 * @property {(asked: object) => Promise<object>} attribution of this pass (`Session.attribution`)
 * @property {(asked: object) => Promise<object>} heads_added in this pass (`Session.heads_added`)
 *
 * @typedef {{id: number, probability: number, logprob: number}} Prediction
 */

const BEST = 12; // predictions that are kept of each place
const LENS = 5; // and of each layer
const KEPT = 24; // arrays of a pass that are kept, the last ones asked for
const WORDS = 12; // of a text with no more, each is left out before anything is shown; else the views ask for that

/** What is asked of a pass that is no longer the engine's last, or for a result that is no longer wanted. */
class Stale extends Error {}

/**
 * @template T
 * @param {Promise<T>} answer of a result's `array`, `maps`, `attribution` or `heads_added`
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

/**
 * Asks the engine. It answers in the order of the questions, and arrays, lens and attribution are of its last pass. So
 * what is no longer wanted asks for nothing more: no pass of its own comes between another's pass and what is asked of
 * that. `serial` is the number of what is wanted, `passed` of what the engine's last pass is of.
 */
export class Results {
  /**
   * @param {import("../engine/client.js").Ask} ask
   * @param {import("../engine/session.js").Description} description
   */
  constructor(ask, description) {
    Object.assign(this, { ask, description, serial: 0, passed: 0, views: new Map() });
  }

  has(method) {
    return this.description.methods.includes(method);
  }

  /**
   * @param {{text: string, settings: object, off: string[], written: number[]}} wanted
   * @returns {Promise<Result | null>} null where something else was wanted meanwhile
   */
  async of(wanted) {
    const serial = ++this.serial;
    try {
      return await this.result(serial, wanted);
    } catch (error) {
      if (serial !== this.serial) return null; // what went wrong there is of no interest any more
      throw error;
    }
  }

  async result(serial, { text, settings, off, written }) {
    const ask = (method, asked) => this.wanted(serial, method, asked);
    const asked = { text, settings, off };
    const search = this.is_searched ? await ask("search", { ...this.of_a_beam(asked), prefix: written }) : null;
    const step = this.has("step") ? await this.after(ask, asked, written) : null;
    const read = step ? { text, ids: step.ids } : { text, target: search?.hypotheses[0]?.ids ?? [] };
    const whole = off.length ? await this.of_the_whole(ask, read, { settings, prefix: written }, search, step) : null;
    const pass = await ask("forward", { ...read, off, best: BEST });
    const chosen = await this.chosen(ask, pass, search, step);
    if (whole) whole.without = await this.probable(ask, pass, whole.chosen.map(({ id }) => id));
    const lens = this.has("lens") ? await ask("lens", { best: LENS }) : [];
    const words = { text, off, count: first_words(text) };
    const left_out = this.has("without_each_word") ? await ask("without_each_word", words) : [];
    const [ids, prompt] = [step?.ids ?? [], step ? step.ids.length - written.length : 0];
    const found = { serial, text, off, search, pass, lens, left_out, step, prompt, ids, whole, chosen };
    await this.look_up(ask, found);
    if (serial !== this.serial) return null;
    const token = (id) => this.views.get(id);
    return { ...found, output: output_of(pass, search), token, ...this.asked_later(serial) };
  }

  /** An answer for the result of this number. */
  async wanted(serial, method, asked) {
    if (serial !== this.serial) throw new Stale("something else is wanted");
    if (method !== "forward") return this.ask(method, asked);
    const before = this.passed;
    this.passed = serial;
    try {
      return await this.ask(method, asked);
    } catch (error) {
      if (this.passed === serial) this.passed = before; // a text that cannot be read leaves the last pass as it was
      throw error;
    }
  }

  /** What views ask of the pass of this number. */
  asked_later(serial) {
    const ask = (method) => (asked) => this.of_pass(serial, method, asked);
    const maps = (name) => this.of_pass(serial, "maps", { name });
    return { array: this.arrays(serial), maps, attribution: ask("attribution"), heads_added: ask("heads_added") };
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
  async after(ask, { text, settings, off }, written) {
    if (this.read?.text !== text) this.read = { text, ids: (await ask("step", { text, settings, off })).ids };
    return ask("step", { ids: [...this.read.ids, ...written], settings, off });
  }

  /** The same tokens in the whole model, and what that model would have said by itself, behind the same prefix. */
  async of_the_whole(ask, read, how, search, step) {
    const pass = await ask("forward", { ...read, best: BEST });
    const chosen = await this.chosen(ask, pass, search, step);
    const own = this.is_searched ? await ask("search", { text: read.text, ...how }) : null;
    const { predictions, labels = [] } = pass;
    return { predictions, labels, chosen, output: output_of(pass, own) };
  }

  /** At each place of the last pass the prediction that was taken. */
  async chosen(ask, pass, search, step) {
    const { target, gaps } = pass;
    const taken = gaps ? [] : target.slice(1).map(({ id }) => id);
    if (search?.hypotheses[0]?.finished) taken.push(this.description.target_special.eos);
    if (step) taken.push(step.token);
    return this.probable(ask, pass, taken);
  }

  /** How probable tokens were in the last pass, one at each place; where none is given, the best. */
  async probable(ask, { predictions }, ids) {
    const found = predictions.map((ranked, at) => (at in ids ? ranked.find(({ id }) => id === ids[at]) : ranked[0]));
    return found.every(Boolean) ? found : (await ask("probabilities", { tokens: ids })).predictions;
  }

  /** Finds the texts of all tokens that are predicted somewhere. */
  async look_up(ask, { pass, lens, search, step, whole, chosen }) {
    const rows = [pass.predictions, ...lens.map(({ predictions }) => predictions), whole?.predictions ?? []];
    const taken = [...chosen, ...(whole?.chosen ?? []), ...(step?.predictions ?? [])];
    const ids = [...rows.flat(2), ...taken].map(({ id }) => id);
    ids.push(...(search?.nodes ?? []).map(({ token }) => token));
    const fresh = [...new Set(ids)].filter((id) => !this.views.has(id));
    if (fresh.length === 0) return;
    const { tokens } = await ask("tokens", { ids: fresh, side: "target" });
    for (const one of tokens) this.views.set(one.id, one);
  }

  arrays(serial) {
    const known = new Map();
    return async (name, head) => {
      this.check_pass(serial);
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
    this.check_pass(serial);
    return this.ask(method, asked);
  }

  check_pass(serial) {
    if (serial !== this.passed) throw new Stale("another text is being read");
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
