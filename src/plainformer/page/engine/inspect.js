/**
 * What a traced forward pass says of its model: what each layer would have predicted (the logit lens), and what each
 * head and each feed-forward added to a token's logit (direct attribution).
 */

import { ACTIVATIONS } from "./equations/activations.js";
import { matmul } from "./equations/linear.js";
import { log_softmax, softmax, top_k } from "./equations/softmax.js";
import { FirstToken } from "./nn/pooling.js";
import { Tensor } from "./tensor.js";

/**
 * A stack of layers that ends in logits, as the inspection walks it.
 * @typedef {object} Stack
 * @property {string} prefix of its names in a trace: "decoder/", or "" where there is one stack
 * @property {object[]} layers
 * @property {object | null} norm the last
 * @property {object | null} embedding_norm that on the sum of the embeddings
 * @property {import("./nn/feed_forward.js").Transform | null} transform between the last norm and the projection
 * @property {(hidden: Tensor) => Tensor} project hidden states to logits
 * @property {import("./nn/embedding.js").OutputProjection} output
 */

/** @typedef {{id: number, probability: number, logprob: number}} Prediction */

/**
 * The most probable tokens of each row of logits.
 * @param {Tensor} logits (seq, rows)
 * @param {number} number of tokens
 * @param {number[]} banned ids that are left out of account
 * @returns {Prediction[][]} best first
 */
export function best_tokens(logits, number, banned = []) {
  return Array.from({ length: logits.rows }, (_, row) => {
    const own = logits.row(row).slice();
    for (const id of banned) own[id] = -Infinity;
    const logprobs = log_softmax(own);
    return top_k(logprobs, number).map((id) => ({ id, probability: Math.exp(logprobs[id]), logprob: logprobs[id] }));
  });
}

/**
 * The logits that the stream after each layer would give (nostalgebraist 2020): the last layer's are the model's.
 * @param {Stack} stack
 * @param {Map<string, Tensor>} seen its trace
 * @returns {{name: string, logits: Tensor}[]} of the embeddings and of each layer
 */
export function logit_lens({ prefix, layers, norm, project }, seen) {
  const names = ["embedding/output", ...layers.map((_, layer) => `${layer}/output`)];
  return names.map((name) => {
    const stream = seen.get(prefix + name);
    return { name: prefix + name, logits: project(norm === null ? stream : norm.call(stream)) };
  });
}

/**
 * What was added to the logit of one token at one position: by the embeddings, each head, the biases of attention, each
 * feed-forward, and the constants of norms and output. Norms, and the activation before the projection where there is
 * one, are taken for the linear maps that they were at this position, so that the parts sum to the logit.
 * @param {Stack} stack
 * @param {Map<string, Tensor>} seen its trace
 * @param {number} position
 * @param {number} token
 * @returns {{name: string, value: number}[]} by the names of `inspect.attribution`
 */
export function attribution(stack, seen, position, token) {
  const { transform = null, output } = stack;
  let parts = hidden_parts(stack, seen, position);
  if (transform !== null) {
    const mapped = through_dense(transform.dense, ACTIVATIONS[transform.activation], parts, "transform/bias");
    parts = through(transform.norm, mapped, "transform/norm");
  }
  return of_logit(parts, output.column(token), output.bias && output.bias.data[token]);
}

/**
 * The same of a classifier's label, whose logit is told from all positions or from the first, as it pools.
 * @param {Stack & {pooling: object}} stack its `output` is a linear map
 * @param {Map<string, Tensor>} seen its trace
 * @param {number} label its number
 * @returns {{name: string, value: number}[]}
 */
export function label_attribution(stack, seen, label) {
  const { pooling, output } = stack;
  const is_first = pooling instanceof FirstToken;
  const parts = is_first
    ? through_dense(pooling.dense, Math.tanh, hidden_parts(stack, seen, 0), "pooling/bias")
    : mean_parts(stack, seen);
  const column = Float32Array.from({ length: output.weight.rows }, (_, i) => output.weight.row(i)[label]);
  return of_logit(parts, column, output.bias && output.bias.data[label]);
}

/** What each part of the model added to the last hidden state at a position. */
function hidden_parts({ prefix, layers, norm, embedding_norm = null }, seen, position) {
  const embeddings = ["token", "type", "position"].map((name) => `${prefix}embedding/${name}`);
  const names = embeddings.filter((name) => seen.has(name));
  let parts = names.map((name) => ({ name, vector: Float64Array.from(seen.get(name).row(position)) }));
  parts = through(embedding_norm, parts, `${prefix}embedding/norm`);
  layers.forEach((layer, index) => {
    sublayers(layer).forEach((sublayer, at) => {
      const [residual, name] = [layer.residuals[at], `${prefix}${index}/${sublayer}`];
      const added = added_by(layer[sublayer], name, seen, position);
      parts = through(residual.is_after ? residual.norm : null, [...parts, ...added], `${name}/norm`);
    });
  });
  return through(norm, parts, `${prefix}norm`);
}

/** The mean over all positions of what each part added. */
function mean_parts(stack, seen) {
  const seq = seen.get("hidden").rows;
  const mean = hidden_parts(stack, seen, 0);
  for (let position = 1; position < seq; position++)
    hidden_parts(stack, seen, position).forEach(({ vector }, part) => {
      for (let i = 0; i < vector.length; i++) mean[part].vector[i] += vector[i];
    });
  return mean.map(({ name, vector }) => ({ name, vector: vector.map((sum) => sum / seq) }));
}

/** What each part adds to a logit, by the column of the output projection and its bias (null where there is none). */
function of_logit(parts, column, bias) {
  const found = parts.map(({ name, vector }) => ({ name, value: inner(vector, column) }));
  return bias === null ? found : [...found, { name: "output/bias", value: bias }];
}

/** Each part through a layer with an activation a, a(x) = x · (a(x) / x), of which the quotient is held. */
function through_dense(dense, activation, parts, name) {
  const row = (vector) => new Tensor(Float32Array.from(vector), [1, vector.length]);
  const mapped = parts.map((part) => {
    return { name: part.name, vector: Float64Array.from(matmul(row(part.vector), dense.weight).data) };
  });
  if (dense.bias !== null) mapped.push({ name, vector: Float64Array.from(dense.bias.data) });
  const before = sum_of(mapped);
  const quotient = before.map((x) => (x === 0 ? 0 : activation(x) / x));
  return mapped.map((part) => ({ ...part, vector: part.vector.map((one, i) => one * quotient[i]) }));
}

function sublayers(layer) {
  return ["self_attention", "cross_attention", "feed_forward"].filter((name) => layer[name] !== undefined);
}

/**
 * The vectors (d_model) that a sublayer added to the stream: of attention one for each head, its row of the weighted
 * values times its own rows of W^O, and the bias.
 */
export function added_by(sublayer, name, seen, position) {
  const heads = seen.get(`${name}/heads`);
  if (heads === undefined) {
    const output = seen.get(`${name}/output`);
    return output === undefined ? [] : [{ name, vector: Float64Array.from(output.row(position)) }];
  }
  const [count, seq, d_v] = heads.shape;
  const { weight, bias } = sublayer.output;
  const width = weight.width;
  const parts = Array.from({ length: count }, (_, head) => {
    const own = new Tensor(weight.data.subarray(head * d_v * width, (head + 1) * d_v * width), [d_v, width]);
    const row = new Tensor(heads.row(head * seq + position), [1, d_v]);
    return { name: `${name}/${head}`, vector: Float64Array.from(matmul(row, own).data) };
  });
  return bias === null ? parts : [...parts, { name: `${name}/bias`, vector: Float64Array.from(bias.data) }];
}

/** Each part as the norm of their sum takes it, and the norm's own constant as one part more, called `name`. */
function through(norm, parts, name) {
  if (norm === null) return parts;
  const is_centred = norm.bias !== undefined;
  const sum = sum_of(parts);
  const centred = is_centred ? less_mean(sum) : sum;
  const factor = 1 / Math.sqrt(inner(centred, centred) / sum.length + norm.eps);
  const changed = parts.map(({ name, vector }) => ({
    name,
    vector: (is_centred ? less_mean(vector) : vector).map((one, i) => one * factor * norm.scale.data[i]),
  }));
  return is_centred ? [...changed, { name, vector: Float64Array.from(norm.bias.data) }] : changed;
}

function sum_of(parts) {
  const sum = new Float64Array(parts[0].vector.length);
  for (const { vector } of parts) for (let i = 0; i < sum.length; i++) sum[i] += vector[i];
  return sum;
}

function less_mean(vector) {
  const mean = vector.reduce((sum, one) => sum + one, 0) / vector.length;
  return vector.map((one) => one - mean);
}

function inner(one, other) {
  let sum = 0;
  for (let i = 0; i < one.length; i++) sum += one[i] * other[i];
  return sum;
}

/** Probabilities of a classifier's labels. @param {Tensor} logits (1, labels) @returns {number[]} */
export function label_probabilities(logits) {
  return Array.from(softmax(logits.data));
}

/**
 * Maps of at most `size` cells each way: each is the largest of the weights that it stands for.
 * @param {Tensor} weights (heads, query, key)
 * @param {number} size
 * @returns {{shape: number[], data: Float32Array}} (heads, rows, columns)
 */
export function largest({ shape: [heads, queries, keys], data }, size) {
  const [rows, columns] = [Math.min(queries, size), Math.min(keys, size)];
  const found = new Float32Array(heads * rows * columns);
  const column_of = Uint32Array.from({ length: keys }, (_, key) => Math.floor((key * columns) / keys));
  for (let of_one = 0; of_one < heads * queries; of_one++) {
    const [head, query] = [Math.floor(of_one / queries), of_one % queries];
    const [from, to] = [of_one * keys, (head * rows + Math.floor((query * rows) / queries)) * columns];
    for (let key = 0; key < keys; key++) {
      const [weight, cell] = [data[from + key], to + column_of[key]];
      if (weight > found[cell]) found[cell] = weight;
    }
  }
  return { shape: [heads, rows, columns], data: found };
}
