/** One layer of the encoder and one of the decoder (section 3.1, figure 1; `nn.layer`). */

import { NO_TRACE } from "./trace.js";

/** Self-attention, then feed-forward; under a causal mask also the layer of a decoder without memory. */
export class EncoderLayer {
  constructor(self_attention, feed_forward, residuals) {
    Object.assign(this, { self_attention, feed_forward, residuals });
  }

  /** @param {import("../tensor.js").Tensor} x (seq, d_model) @param {Uint8Array | null} mask (seq, seq) */
  call(x, mask, trace = NO_TRACE) {
    return this.sublayers(x, (x, trace) => this.self_attention.call(x, mask, null, trace), trace);
  }

  /** The layer for new tokens, which are written to `cache` and attend to it. */
  extend(x, cache, slots, trace = NO_TRACE) {
    return this.sublayers(x, (x, trace) => this.self_attention.extend(x, cache, slots, trace), trace);
  }

  sublayers(x, self_attention, trace) {
    x = joined(this.residuals, 0, x, "self_attention", self_attention, trace, this.self_attention.heads);
    x = joined(this.residuals, 1, x, "feed_forward", (x, trace) => this.feed_forward.call(x, trace), trace);
    trace.record("output", x);
    return x;
  }
}

/** Masked self-attention, attention over the encoder's `memory`, then feed-forward. */
export class DecoderLayer {
  constructor(self_attention, cross_attention, feed_forward, residuals) {
    Object.assign(this, { self_attention, cross_attention, feed_forward, residuals });
  }

  /** @param {import("../tensor.js").Tensor} memory (source, d_model), all of which each token may attend to */
  call(x, mask, memory, trace = NO_TRACE) {
    const self_attention = (x, trace) => this.self_attention.call(x, mask, null, trace);
    return this.sublayers(x, self_attention, this.cross_attention.keys_values(memory), trace);
  }

  /** The layer for new tokens; `seen` are the memory's keys and values. */
  extend(x, cache, slots, seen, trace = NO_TRACE) {
    return this.sublayers(x, (x, trace) => this.self_attention.extend(x, cache, slots, trace), seen, trace);
  }

  sublayers(x, self_attention, seen, trace) {
    const cross_attention = (x, trace) => this.cross_attention.attend(x, seen, null, [], trace);
    const { heads } = this.self_attention;
    x = joined(this.residuals, 0, x, "self_attention", self_attention, trace, heads);
    x = joined(this.residuals, 1, x, "cross_attention", cross_attention, trace, heads);
    x = joined(this.residuals, 2, x, "feed_forward", (x, trace) => this.feed_forward.call(x, trace), trace);
    trace.record("output", x);
    return x;
  }
}

/** The stream after one sublayer, which may be left out; that after an attention is recorded. */
function joined(residuals, index, x, name, sublayer, trace, heads = 0) {
  const inside = trace.scope(name);
  const has_no_head = heads > 0 && Array.from({ length: heads }, (_, head) => head).every((one) => inside.is_off(one));
  const is_off = trace.is_all_off || trace.is_off(name) || has_no_head;
  const y = residuals[index].call(x, is_off ? null : (x) => sublayer(x, inside));
  if (heads > 0) inside.record("residual", y);
  return y;
}
