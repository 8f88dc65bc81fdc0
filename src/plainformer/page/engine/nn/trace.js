/**
 * What a forward pass is asked besides its result (`nn.trace`): to record named intermediates, and to leave parts out.
 *
 * Names go down the model as its parameters' do: "decoder/0/cross_attention/weights". A part is left out by the name of
 * what it is: a head "decoder/0/cross_attention/2", all heads "decoder/0/cross_attention", "decoder/0/feed_forward",
 * or a layer, "decoder/0".
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
}

export const NO_TRACE = new Trace(null);
