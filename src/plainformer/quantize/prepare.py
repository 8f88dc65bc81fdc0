"""A model made ready for inference: its linear maps, norms, attention and output projection swapped by tree map.

The model knows nothing of it: what stands in the place of a part is called like the part.
"""

from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations import int8
from plainformer.equations.precision import upcast
from plainformer.kernels.cpu import registry
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.embedding import OutputHead
from plainformer.nn.linear import Linear
from plainformer.nn.norm import LayerNorm, RMSNorm
from plainformer.quantize.linear import INT8, Precision, PrepackedInt8Linear, QuantizedLinear
from plainformer.quantize.norm import InferenceNorm
from plainformer.shapes import Array, Float

Model = TypeVar("Model", bound=eqx.Module)
InferenceLinear = QuantizedLinear | PrepackedInt8Linear


def prepare(model: Model, precision: Precision) -> Model:
    """`model` with every `Linear` laid out for inference, and rounded; it can no longer be trained.

    A model that was prepared stays as it is. Its output projection, which may be an embedding's table, becomes an
    `OutputHead`, whose bias of minus infinity says at no cost which rows are no tokens. Where CPU kernels multiply
    (int8 with the extra `cpu`), they compute norms and attention, too; in `w8a8` keys and values are kept in float16.

    Args:
        model: a `Transformer` or a `LanguageModel`.
    """
    whole: Any = model
    if isinstance(whole.output, OutputHead):
        return model
    by_kernel = precision in INT8 and registry.is_ready("decoding")
    prepared = _with_attention(_with_linears(_with_output(model, None), precision, by_kernel), precision, by_kernel)
    prepared = _with_norms(prepared) if by_kernel else prepared
    head = _head(whole.output_weight, getattr(whole, "output_bias", None), whole.output_vocab, precision, by_kernel)
    return _with_output(prepared, OutputHead(head))


def uses_cpu_kernels(model: Any) -> bool:
    """Whether a model was prepared for CPU kernels, which then are there to rank tokens, too."""
    head = getattr(model, "output", None)
    return isinstance(head, OutputHead) and isinstance(head.linear, PrepackedInt8Linear)


def _with_output(model: Model, output: OutputHead | None) -> Model:
    return eqx.tree_at(lambda model: model.output, model, output, is_leaf=lambda part: part is None)


@eqx.filter_jit
def _head(
    output_weight: Float[Array, "d_model rows"],
    bias: Float[Array, " rows"] | None,
    vocab: int,
    precision: Precision,
    by_kernel: bool,
) -> InferenceLinear:
    weight = output_weight.T  # in a program, so that a table is not turned round and back
    if bias is not None:
        bias = upcast(bias)
    if len(weight) > vocab:
        bias = jnp.zeros(len(weight)) if bias is None else bias
        bias = bias.at[vocab:].set(-jnp.inf)
    return _laid_out(weight, bias, precision, by_kernel)


@eqx.filter_jit
def _with_linears(model: Model, precision: Precision, by_kernel: bool) -> Model:
    return jax.tree.map(
        lambda part: _laid_out(part.weight.T, part.bias, precision, by_kernel) if isinstance(part, Linear) else part,
        model,
        is_leaf=lambda part: isinstance(part, Linear),
    )


def _with_attention(model: Model, precision: Precision, by_kernel: bool) -> Model:
    cache_dtype = jnp.float16 if precision == "w8a8" else None

    def of(part: Any) -> Any:
        is_attention = isinstance(part, MultiHeadAttention)
        return part.for_inference(cache_dtype, has_kernels=by_kernel) if is_attention else part

    return jax.tree.map(of, model, is_leaf=lambda part: isinstance(part, MultiHeadAttention))


def _with_norms(model: Model) -> Model:
    def is_norm(part: Any) -> bool:
        return isinstance(part, LayerNorm | RMSNorm)

    return jax.tree.map(lambda part: InferenceNorm(part) if is_norm(part) else part, model, is_leaf=is_norm)


def _laid_out(
    weight: Float[Array, "d_out d_in"], bias: Float[Array, " d_out"] | None, precision: Precision, by_kernel: bool
) -> InferenceLinear:
    if not by_kernel:
        return QuantizedLinear(weight, bias, precision)
    return PrepackedInt8Linear(*int8.to_int8(weight), bias, input_bits=INT8[precision])
