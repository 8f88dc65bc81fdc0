"""A model without some of its parts, to see what they were good for.

ablate(model, "decoder/2/cross_attention/3")     # one head
ablate(model, "1/self_attention", "1/feed_forward")

A part that is off adds zero to the residual stream; the norms stay. What is off is a change of weights alone, so that
everything that takes a model takes this one, by the same fast path.
"""

from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax.numpy as jnp

from plainformer.errors import InputError
from plainformer.inspect.stack import stacks
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.parameters import Model
from plainformer.models.transformer import Transformer
from plainformer.nn.lora import LowRank

ModelT = TypeVar("ModelT", bound=Model)

ATTENTIONS = "self_attention", "cross_attention"


def ablate(model: ModelT, *names: str) -> ModelT:
    """The model with the named parts off.

    Args:
        names: the heads `decoder/2/cross_attention/3`, sublayers `decoder/2/cross_attention` and
            `decoder/2/feed_forward`, or whole layers `decoder/2`; where a model has one stack, without its name:
            `2/self_attention/3`. `part_names` lists them.

    A sublayer whose heads are all off adds nothing, the bias of its output projection included: that belongs to no
    head.

    Raises:
        InputError: there is no such part.
    """
    off: dict[tuple[str, int], dict[str, set[int]]] = {}
    for name in names:
        for prefix, layer, sublayer, heads in _parts_of(model, name):
            off.setdefault((prefix, layer), {}).setdefault(sublayer, set()).update(heads)
    for (prefix, index), parts in off.items():
        changed = tuple(
            _without(one, parts) if number == index else one for number, one in enumerate(_layers(model, prefix))
        )
        model = eqx.tree_at(lambda whole, prefix=prefix: _layers(whole, prefix), model, changed)
    return model


def part_names(model: Model) -> list[str]:
    """Every name that `ablate` takes: of each layer, then its sublayers, then their heads."""
    found = []
    for stack in stacks(model):
        for number, layer in enumerate(stack.layers):
            name = f"{stack.prefix}{number}"
            found.append(name)
            for sublayer in _sublayers(layer):
                found.append(f"{name}/{sublayer}")
                if sublayer in ATTENTIONS:
                    heads = getattr(layer, sublayer).heads
                    found += [f"{name}/{sublayer}/{head}" for head in range(heads)]
    return found


def _parts_of(model: Model, name: str) -> list[tuple[str, int, str, set[int]]]:
    """What a name means: stack, layer, sublayer and heads, for each sublayer. Raises InputError for an unknown one."""
    for stack in stacks(model):
        layer, *rest = name.removeprefix(stack.prefix).split("/") if name.startswith(stack.prefix) else [""]
        if not (layer.isascii() and layer.isdigit() and int(layer) < len(stack.layers)):
            continue
        index, module = int(layer), stack.layers[int(layer)]
        if not rest:
            return [(stack.prefix, index, sublayer, _heads(module, sublayer)) for sublayer in _sublayers(module)]
        if rest[0] in _sublayers(module) and len(rest) == 1:
            return [(stack.prefix, index, rest[0], _heads(module, rest[0]))]
        if rest[0] in ATTENTIONS and hasattr(module, rest[0]) and len(rest) == 2:
            chosen = {head for head in _heads(module, rest[0]) if str(head) == rest[1]}
            if chosen:
                return [(stack.prefix, index, rest[0], chosen)]
    known = part_names(model)
    fix = f"name a layer, a sublayer or a head, from {known[0]} to {known[-2]}" if known else "it has no layers"
    raise InputError(f"the model has no part {name!r}", fix=fix)


def _sublayers(layer: Any) -> list[str]:
    return [name for name in (*ATTENTIONS, "feed_forward") if hasattr(layer, name)]


def _heads(layer: Any, sublayer: str) -> set[int]:
    """The heads of an attention; of a feed-forward one, which is all of it."""
    return set(range(getattr(layer, sublayer).heads)) if sublayer in ATTENTIONS else {0}


def _without(layer: Any, parts: dict[str, set[int]]) -> Any:
    """The layer with heads of its sublayers off."""
    for sublayer, heads in parts.items():
        field = "output" if sublayer in ATTENTIONS else "outer"
        linear = getattr(getattr(layer, sublayer), field)
        layer = eqx.tree_at(
            lambda whole, sublayer=sublayer, field=field: getattr(getattr(whole, sublayer), field),
            layer,
            _silenced(linear, len(_heads(layer, sublayer)), heads),
            is_leaf=lambda part, linear=linear: part is linear,
        )
    return layer


def _silenced(linear: Any, count: int, heads: set[int]) -> Any:
    """A projection of `count` heads side by side that adds nothing for some of them; where for none, no bias."""
    weight, bias = linear.weight, linear.bias
    base = linear.base if isinstance(linear, LowRank) else linear
    kept = jnp.array([head not in heads for head in range(count)])
    rows = jnp.repeat(kept, weight.shape[0] // count)
    base = eqx.tree_at(lambda one: one.weight, base, jnp.where(rows[:, None], weight, jnp.zeros_like(weight)))
    if bias is None or len(heads) < count:
        return base
    return eqx.tree_at(lambda one: one.bias, base, jnp.zeros_like(bias))


def _layers(model: Model, prefix: str) -> Sequence[Any]:
    if isinstance(model, Transformer):
        return (model.encoder if prefix == "encoder/" else model.decoder).layers
    return model.encoder.layers if isinstance(model, MaskedLanguageModel | Classifier) else model.layers
