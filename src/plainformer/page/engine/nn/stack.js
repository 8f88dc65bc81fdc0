/** N identical layers, one after the other (`nn.stack`). */

import { NO_TRACE } from "./trace.js";

/**
 * The stream after all layers; `context` is what each of them is told besides, a mask and a memory.
 * @param {import("../tensor.js").Tensor} x (seq, d_model)
 */
export function run_layers(layers, x, context, trace = NO_TRACE) {
  layers.forEach((layer, index) => {
    x = layer.call(x, ...context, trace.scope(index));
  });
  return x;
}

/**
 * The stream of new tokens after all layers, which write them to their caches. `context` has, for each further argument
 * of a layer's `extend`, one value for each layer.
 */
export function extend_layers(layers, x, caches, slots, context, trace = NO_TRACE) {
  layers.forEach((layer, index) => {
    const own = context.map((values) => values[index]);
    x = layer.extend(x, caches[index], slots, ...own, trace.scope(index));
  });
  return x;
}
