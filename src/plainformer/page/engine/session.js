/**
 * The engine as views see it: a model that was loaded, and what it can be asked. Views call these methods by way of
 * `connect` (client.js) and never touch the engine; whatever answers the same methods can stand in its place.
 *
 * Every method takes one plain object and returns one, which a message can carry. All of them take `off`, the names of
 * parts that are left out (`nn/trace.js`). What goes wrong is an error with one line for the reader.
 *
 * | method            | of which models      | asks for                           | gives                           |
 * | ----------------- | -------------------- | ---------------------------------- | ------------------------------- |
 * | load              | all                  | the bundle (`page/bundle.py`)      | Description                     |
 * | tokens            | all                  | text or ids, side                  | TokenView[], unknown            |
 * | forward           | all                  | text, target (ids) of a translator | Pass                            |
 * | arrays            | all                  | names; a head                      | those of the last pass, by name |
 * | maps              | all                  | the name of an attention           | a small map of each head        |
 * | heads_added       | all                  | name of an attention, position     | what each head added, the bias  |
 * | probabilities     | all but classifiers  | tokens, one for each place         | Prediction[], of the last pass  |
 * | lens              | all but classifiers  | best                               | tokens after each layer         |
 * | attribution       | all                  | position, token (or label)         | parts that sum to the logit     |
 * | search            | translators, writers | text, settings, prefix             | hypotheses, the tree (BeamNode) |
 * | step              | language models      | text or ids, settings              | probabilities, the token drawn  |
 * | generate          | language models      | text or ids, settings              | ids and text                    |
 * | without_each_word | classifiers          | text                               | labels without each word        |
 *
 * Settings are the library's, by its names; what is not given is as the model's folder has it.
 */

import { MaskFiller } from "./decode/mask_filler.js";
import { TextClassifier } from "./decode/text_classifier.js";
import { TextGenerator } from "./decode/text_generator.js";
import { Translator } from "./decode/translator.js";
import { added_by, attribution, best_tokens, label_attribution, largest, logit_lens } from "./inspect.js";
import { stacks } from "./models/config.js";
import { unknown_characters } from "./decode/texts.js";
import { Tokenizer } from "./tokenizer/tokenizer.js";
import { Weights, from_base64 } from "./weights.js";

const FORMAT = 1;

/** What uses each kind of model. */
const USERS = {
  "plainformer-transformer": Translator,
  "plainformer-language-model": TextGenerator,
  "plainformer-masked-language-model": MaskFiller,
  "plainformer-classifier": TextClassifier,
};

/**
 * @typedef {object} Description
 * @property {string} kind of the model, as `config.json` says it
 * @property {object} config
 * @property {object} about facts of the model's card
 * @property {object} generation its settings of decoding
 * @property {Record<string, number>} stacks layers of each, by the names of a trace
 * @property {number} heads of each layer
 * @property {Record<string, number | null>} special ids of the source tokenizer's roles
 * @property {Record<string, number | null>} target_special of the target's
 * @property {string | null} mask how a gap is written
 * @property {string[]} methods that this model has
 *
 * @typedef {object} Pass
 * @property {import("./tokenizer/tokenizer.js").TokenView[]} source tokens that were read; of a translator, its source
 * @property {import("./tokenizer/tokenizer.js").TokenView[]} target tokens that predictions are of: of a translator
 *   those of the target behind bos, of others the same as `source`
 * @property {import("./inspect.js").Prediction[][]} predictions after (masked models: at) each place of `target`
 * @property {string[]} unknown characters that the vocabulary does not have
 * @property {number} cut tokens that were not read, since they do not fit
 * @property {number[]} [gaps] places of a masked model's gaps
 * @property {{label: string, probability: number, logit: number}[]} [labels] of a classifier
 * @property {Record<string, number[]>} names the shape of every array that `arrays` has, by its name
 */

export class Session {
  /**
   * @param {{bundle: object | string}} asked the bundle, or its text
   * @returns {Description}
   */
  load({ bundle }) {
    const { data, ...header } = typeof bundle === "string" ? JSON.parse(bundle) : bundle;
    if (header.format !== FORMAT) throw new Error(`the page carries a model of format ${header.format}, not ${FORMAT}`);
    const { kind, config, about, generation, tokenizers } = header;
    const User = USERS[kind];
    if (User === undefined) throw new Error(`a model of the kind ${kind} cannot be run here`);
    this.source_tokenizer = new Tokenizer(tokenizers.source);
    this.target_tokenizer = tokenizers.target ? new Tokenizer(tokenizers.target) : this.source_tokenizer;
    const weights = new Weights(header.weights.arrays, typeof data === "string" ? from_base64(data) : data);
    const read = { source: this.source_tokenizer, target: this.target_tokenizer };
    this.user = new User(config, weights, read, generation);
    this.seen = new Map();
    return {
      ...{ kind, config, about, generation, stacks: stacks(config), heads: config.heads },
      special: this.source_tokenizer.special,
      target_special: this.target_tokenizer.special,
      mask: this.user.mask ?? null,
      methods: ["tokens", "forward", "arrays", "maps", "heads_added", ...this.own_methods()],
    };
  }

  own_methods() {
    const own = ["search", "step", "generate", "without_each_word"].filter((name) => name in this.user);
    return this.user.stack ? ["probabilities", "lens", "attribution", ...own] : ["attribution", ...own];
  }

  /** @param {{text?: string, ids?: number[], side?: "source" | "target"}} asked */
  tokens({ text = "", ids, side = "source" }) {
    const tokenizer = side === "target" ? this.target_tokenizer : this.source_tokenizer;
    const own = ids ?? tokenizer.encode(text);
    const unknown = ids ? [] : unknown_characters(tokenizer, text, own);
    return { tokens: own.map((id) => tokenizer.view(id)), unknown };
  }

  /** @returns {Pass} */
  forward(asked) {
    const { seen, source, target, ...pass } = this.user.forward(asked);
    this.seen = seen;
    this.predictions = pass.predictions;
    const names = Object.fromEntries(Array.from(seen, ([name, { shape }]) => [name, shape]));
    const [read, written] = [this.source_tokenizer, this.target_tokenizer];
    const views = { source: source.map((id) => read.view(id)), target: target.map((id) => written.view(id)) };
    return { ...pass, ...views, names };
  }

  /**
   * Arrays of the last pass: (heads, query, key) of "weights" and "scores", (heads, seq, d_k) of "query" and "key", …
   * @param {{names?: string[], head?: number}} asked all, if not given; of arrays of heads one head alone
   * @returns {Record<string, {shape: number[], data: Float32Array}>}
   */
  arrays({ names = [...this.seen.keys()], head }) {
    return Object.fromEntries(
      names.map((name) => {
        const { shape, data } = this.array(name);
        if (head === undefined || shape.length < 3) return [name, { shape, data: data.slice() }];
        const size = data.length / shape[0];
        return [name, { shape: shape.slice(1), data: data.slice(head * size, (head + 1) * size) }];
      }),
    );
  }

  /**
   * Small maps of all heads of an attention, of at most `size` cells each way: each is the largest of the weights that
   * it stands for.
   * @param {{name: string, size?: number}} asked as "decoder/0/cross_attention"
   * @returns {{shape: number[], data: Float32Array}} (heads, rows, columns)
   */
  maps({ name, size = 32 }) {
    return largest(this.array(`${name}/weights`), size);
  }

  /**
   * What each head of an attention added to the stream at one position of the last pass, and its bias: they sum to its
   * output there.
   * @param {{name: string, position: number}} asked
   * @returns {{parts: {name: string, vector: Float64Array}[]}} of d_model each
   */
  heads_added({ name, position }) {
    this.array(`${name}/heads`);
    const [, stack, layer, sublayer] = name.match(/^(.*?)(\d+)\/(\w+)$/);
    const { encoder, decoder, layers } = this.user.model;
    const found = { "encoder/": encoder, "decoder/": decoder, "": layers ?? encoder.layers }[stack];
    return { parts: added_by(found[layer][sublayer], name, this.seen, position) };
  }

  array(name) {
    const found = this.seen.get(name);
    if (found === undefined) throw new Error(`the last pass has no array called ${name}`);
    return found;
  }

  /**
   * How probable given tokens were in the last pass, be they among the best or not.
   * @param {{tokens: number[]}} asked one for each place; where there is none, the best is taken
   * @returns {{predictions: import("./inspect.js").Prediction[]}}
   */
  probabilities({ tokens }) {
    const logits = this.stack() && this.array("logits");
    const predictions = this.predictions.map((ranked, at) => {
      const [best, id] = [ranked[0], tokens[at] ?? ranked[0].id];
      const row = logits.row(at);
      const logprob = best.logprob + row[id] - row[best.id];
      return { id, logprob, probability: Math.exp(logprob) };
    });
    return { predictions };
  }

  /** The most probable tokens after the embeddings and after each layer, of those that a pass predicts. */
  lens({ best = 5 } = {}) {
    const never = this.user.never ?? [];
    const lenses = logit_lens(this.stack(), this.seen);
    return lenses.map(({ name, logits }) => ({ name, predictions: best_tokens(logits, best, never) }));
  }

  /**
   * @param {{position?: number, token: number}} asked of the last pass; of a classifier `token` is a label's number,
   *   and there is one logit for all positions
   */
  attribution({ position = 0, token }) {
    if (this.user.pooled) {
      const parts = label_attribution(this.user.pooled, this.seen, token);
      return { parts, logit: this.seen.get("logits").data[token] };
    }
    const parts = attribution(this.stack(), this.seen, position, token);
    return { parts, logit: this.seen.get("logits").row(position)[token] };
  }

  search(asked) {
    return this.asked("search", asked);
  }

  step(asked) {
    return this.asked("step", asked);
  }

  generate(asked) {
    return this.asked("generate", asked);
  }

  without_each_word(asked) {
    return this.asked("without_each_word", asked);
  }

  asked(method, asked) {
    if (!(method in this.user)) throw new Error(`this kind of model has no ${method}`);
    return this.user[method](asked);
  }

  stack() {
    if (!this.user.stack) throw new Error("a classifier has no logits of tokens");
    return this.user.stack;
  }
}
