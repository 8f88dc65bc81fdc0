"""Products with int8 weights on a CPU, each weight read once, where XLA's library lays them out anew for every product.

The kernel (`code/int8.py`) takes weights that were laid out for it once: `Prepacked`.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import jax.numpy as jnp

from plainformer.equations.int8 import GROUP, MIDDLE, Weight
from plainformer.kernels.cpu.ffi import call, result
from plainformer.shapes import Array, Float, Int


class Prepacked(NamedTuple):
    """int8 weights laid out for the kernel: 64 outputs together, their weights for two or four inputs at a time.

    Zeros fill them up. `start` is what each sum starts with, `scale` and `bias` are applied to it at the end.
    """

    weight: Int[Array, "groups parts group together"]
    start: Int[Array, " filled"]
    scale: Float[Array, " filled"]
    bias: Float[Array, " filled"]
    d_in: int
    d_out: int

    @property
    def input_bits(self) -> int:
        """To how many bits the inputs of a product are rounded."""
        return 32 // self.weight.shape[3]


def prepack(
    weight: Weight, scale: Float[Array, " d_out"], bias: Float[Array, " d_out"] | None, *, input_bits: Literal[8, 16]
) -> Prepacked:
    """Weights as `equations.int8.to_int8` gives them, laid out for the kernel."""
    d_out, d_in = weight.shape
    missing, together = -d_out % GROUP, 32 // input_bits
    filled = jnp.pad(weight, ((0, missing), (0, -d_in % together)))
    packed = filled.reshape(-1, GROUP, filled.shape[1] // together, together).transpose(0, 2, 1, 3)
    of_middle = MIDDLE if input_bits == 8 else 0
    start = -of_middle * filled.sum(axis=1, dtype=jnp.int32)
    given = jnp.zeros(d_out, jnp.float32) if bias is None else bias.astype(jnp.float32)
    scales, biases = (jnp.pad(one, (0, missing)) for one in (scale.astype(jnp.float32), given))
    return Prepacked(packed, start, scales, biases, d_in, d_out)


def products(tokens: Float[Array, "token d_in"], weights: Sequence[Prepacked]) -> tuple[Float[Array, "token _"], ...]:
    """The products of one input, which is rounded once, with each of the weights, in one call, and their biases.

    They are `equations.int8.matmul_w8a16` or `matmul_w8a8`, where `registry.is_ready("decoding")`. Sums of bytes are
    exact; of sixteen bits they are for 512 inputs, and float32 beyond. A row of NaN gives NaN, at no cost.

    Raises:
        ValueError: no weights, weights of another width than x, or for inputs of different bits.
    """
    if not weights:
        raise ValueError("no weights")
    for weight in weights:  # the kernel would read and write beyond its memory
        if weight.d_in != tokens.shape[-1]:
            raise ValueError(f"inputs of width {tokens.shape[-1]} for weights of width {weight.d_in}")
        if weight.input_bits != weights[0].input_bits:
            raise ValueError(f"weights for inputs of {weights[0].input_bits} bits and of {weight.input_bits}")
    results = [result((len(tokens), weight.d_out)) for weight in weights]
    arguments = [part for weight in weights for part in weight[:4]]
    return tuple(call("product", results, tokens.astype(jnp.float32), *arguments))
