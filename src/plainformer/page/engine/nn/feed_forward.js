/** Position-wise feed-forward networks (section 3.3; `nn.feed_forward`). */

import { activate } from "../equations/activations.js";
import { Tensor } from "../tensor.js";
import { Linear } from "./linear.js";
import { NO_TRACE } from "./trace.js";

/** FFN(x) = activation(x W_1 + b_1) W_2 + b_2  (equation 2, where the activation is ReLU). */
export class FeedForward {
  constructor(config, weights, name) {
    this.inner = new Linear(weights, `${name}.inner`);
    this.outer = new Linear(weights, `${name}.outer`);
    this.activation = config.activation;
  }

  call(x, trace = NO_TRACE) {
    const hidden = activate(this.activation, this.inner.call(x));
    return recorded(trace, { hidden, output: this.outer.call(hidden) });
  }
}

/** FFN(x) = (activation(x W_gate) ∘ x W_inner) W_outer  (Shazeer 2020: ReGLU, GEGLU, SwiGLU by activation). */
export class GatedFeedForward {
  constructor(config, weights, name) {
    this.gate = new Linear(weights, `${name}.gate`);
    this.inner = new Linear(weights, `${name}.inner`);
    this.outer = new Linear(weights, `${name}.outer`);
    this.activation = config.activation;
  }

  call(x, trace = NO_TRACE) {
    const gate = activate(this.activation, this.gate.call(x));
    const inner = this.inner.call(x);
    const hidden = new Tensor(gate.data.map((open, at) => open * inner.data[at]), gate.shape);
    return recorded(trace, { hidden, output: this.outer.call(hidden) });
  }
}

/** Norm(activation(h W + b)): what BERT's masked language model does to a hidden state before it is projected. */
export class Transform {
  constructor(config, weights, name, norm) {
    this.dense = new Linear(weights, `${name}.dense`);
    Object.assign(this, { norm, activation: config.activation });
  }

  call(hidden) {
    return this.norm.call(activate(this.activation, this.dense.call(hidden)));
  }
}

function recorded(trace, found) {
  trace.record("hidden", found.hidden);
  trace.record("output", found.output);
  return found.output;
}
