"""Toy models whose every prediction is written down in a table.

One has the interface of a Transformer: its logits hang on the source and on the whole prefix. The others are language
models without layers, whose logits hang on the last token alone, or on its place alone.
"""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models.config import LanguageModelConfig, TransformerConfig
from plainformer.models.language_model import LanguageModel
from plainformer.nn.cache import next_slots

# Numbers that no code may take for granted.
BOS, EOS, PAD = 1, 4, 2
ROWS = 997


class State(NamedTuple):
    source: jax.Array  # never changes, as the memory's keys and values
    tokens: jax.Array  # what was consumed, at its place
    positions: jax.Array  # where it stood
    length: jax.Array


class Toy(eqx.Module):
    """Next-token logits are row `hash(source, prefix)` of a table, so a beam row mixed up with another shows."""

    table: jax.Array
    on_step: Callable[[], None] | None = eqx.field(static=True)
    config: TransformerConfig = eqx.field(static=True)

    def encode(self, source, source_valid, /):
        return jnp.where(source_valid, source + 1, 0)[:, :, None].astype(jnp.float32)

    def start(self, memory, source_valid, places, /):
        factors = 1 + jnp.arange(memory.shape[1])
        source = (memory[:, :, 0].astype(jnp.int32) * factors[None, :]).sum(axis=1) % ROWS
        nothing = jnp.zeros((len(source), places), jnp.int32)
        return State(source, nothing, nothing, jnp.zeros_like(source))

    def extend(self, ids, state, at=None, /):
        """The prefix of a token is what it may look at, in the order of positions."""
        if self.on_step is not None:
            jax.debug.callback(self.on_step)
        at = next_slots(state.length[0], ids.shape[1], state.tokens.shape[1]) if at is None else at
        tokens = jax.lax.dynamic_update_slice(state.tokens, ids, (0, at.slot))
        stand = jnp.broadcast_to(at.positions, ids.shape)
        positions = jax.lax.dynamic_update_slice(state.positions, stand, (0, at.slot))
        allowed = at.mask.materialise()
        assert allowed is not None
        seen = jnp.broadcast_to(allowed[:, 0], (*ids.shape, tokens.shape[1]))

        def longer(position, prefix):
            here = seen & (positions == position)[:, None, :]
            token = jnp.where(here, tokens[:, None, :], 0).sum(axis=2)
            return jnp.where(here.any(axis=2), (prefix * 31 + token * 7 + 3) % ROWS, prefix)

        prefix = jax.lax.fori_loop(0, at.positions.max() + 1, longer, jnp.zeros_like(ids))
        after = State(state.source, tokens, positions, state.length + ids.shape[1])
        return self.table[(state.source[:, None] * 17 + prefix) % ROWS], after

    def grow(self, state, slots, /):
        more = ((0, 0), (0, slots))
        return state._replace(tokens=jnp.pad(state.tokens, more), positions=jnp.pad(state.positions, more))

    def turn(self, state, by, /):
        roll = jax.vmap(jnp.roll)
        return state._replace(tokens=roll(state.tokens, by), positions=roll(state.positions, by))

    def __call__(self, source, source_valid, target, /):
        state: Any = self.start(self.encode(source, source_valid), source_valid, target.shape[1])
        return self.extend(target, state)[0]


def make_toy(
    vocab: int = 7,
    *,
    seed: int = 0,
    eos_bonus: float = 0.0,
    padding: int = 0,
    table: np.ndarray | None = None,
    on_step: Callable[[], None] | None = None,
    **config: Any,
) -> Toy:
    """A random table unless one is given. `padding` rows are no tokens; `eos_bonus` makes outputs brief."""
    if table is None:
        table = 2.0 * np.random.default_rng(seed).normal(size=(ROWS, vocab))
        table[:, EOS] += eos_bonus
    rows = np.full((ROWS, vocab + padding), -np.inf, np.float32)
    rows[:, :vocab] = table
    sizes = {"d_model": 6, "heads": 2, "tie": "none", "source_vocab": 19, "target_vocab": vocab}
    return Toy(jnp.asarray(rows), on_step, TransformerConfig(**{**sizes, **config}))


def next_logits(model: Toy, source: list[int]) -> Callable[[list[int]], np.ndarray]:
    """What the toy says about one source, in plain Python."""
    table = np.asarray(model.table)
    place = 17 * (sum((1 + i) * (1 + token) for i, token in enumerate([*source, EOS])) % ROWS)

    def after(ids: list[int]) -> np.ndarray:
        prefix = 0
        for token in [BOS, *ids]:
            prefix = (prefix * 31 + token * 7 + 3) % ROWS
        return table[(place + prefix) % ROWS].copy()

    return after


def make_bigram(table: Any, *, context: int = 99, **config: Any) -> LanguageModel:
    """After token i the logits are row i of `table` (vocab, vocab), wherever it stands."""
    return _without_layers(np.asarray(table), context, position="rotary", **config)


def make_script(script: Any, vocab: int, *, context: int = 99, **config: Any) -> LanguageModel:
    """A text that is at place p, whatever it says, goes on with token `script[p + 1]`, as good as certainly."""
    table = np.zeros((context, vocab))
    table[range(len(script) - 1), script[1:]] = 50.0
    return _without_layers(table, context, position="learned", **config)


def _without_layers(table: np.ndarray, context: int, **config: Any) -> LanguageModel:
    """What is looked up, tokens or places, is a row of the identity, and the output projection is the table."""
    width, vocab = table.shape
    sizes = {"d_model": width, "heads": 1, "d_k": 2, "d_v": 2, "layers": 0, "norm_position": "post"}
    sizes |= {"vocab": vocab, "tie": False, "context": context}
    model = LanguageModel(LanguageModelConfig(**{**sizes, **config}), key=jax.random.key(0))
    rows = model.config.rows(vocab)
    output = jnp.zeros((width, rows)).at[:, :vocab].set(table)
    model = eqx.tree_at(lambda m: m.output.weight, model, output)
    if model.position is None:
        return eqx.tree_at(lambda m: m.embedding.table, model, jnp.eye(rows, width))
    tables = jnp.zeros((rows, width)), jnp.eye(width)
    return eqx.tree_at(lambda m: (m.embedding.table, m.position.table), model, tables)


@pytest.fixture(scope="session")
def toys() -> SimpleNamespace:
    """`toys.make(...)` makes a toy; `toys.ids` are its special tokens, as keyword arguments; `toys.next_logits`.

    `toys.bigram` and `toys.script` are the language models.
    """
    return SimpleNamespace(
        make=make_toy,
        next_logits=next_logits,
        ids={"bos": BOS, "eos": EOS, "pad": PAD},
        bigram=make_bigram,
        script=make_script,
    )
