"""The fast twin of `linear.Linear` for decoding: weights laid out once, and rounded if wished.

Decoding multiplies few rows by large matrices, again and again, and what takes its time is to bring the weights from
memory. Here each output's weights lie side by side, so that a processor reads them as they come, where the order of
`Linear` has them rearranged at every product; and in bfloat16 or int8 there are fewer bytes to bring.
"""

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.machine import on_one_accelerator
from plainformer.nn import foreign, int8
from plainformer.nn.linear import Linear, in_one_product
from plainformer.nn.norm import LayerNorm, NormForDecoding, RMSNorm
from plainformer.nn.precision import upcast
from plainformer.shapes import Array, Float, Int

Precision = Literal["float32", "bfloat16", "int8", "w8a8"]

INT8: dict[Precision, Literal[8, 16]] = {"int8": 16, "w8a8": 8}  # and the bits of the inputs of their products
FEW = 32  # rows: up to here the weights are the left factor, which no library rearranges

Model = TypeVar("Model", bound=eqx.Module)


class LaidOut(eqx.Module):
    """y = x W + b over the last axis, float32, for weights that only decode.

    float32: as they are. bfloat16: the weights and, at each product, the inputs are rounded to it. int8: each output's
    weights are rounded to 255 levels of their largest (absmax, per channel), inputs to sixteen bits, so that the
    weights alone lose precision (`nn/int8.py`). w8a8: inputs (activations) are rounded to 255 levels as well, of the
    largest of their token, and keys and values are kept in float16. Sums are float32, of int8 exact in whole or in
    parts.
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
            multiply = int8.by_digits if self.precision == "int8" else int8.by_bytes
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


ForDecoding = LaidOut | int8.Grouped


def of_one_input(
    x: Float[Array, "*axes d_in"], *maps: Callable[[Float[Array, "*axes d_in"]], Float[Array, "*axes _"]]
) -> tuple[Float[Array, "*axes _"], ...]:
    """Each of these maps of `x` (`Linear` or what stands for one), in one product where that is faster."""
    grouped = [one for one in maps if isinstance(one, int8.Grouped)]
    if len(grouped) == len(maps):
        return int8.products(x, grouped)
    linear = [one for one in maps if isinstance(one, Linear)]
    if len(linear) == len(maps) and on_one_accelerator(x):
        return in_one_product(x, linear)
    return tuple(one(x) for one in maps)


def lay_out(model: Model, precision: Precision, bias: Float[Array, " rows"] | None, vocab: int) -> Model:
    """The model with every `Linear` laid out, to be used for decoding only. One that is laid out stays as it is.

    Where machine code multiplies, it computes norms, too.

    Its `output` becomes what computes all of its logits from hidden states: by its `output_weight`, which may be an
    embedding's table, and a bias.

    Args:
        bias: that of each row of logits, if it has one.
        vocab: how many rows are tokens. That the others are none, a bias of minus infinity says at no cost.
    """
    if isinstance(getattr(model, "output", None), ForDecoding):
        return model
    machine_code = precision in INT8 and foreign.are_available()
    laid = _with_linears_laid_out(_with_output(model, None), precision, machine_code)
    laid = _with_norms_in_machine_code(laid) if machine_code else laid
    return _with_output(laid, _output_laid_out(model, bias, vocab, precision, machine_code))


def _with_output(model: Model, output: ForDecoding | None) -> Model:
    return eqx.tree_at(lambda model: model.output, model, output, is_leaf=lambda part: part is None)


@eqx.filter_jit
def _output_laid_out(
    model: Any, bias: Float[Array, " rows"] | None, vocab: int, precision: Precision, machine_code: bool
) -> ForDecoding:
    weight = model.output_weight.T  # in a program, so that a table is not turned round and back
    if bias is not None:
        bias = upcast(bias)
    if len(weight) > vocab:
        bias = jnp.zeros(len(weight)) if bias is None else bias
        bias = bias.at[vocab:].set(-jnp.inf)
    return _laid_out(weight, bias, precision, machine_code)


@eqx.filter_jit
def _with_linears_laid_out(model: Model, precision: Precision, machine_code: bool) -> Model:
    return jax.tree.map(
        lambda part: _laid_out(part.weight.T, part.bias, precision, machine_code) if isinstance(part, Linear) else part,
        model,
        is_leaf=lambda part: isinstance(part, Linear),
    )


def _with_norms_in_machine_code(model: Model) -> Model:
    def is_norm(part: Any) -> bool:
        return isinstance(part, LayerNorm | RMSNorm)

    return jax.tree.map(lambda part: NormForDecoding(part) if is_norm(part) else part, model, is_leaf=is_norm)


def _laid_out(
    weight: Float[Array, "d_out d_in"], bias: Float[Array, " d_out"] | None, precision: Precision, machine_code: bool
) -> ForDecoding:
    if not machine_code:
        return LaidOut(weight, bias, precision)
    return int8.Grouped(*int8.to_int8(weight), bias, input_bits=INT8[precision])


def _product(a: Float[Array, "rows d_in"], b: Float[Array, "outputs d_in"]) -> Float[Array, "rows outputs"]:
    """a bᵀ, summed in float32."""
    return jax.lax.dot_general(a, b, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32)
