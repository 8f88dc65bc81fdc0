"""A training run small enough to do many times: a model, pairs of ids, an objective."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

from plainformer.data.loader import PairLoader, SpecialIds
from plainformer.data.packing import PackedLoader
from plainformer.models import Transformer, TransformerConfig
from plainformer.objective import TranslationObjective
from plainformer.train.state import TrainState, initial_state

# Few parameters, since a step compiles for seconds: no biases, and norms with scales alone.
PLAIN = TransformerConfig(
    source_vocab=17, target_vocab=19, d_model=12, d_ff=20, heads=2, encoder_layers=1, decoder_layers=1,
    dropout=0.0, norm="rms", bias=False, tie="target-output", pad_vocab_to=1,
)  # fmt: skip
DROPPING = replace(PLAIN, dropout=0.25)
SPECIAL = SpecialIds(source_pad=3, source_eos=4, target_pad=2, target_bos=0, target_eos=1)
KEY = jax.random.key(23)
OBJECTIVE = TranslationObjective(smoothing=0.1)
PAIRS, LONGEST_SOURCE, LONGEST_TARGET, ROWS, ROW_TOKENS = 21, 9, 7, 8, 12


def some_pairs() -> tuple[list[list[int]], list[list[int]]]:
    """The ids of both sides."""
    random = np.random.default_rng(2)

    def sentences(vocab: int, longest: int) -> list[list[int]]:
        lengths = [longest, *random.integers(1, longest, PAIRS - 1)]
        return [random.integers(5, vocab, length).tolist() for length in lengths]

    return sentences(PLAIN.source_vocab, LONGEST_SOURCE), sentences(PLAIN.target_vocab, LONGEST_TARGET)


def make_loader(seed: int = 1) -> PairLoader:
    """Three batches of 8 rows an epoch, three rows of them empty; all of one shape, so that one program does."""
    return PairLoader(
        *some_pairs(), SPECIAL, batch_tokens=ROWS * (LONGEST_SOURCE + 1), buckets=1, seed=seed, multiple=8
    )


def make_packed_loader(seed: int = 1) -> PackedLoader:
    """The same pairs, up to three in a row: two batches of 8 rows an epoch, some rows of the second empty."""
    return PackedLoader(
        *some_pairs(), SPECIAL, batch_tokens=ROWS * ROW_TOKENS, row_tokens=ROW_TOKENS, seed=seed, multiple=8
    )


def fresh_state(config: TransformerConfig, optimizer: optax.GradientTransformation) -> TrainState:
    """A state of its own each time, since a step takes its memory. Drawn by NumPy: nothing is compiled."""
    random = np.random.default_rng(5)
    skeleton = eqx.filter_eval_shape(Transformer, config, key=jax.random.key(0))

    def draw(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if leaf.ndim == 1:  # a norm's scale
            return jnp.asarray(random.uniform(0.5, 1.5, leaf.shape), leaf.dtype)
        return jnp.asarray(random.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype)

    return initial_state(jax.tree.map(draw, skeleton), optimizer)


def arrays(tree: Any) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(tree, eqx.is_array))]


def same(one: Any, other: Any) -> bool:
    """To the bit."""
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(arrays(one), arrays(other), strict=True))
