/**
 * A model's parameters by their names, decoded from the bytes that the page carries (`page/bundle.py` writes them):
 * float32, float16, or int8 with one scale for each row.
 */

import { Tensor } from "./tensor.js";

/**
 * @typedef {object} ArrayEntry where an array stands in the bytes
 * @property {string} name path of the parameter in the model, "encoder.layers.0.self_attention.query.weight"
 * @property {number[]} shape
 * @property {"float32" | "float16" | "int8"} dtype
 * @property {number} offset of its first byte
 * @property {number} [scales] of int8: offset of the float32 scales, one for each slice along `axis`
 * @property {number} [axis] of int8: 0 for the rows of a table, 1 for the outputs of a linear map
 */

/** Parameters by name. Each array is decoded when it is first asked for. */
export class Weights {
  /** @param {ArrayEntry[]} entries @param {Uint8Array} bytes */
  constructor(entries, bytes) {
    this.entries = new Map(entries.map((entry) => [entry.name, entry]));
    this.bytes = bytes;
    this.decoded = new Map();
  }

  /** @param {string} name @returns {Tensor} an error names what is missing */
  get(name) {
    const found = this.find(name);
    if (found === null) throw new Error(`the page carries no weights called ${name}`);
    return found;
  }

  /** @param {string} name @returns {Tensor | null} null where the model has none, as of a bias */
  find(name) {
    const entry = this.entries.get(name);
    if (entry === undefined) return null;
    if (!this.decoded.has(name)) this.decoded.set(name, new Tensor(decoded(entry, this.bytes), entry.shape));
    return this.decoded.get(name);
  }
}

/** @param {ArrayEntry} entry @param {Uint8Array} bytes @returns {Float32Array} */
function decoded(entry, bytes) {
  const size = entry.shape.reduce((product, length) => product * length, 1);
  const view = (Kind, offset, count) =>
    new Kind(bytes.buffer.slice(bytes.byteOffset + offset, bytes.byteOffset + offset + count * Kind.BYTES_PER_ELEMENT));
  if (entry.dtype === "float32") return view(Float32Array, entry.offset, size);
  if (entry.dtype === "float16") return from_float16(view(Uint16Array, entry.offset, size));
  const width = entry.shape[1];
  const scales = view(Float32Array, entry.scales, entry.shape[entry.axis]);
  const levels = view(Int8Array, entry.offset, size);
  const scale = entry.axis === 0 ? (at) => scales[Math.floor(at / width)] : (at) => scales[at % width];
  return Float32Array.from(levels, (level, at) => level * scale(at));
}

/**
 * IEEE half precision to float32: a sign, five bits of exponent, ten of the fraction.
 * @param {Uint16Array} halves
 * @returns {Float32Array}
 */
export function from_float16(halves) {
  const powers = Float64Array.from({ length: 32 }, (_, exponent) => 2 ** (Math.max(exponent, 1) - 25));
  const floats = new Float32Array(halves.length);
  for (let at = 0; at < halves.length; at++) {
    const half = halves[at];
    const exponent = (half >> 10) & 31;
    const fraction = (half & 1023) + (exponent === 0 ? 0 : 1024);
    const size = exponent === 31 ? (half & 1023 ? NaN : Infinity) : fraction * powers[exponent];
    floats[at] = half & 0x8000 ? -size : size;
  }
  return floats;
}

/** @param {string} text in base64 @returns {Uint8Array} */
export function from_base64(text) {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}
