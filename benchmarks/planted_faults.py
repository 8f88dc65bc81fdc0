"""Are planted faults named? NaN and infinity at sites of a translator and a language model: parameters, operations
forward and backward, data. Prints one line a site, and how many were named rightly.

    python benchmarks/planted_faults.py [SEED]
"""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import equinox as eqx
import jax
import numpy as np

from plainformer.data.block import Blocks
from plainformer.data.loader import Batch
from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.models.parameters import named_parameters
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.feed_forward import FeedForward
from plainformer.nn.layer import EncoderLayer
from plainformer.objective import LanguageObjective, TranslationObjective
from plainformer.train.capsule import names_of_arguments, said
from plainformer.train.non_finite import Site, first_non_finite
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_unguarded

ROWS, SOURCE, TARGET, VOCAB = 4, 7, 5, 23
OPTIMIZER = make_optimizer(constant(peak=0.01), clip=1.0)
KEY = jax.random.key(1)


def translator() -> tuple[Any, Any, Any]:
    config = TransformerConfig(
        source_vocab=VOCAB,
        target_vocab=VOCAB,
        d_model=12,
        d_ff=20,
        heads=2,
        encoder_layers=2,
        decoder_layers=2,
        dropout=0.0,
    )
    chance = np.random.default_rng(3)
    source, *targets = (ids(chance, 4, length) for length in (SOURCE, TARGET, TARGET))
    batch = Batch(source, source > 0, targets[0], targets[1], targets[0] > 0)
    return Transformer(config, key=jax.random.key(0)), batch, TranslationObjective(0.1)


def ids(chance: np.random.Generator, least: int, length: int) -> np.ndarray:
    return chance.integers(least, VOCAB, (ROWS, length)).astype(np.int32)


def language_model() -> tuple[Any, Any, Any]:
    config = LanguageModelConfig(vocab=VOCAB, context=TARGET, layers=3, d_model=12, d_ff=20, heads=2, dropout=0.0)
    chance = np.random.default_rng(4)
    return (
        LanguageModel(config, key=jax.random.key(0)),
        Blocks(ids(chance, 0, TARGET), ids(chance, 0, TARGET), np.ones((ROWS, TARGET), bool)),
        LanguageObjective(),
    )


def look(model: Any, batch: Any, objective: Any) -> Site | None:
    unguarded = make_unguarded(objective, OPTIMIZER, StepSettings())
    arrays, rest = eqx.partition((initial_state(model, OPTIMIZER), batch, KEY), eqx.is_array)

    def of(arrays: Any) -> Any:
        return eqx.filter(unguarded(*eqx.combine(arrays, rest)), eqx.is_array)

    named = {name: array for name, array in batch._asdict().items() if array is not None}
    found = first_non_finite(of, arrays, names=names_of_arguments(arrays[0], named))
    return found if isinstance(found, Site) else None


@jax.custom_vjp
def poisoned_backward(x: jax.Array, value: float) -> jax.Array:
    return x


def _forward(x: jax.Array, value: float) -> Any:
    return x, value


def _backward(value: float, gradient: jax.Array) -> Any:
    return gradient.at[(0,) * gradient.ndim].set(value), None


poisoned_backward.defvjp(_forward, _backward)


@contextmanager
def planted(kind: type, call: int, value: float, direction: str) -> Iterator[None]:
    """The `call`-th call of a class of modules gives a number that is not finite, forward or in its gradient."""
    usual, count = kind.__call__, [0]

    def poisoned(self: Any, *args: Any, **kwargs: Any) -> Any:
        result = usual(self, *args, **kwargs)
        count[0] += 1
        if count[0] - 1 != call:
            return result
        if direction == "forward":
            return result.at[(0,) * result.ndim].set(value)
        return poisoned_backward(result, value)

    with patch.object(kind, "__call__", poisoned):
        yield


def sites(chance: np.random.Generator) -> Iterator[tuple[str, Callable[[], Site | None], Callable[[Site], bool]]]:
    """What is planted, how to look, and whether what was found is right."""
    values = np.nan, np.inf, -np.inf
    for make in (translator, language_model):
        model, batch, objective = make()
        names = list(named_parameters(model))
        for name in chance.choice(names, 8, replace=False):
            value = values[chance.integers(3)]
            yield _parameter(model, batch, objective, str(name), value)
        field = "source" if make is translator else "ids"
        for _ in range(2):
            yield _data(model, batch, objective, field, chance)
        for direction in ("forward", "backward"):
            for kind, call, scope in (
                (FeedForward, 1, "encoder/1/feed_forward" if make is translator else "1/feed_forward"),
                (MultiHeadAttention, 0, "encoder/0/self_attention" if make is translator else "0/self_attention"),
                (
                    MultiHeadAttention,
                    3 if make is translator else 2,
                    "decoder/0/cross_attention" if make is translator else "2/self_attention",
                ),
                (
                    FeedForward,
                    3 if make is translator else 2,
                    "decoder/1/feed_forward" if make is translator else "2/feed_forward",
                ),
                (EncoderLayer, 1, "encoder/1" if make is translator else "1"),
            ):
                yield _operation(make(), kind, call, values[chance.integers(3)], direction, scope)


def _parameter(model: Any, batch: Any, objective: Any, name: str, value: float) -> Any:
    leaves, structure = jax.tree.flatten(model)
    at = list(named_parameters(model)).index(name)
    floats = [index for index, leaf in enumerate(leaves) if eqx.is_inexact_array(leaf)]
    row = 5 if "embedding" in name else 0  # a token that occurs
    place = (row, *(0,) * (leaves[floats[at]].ndim - 1)) if leaves[floats[at]].ndim else ()
    if "embedding" in name:
        leaves[floats[at]] = leaves[floats[at]].at[:, 0].set(value)
    else:
        leaves[floats[at]] = leaves[floats[at]].at[place].set(value)
    spoilt = jax.tree.unflatten(structure, leaves)
    return f"{value} in {name}", lambda: look(spoilt, batch, objective), lambda site: site.given == f"parameter {name}"


def _data(model: Any, batch: Any, objective: Any, field: str, chance: np.random.Generator) -> Any:
    ids = getattr(batch, field).copy()
    ids[chance.integers(ROWS), chance.integers(ids.shape[1])] = 9_999
    spoilt = batch._replace(**{field: ids})

    def is_named(site: Site) -> bool:
        return f"batch {field}" in said(site)

    return f"an id beyond the table in {field}", lambda: look(model, spoilt, objective), is_named


def _operation(made: Any, kind: type, call: int, value: float, direction: str, scope: str) -> Any:
    def run() -> Site | None:
        with planted(kind, call, value, direction):
            return look(*made)

    def is_named(site: Site) -> bool:
        return site.direction == direction and site.scope.startswith(scope)

    return f"{value} {direction} in {scope}", run, is_named


def main() -> None:
    chance = np.random.default_rng(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
    named, count, slowest = 0, 0, 0.0
    for what, run, is_named in sites(chance):
        began = time.process_time()
        site = run()
        slowest = max(slowest, time.process_time() - began)
        right = site is not None and is_named(site)
        named, count = named + right, count + 1
        print(f"{'named ' if right else 'MISSED'}  {what}: {said(site) if site else 'nothing'}"[:260], flush=True)
    print(f"{named} of {count} named, the slowest in {slowest:.1f} s of CPU time")


if __name__ == "__main__":
    main()
