"""The stack of a model whose streams become logits: where it is, and how its last stream is read."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp

from plainformer.errors import InputError
from plainformer.models.encoder import Classifier
from plainformer.models.language_model import LanguageModel
from plainformer.models.parameters import Model
from plainformer.models.transformer import Transformer
from plainformer.nn.norm import Norm
from plainformer.nn.stack import ScannedLayers
from plainformer.shapes import Array, Float, Hidden, Valid

Seen = Mapping[str, Any]
"""The intermediates of `nn.trace.traced`, by their names: arrays of JAX or NumPy."""


class Stack(NamedTuple):
    """A stack of layers in a model.

    prefix: what the names of its intermediates begin with: `decoder/`, `encoder/`, or nothing where there is no other.
    norm: the one at its end, None in a post-norm stack.
    embedding_norm: the one on the sum of the embeddings, as BERT has it.
    """

    prefix: str
    layers: Sequence[Any]
    norm: Norm | None
    embedding_norm: Norm | None = None


def stacks(model: Model) -> list[Stack]:
    """The stacks of a model; the last is the one that its logits are told from.

    Raises:
        InputError: layers are in a loop (`nn.stack.ScannedLayers`).
    """
    if isinstance(model, Transformer):
        found = [Stack(f"{name}/", side.layers, side.norm) for name, side in _sides(model)]
    elif isinstance(model, LanguageModel):
        found = [Stack("", model.layers, model.norm)]
    else:
        found = [Stack("", model.encoder.layers, model.encoder.norm, model.encoder.embedding_norm)]
    if any(isinstance(stack.layers, ScannedLayers) for stack in found):
        raise InputError("layers in a loop cannot be looked into", fix="write them out: nn.stack.unstack_layers(model)")
    return found


def read_out(model: Model, stream: Hidden, valid: Valid | None = None) -> Float[Array, "batch *seq vocab"]:
    """The logits of a stream, taken for the last one: the final norm where there is one, and the output projection.

    Args:
        valid: True on real tokens; a classifier pools over these.

    Raises:
        InputError: a classifier is not told which tokens are real.
    """
    norm = stacks(model)[-1].norm
    return logits_of_hidden(model, stream if norm is None else norm(stream), valid)


def logits_of_hidden(model: Model, hidden: Hidden, valid: Valid | None = None) -> Float[Array, "batch *seq vocab"]:
    """The logits of hidden states. Takes and raises as `read_out`."""
    if not isinstance(model, Classifier):
        return model.project(hidden)
    if valid is None:
        raise InputError("a classifier pools over real tokens", where="valid", fix="say which they are")
    return model.of_hidden(hidden, valid)


def streams(model: Model, seen: Seen) -> list[Hidden]:
    """The stream that the first layer reads, and that after each layer, of the stack that the logits are told from."""
    stack = stacks(model)[-1]
    names = ["embedding/output", *(f"{layer}/output" for layer in range(len(stack.layers)))]
    return [jnp.asarray(seen[stack.prefix + name]) for name in names]


def _sides(model: Transformer) -> list[tuple[str, Any]]:
    return [("encoder", model.encoder), ("decoder", model.decoder)]
