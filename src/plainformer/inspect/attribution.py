"""Direct attribution: what each part of a model added to a logit by the residual stream (Elhage et al. 2021).

logits, seen = traced(model)(ids)
found = attribution(model, seen, tokens)     # tokens: at each position, the id whose logit is explained
found.parts["1/self_attention/0"]            # (batch, seq): what head 0 of layer 1 added to it there
found.total()                                # (batch, seq): the logit

The residual stream is a sum, and the output projection is linear in it, so a logit is a sum of what embeddings, heads
and feed-forwards wrote into the stream. Two things between are not linear, and are taken at the values that ran:

- A norm divides by the size of its input. Its scale, 1 / sqrt(variance + eps), is held at what it was; what remains is
  linear. A pre-norm stack has one such norm in this path, at its end. A post-norm stack has one after every sublayer,
  so that what an early layer wrote is scaled by every later norm; with other inputs these scales would be others.
- The layer before the projection of some encoders has an activation: a(x) = x · (a(x) / x), the quotient held.

So the parts sum to the logit exactly, but for roundings. They say what was added directly: what a head did by changing
what later layers read is counted with those layers. Sums are of float64, on the host.
"""

from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.equations.activations import ACTIVATIONS
from plainformer.errors import InputError
from plainformer.inspect.stack import Seen, Stack, stacks, streams
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.parameters import Model
from plainformer.models.transformer import Transformer
from plainformer.nn.norm import LayerNorm, Norm
from plainformer.nn.pooling import FirstToken
from plainformer.nn.residual import PostNorm

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Attribution:
    """What a logit is the sum of.

    Attributes:
        parts: by name, from the embeddings to the output's bias, (batch, seq): heads (`decoder/0/cross_attention/3`,
            as `ablate` names them), feed-forwards (`decoder/0/feed_forward`), `…/bias` of an attention's projection,
            `…/norm` for the bias of a norm, `embedding/…`, `output/bias`. A classifier has one logit a text, of which
            `seq` says from which position it came; what belongs to no position is (batch, 1).
    """

    parts: dict[str, Values] = field(default_factory=dict)

    def total(self, *, over_positions: bool = False) -> Values:
        """The sum of all parts: the logit, (batch, seq); of a classifier ask for the sum `over_positions`, (batch,)."""
        if over_positions:
            return sum((part.sum(axis=1) for part in self.parts.values()), np.zeros(1))
        return sum(self.parts.values(), np.zeros((1, 1)))

    def at(self, position: int, text: int = 0) -> dict[str, float]:
        """Every part at one position, in the order of the model; what belongs to no position is in all of them."""
        return {name: float(part[text, position if part.shape[1] > 1 else 0]) for name, part in self.parts.items()}

    def strongest(self, position: int, count: int = 10) -> list[tuple[str, float]]:
        """The parts of the first text that weigh most at a position, with their sign, the largest first."""
        return sorted(self.at(position).items(), key=lambda item: -abs(item[1]))[:count]


def attribution(model: Model, seen: Seen, tokens: Any, valid: Any = None) -> Attribution:
    """The parts of the logit of a token, at every position.

    Args:
        seen: what `traced` gave beside the logits.
        tokens: ids (batch, seq), at each position the one that is explained; of a classifier labels (batch,).
        valid: True on real tokens (batch, seq); a classifier pools over these.

    Raises:
        InputError: a classifier is not told which tokens are real.
    """
    stack, found = stacks(model)[-1], Attribution()
    direction = _of_output(model, seen, np.asarray(tokens), valid, found)
    numbers = reversed(list(enumerate(stack.layers)))
    if stack.norm is not None:
        last = streams(model, seen)[-1]
        direction = _through_norm(stack.norm, _numbers(last), direction, f"{stack.prefix}norm", found)
    for number, layer in numbers:
        direction = _through_layer(layer, f"{stack.prefix}{number}", seen, stack, direction, found)
    _add_embeddings(stack, seen, direction, found)
    return Attribution(dict(reversed(found.parts.items())))


# ---------------------------------------------------------------------------------------------------------------------
# From the logit down: `direction` (batch, seq, d_model) is by how much the logit grows with each feature of the stream
# ---------------------------------------------------------------------------------------------------------------------


def _of_output(model: Model, seen: Seen, tokens: NDArray[Any], valid: Any, found: Attribution) -> Values:
    """The direction of a token's logit in the hidden states."""
    if isinstance(model, Classifier):
        return _of_label(model, seen, tokens, valid, found)
    direction = _numbers(model.output_weight).T[tokens]
    bias = None if not isinstance(model, Transformer | MaskedLanguageModel) else model.output_bias
    if bias is not None:
        found.parts["output/bias"] = _numbers(bias)[tokens]
    if not isinstance(model, MaskedLanguageModel) or model.transform is None:
        return direction
    transform, hidden = model.transform, jnp.asarray(seen["hidden"])
    before = transform.dense(hidden)
    after = ACTIVATIONS[transform.activation](before)
    direction = _through_norm(transform.norm, _numbers(after), direction, "transform/norm", found)
    return _through_dense(transform.dense, before, after, direction, "transform/bias", found)


def _of_label(model: Classifier, seen: Seen, labels: NDArray[Any], valid: Any, found: Attribution) -> Values:
    """The direction of a label's logit in the hidden states, over which the classifier pools."""
    if valid is None:
        raise InputError("a classifier pools over real tokens", where="valid", fix="say which they are")
    direction = _numbers(model.output.weight).T[labels]  # (batch, d_model)
    if model.output.bias is not None:
        found.parts["output/bias"] = _numbers(model.output.bias)[labels][:, None]
    hidden = jnp.asarray(seen["hidden"])
    whole = np.zeros(hidden.shape)
    if isinstance(model.pooling, FirstToken):
        before = model.pooling.dense(hidden[:, :1])
        first = direction[:, None]
        whole[:, :1] = _through_dense(model.pooling.dense, before, jnp.tanh(before), first, "pooling/bias", found)
        return whole
    real = np.asarray(valid)
    whole[:] = direction[:, None] / np.maximum(real.sum(axis=1), 1)[:, None, None]
    return whole * real[:, :, None]


def _through_layer(layer: Any, name: str, seen: Seen, stack: Stack, direction: Values, found: Attribution) -> Values:
    """The direction in the stream that a layer reads, and what its sublayers added along that of its output."""
    sublayers = [part for part in ("self_attention", "cross_attention", "feed_forward") if hasattr(layer, part)]
    number = int(name.removeprefix(stack.prefix))
    before = f"{stack.prefix}{number - 1}/output" if number else f"{stack.prefix}embedding/output"
    inputs = [before, *(f"{name}/{part}/residual" for part in sublayers[:-1])]
    for part, residual, read in reversed(list(zip(sublayers, layer.residuals, inputs, strict=True))):
        own = f"{name}/{part}"
        output = seen[f"{own}/output"]
        if isinstance(residual, PostNorm):
            whole = _numbers(seen[read]) + _numbers(output)
            direction = _through_norm(residual.norm, whole, direction, f"{own}/norm", found)
        if part == "feed_forward":
            found.parts[own] = _along(output, direction)
        else:
            _add_heads(getattr(layer, part), own, seen, direction, found)
    return direction


def _add_heads(attention: Any, name: str, seen: Seen, direction: Values, found: Attribution) -> None:
    """What each head of an attention added: its values projected by its own rows of the output projection."""
    heads = _numbers(seen[f"{name}/heads"])  # (batch, heads, seq, d_v)
    rows = _numbers(attention.output.weight).reshape(attention.heads, -1, direction.shape[-1])
    if attention.output.bias is not None:
        found.parts[f"{name}/bias"] = direction @ _numbers(attention.output.bias)
    for head in reversed(range(attention.heads)):
        found.parts[f"{name}/{head}"] = np.einsum("bsv,bsv->bs", heads[:, head], direction @ rows[head].T)


def _add_embeddings(stack: Stack, seen: Seen, direction: Values, found: Attribution) -> None:
    """What the embeddings added, through a norm on their sum where there is one."""
    names = [f"{stack.prefix}embedding/{part}" for part in ("token", "type", "position")]
    parts = {name: _numbers(seen[name]) for name in names if name in seen}
    if stack.embedding_norm is not None:
        whole = sum(parts.values(), np.zeros((1, 1, 1)))
        direction = _through_norm(stack.embedding_norm, whole, direction, f"{stack.prefix}embedding/norm", found)
    for name, part in reversed(parts.items()):
        found.parts[name] = _along(part, direction)


def _through_norm(norm: Norm, x: Values, direction: Values, name: str, found: Attribution) -> Values:
    """The direction before a norm of `x`, whose scale is held; and what the norm's bias adds."""
    is_centred = isinstance(norm, LayerNorm)
    if isinstance(norm, LayerNorm):
        found.parts[name] = direction @ _numbers(norm.bias)
        x = x - x.mean(axis=-1, keepdims=True)
    scale = 1.0 / np.sqrt(np.square(x).mean(axis=-1, keepdims=True) + norm.eps)
    direction = direction * _numbers(norm.scale) * scale
    return direction - direction.mean(axis=-1, keepdims=True) if is_centred else direction


def _through_dense(
    dense: Any, before: jax.Array, after: jax.Array, direction: Values, name: str, found: Attribution
) -> Values:
    """The direction before after = a(before), before = x W + b, with the quotient of the activation held."""
    x, y = _numbers(before), _numbers(after)
    direction = direction * np.where(x == 0.0, 1.0, y / np.where(x == 0.0, 1.0, x))
    if dense.bias is not None:
        found.parts[name] = direction @ _numbers(dense.bias)
    return direction @ _numbers(dense.weight).T


def _along(added: Any, direction: Values) -> Values:
    return np.einsum("bsd,bsd->bs", np.broadcast_to(_numbers(added), direction.shape), direction)


def _numbers(array: Any) -> Values:
    return np.asarray(array, np.float64)
