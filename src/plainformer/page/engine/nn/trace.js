/**
 * What a forward pass is asked besides its result (`nn.trace`): to record named intermediates, and to leave parts out.
 *
 * Names go down the model as its parameters' do, "decoder/0/cross_attention/weights"; where there is one stack, they
 * begin with the layer, "0/self_attention/weights". Of each stack there are
 *
 *   embedding/token, position, type      (seq, d_model)       what embeddings add up, where there are such
 *   embedding/output                     (seq, d_model)       what the first layer reads
 *   LAYER/self_attention/query           (heads, seq, d_k)    and key, value; turned where positions turn them
 *   LAYER/self_attention/bias            (heads, query, key)  of the scores, where positions give them one
 *   LAYER/self_attention/scores          (heads, query, key)  Q Kᵀ / √d_k, and that bias, before the mask
 *   LAYER/self_attention/weights         (heads, query, key)  their masked softmax
 *   LAYER/self_attention/heads           (heads, seq, d_v)    the weighted values
 *   LAYER/self_attention/output          (seq, d_model)       after W^O; LAYER/cross_attention has the same
 *   LAYER/feed_forward/hidden, output    (seq, d_ff), (seq, d_model)
 *   LAYER/self_attention/residual        (seq, d_model)       the stream after it; LAYER/cross_attention has one, too
 *   LAYER/output                         (seq, d_model)       the stream after the layer
 *   hidden                               (seq, d_model)       after the last norm: what is projected
 *
 * A part is left out by the name of what it is: a head "decoder/0/cross_attention/2", a sublayer
 * "decoder/0/cross_attention" or "decoder/0/feed_forward", or a layer, "decoder/0". It then adds nothing to the stream;
 * the norms stay. An attention whose heads are all off adds no bias either, which belongs to no head.
 */

export class Trace {
  /**
   * @param {Map<string, import("../tensor.js").Tensor> | null} found where intermediates go, null for nowhere
   * @param {ReadonlySet<string>} off names of the parts that are left out
   * @param {string} prefix
   */
  constructor(found, off = new Set(), prefix = "") {
    this.found = found;
    this.off = off;
    this.prefix = prefix;
  }

  /** @param {string | number} name @returns {Trace} the same, one name deeper */
  scope(name) {
    return new Trace(this.found, this.off, `${this.prefix}${name}/`);
  }

  /** @param {string} name @param {import("../tensor.js").Tensor} value */
  record(name, value) {
    if (this.found !== null) this.found.set(this.prefix + name, value);
  }

  /** @param {string | number} name @returns {boolean} whether this part is left out */
  is_off(name) {
    return this.off.size > 0 && this.off.has(this.prefix + name);
  }

  /** Whether all that this trace is of is left out, a layer. */
  get is_all_off() {
    return this.off.size > 0 && this.off.has(this.prefix.slice(0, -1));
  }
}

export const NO_TRACE = new Trace(null);
