"""Linear maps for inference: weights laid out once, and rounded if wished.

Decoding multiplies few rows by large matrices, again and again, and what takes its time is to bring the weights from
memory. Here each output's weights lie side by side, so that a CPU reads them as they come, where the order of `Linear`
has them rearranged at every product; and in bfloat16 or int8 there are fewer bytes to bring.
"""

from collections.abc import Sequence
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations import int8
from plainformer.kernels.cpu.int8 import Prepacked, prepack, products
from plainformer.shapes import Array, Float, Int

Precision = Literal["float32", "bfloat16", "int8", "w8a8"]

INT8: dict[Precision, Literal[8, 16]] = {"int8": 16, "w8a8": 8}  # and the bits of the inputs of their products
FEW = 32  # rows: up to here the weights are the left factor, which no library rearranges


class QuantizedLinear(eqx.Module):
    """y = x W + b over the last axis, float32, for inference.

    float32: as they are. bfloat16: the weights and, at each product, the inputs are rounded to it. int8: each output's
    weights are rounded to 255 levels of their largest (absmax, per channel), inputs to sixteen bits, so that the
    weights alone lose precision (`equations.int8.matmul_w8a16`). w8a8: inputs (activations) are rounded to 255 levels
    as well, of the largest of their token, and keys and values are kept in float16. Sums are float32, of int8 exact in
    whole or in parts.
    """

    weight: Float[Array, "d_out d_in"] | Int[Array, "d_out d_in"]
    scale: Float[Array, " d_out"] | None
    bias: Float[Array, " d_out"] | None
    precision: Precision = eqx.field(static=True)

    def __init__(
        self, weight: Float[Array, "d_out d_in"], bias: Float[Array, " d_out"] | None, precision: Precision
    ) -> None:
        self.weight, self.scale, self.bias, self.precision = weight, None, bias, precision
        if precision in INT8:
            self.weight, self.scale = int8.to_int8(weight)
        elif precision == "bfloat16":
            self.weight = self.weight.astype(jnp.bfloat16)

    @property
    def input_bits(self) -> int:
        """To how many bits the inputs of a product are rounded."""
        return 16 if self.precision == "bfloat16" else INT8.get(self.precision, 32)

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        tokens = x.reshape(-1, x.shape[-1])
        if self.scale is not None:
            multiply = int8.matmul_w8a16 if self.precision == "int8" else int8.matmul_w8a8
            y = multiply(tokens, self.weight, self.scale)
        elif self.precision == "bfloat16":
            # Two rows at least: XLA's own product of one row is ten times slower than its library's of two.
            rows = jnp.broadcast_to(tokens, (2, tokens.shape[1])) if len(tokens) == 1 else tokens
            y = _product(rows.astype(jnp.bfloat16), self.weight)[: len(tokens)]
        elif len(tokens) <= FEW:
            y = jax.lax.optimization_barrier(_product(self.weight, tokens)).T
        else:
            y = _product(tokens, self.weight)
        if self.bias is not None:
            y = y + self.bias[None, :]
        return y.reshape(*x.shape[:-1], y.shape[-1])


class PrepackedInt8Linear(eqx.Module):
    """`QuantizedLinear` in int8 by a CPU kernel, its weights laid out for that (`kernels.cpu.int8.Prepacked`)."""

    weight: Int[Array, "groups parts group together"]
    start: Int[Array, " filled"]
    scale: Float[Array, " filled"]
    bias: Float[Array, " filled"]
    d_in: int = eqx.field(static=True)
    d_out: int = eqx.field(static=True)

    def __init__(
        self,
        weight: int8.Weight,
        scale: Float[Array, " d_out"],
        bias: Float[Array, " d_out"] | None,
        *,
        input_bits: Literal[8, 16],
    ) -> None:
        packed = prepack(weight, scale, bias, input_bits=input_bits)
        self.weight, self.start, self.scale, self.bias, self.d_in, self.d_out = packed

    @property
    def packed(self) -> Prepacked:
        """The same, as the kernel takes it."""
        return Prepacked(self.weight, self.start, self.scale, self.bias, self.d_in, self.d_out)

    @property
    def input_bits(self) -> int:
        """To how many bits the inputs of a product are rounded."""
        return self.packed.input_bits

    def __call__(self, x: Float[Array, "*axes d_in"]) -> Float[Array, "*axes d_out"]:
        (y,) = self.of_one_input(x, (self,))
        return y

    @staticmethod
    def of_one_input(
        x: Float[Array, "*axes d_in"], maps: Sequence["PrepackedInt8Linear"]
    ) -> tuple[Float[Array, "*axes _"], ...]:
        """Each of these maps of `x`, which is rounded once."""
        found = products(x.reshape(-1, x.shape[-1]), [one.packed for one in maps])
        return tuple(y.reshape(*x.shape[:-1], y.shape[1]) for y in found)


def _product(a: Float[Array, "rows d_in"], b: Float[Array, "outputs d_in"]) -> Float[Array, "rows outputs"]:
    """a bᵀ, summed in float32."""
    return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
