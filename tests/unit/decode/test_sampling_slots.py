"""Rows that choose by settings of their own, in one program: each as `sample` chooses by these."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode.sampling import AS_IS, FEW, Choices, sample, sample_each
from plainformer.decode.settings import SamplingSettings

VOCAB = 211
TOGETHER = jax.jit(sample_each)
WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0, "top_k": 3},
    {"temperature": 1e-40},
    {"min_p": 0.1, "temperature": 1.5},
    {"top_k": 1},
    {"top_k": FEW, "temperature": 0.7},
    {"top_k": 5, "top_p": 0.6, "min_p": 0.05},
    {"top_k": FEW + 1},
    {"top_k": 100 * VOCAB},
    {"top_p": 0.4, "temperature": 2.0},
    {"top_p": 1e-40},
    {"top_p": 0.9, "min_p": 0.01},
    {"min_p": 1.0},
]


def chosen(ways: list[dict[str, Any]], logits: np.ndarray, keys: Any, active: np.ndarray) -> list[int]:
    own = [Choices.of(SamplingSettings(**way), VOCAB) for way in ways]
    choices = jax.tree.map(lambda *rows: jnp.concatenate(rows), *own)
    return TOGETHER(jnp.asarray(logits), keys, choices, jnp.asarray(active)).tolist()


@pytest.mark.parametrize("few", [WAYS, WAYS[:7], WAYS[:4]], ids=len)
def test_every_row_chooses_as_if_all_had_its_settings(few: list[dict[str, Any]]) -> None:
    """With ties among the logits, some that are never drawn, and however many are ranked for others."""
    draw = np.random.default_rng(len(few))
    for turn in range(8):
        logits = draw.normal(size=(len(few), VOCAB)).astype(np.float32) * 4.0
        logits = np.round(logits, 1) if turn % 2 else logits
        logits[:, draw.integers(VOCAB, size=9)] = -np.inf
        keys = jax.random.split(jax.random.key(turn), len(few))
        expected = [
            int(sample(jnp.asarray(logits[row : row + 1]), keys[row : row + 1], SamplingSettings(**way))[0])
            for row, way in enumerate(few)
        ]
        assert chosen(few, logits, keys, np.ones(len(few), bool)) == expected


def test_a_row_with_nan_gives_no_token_and_leaves_the_others_alone() -> None:
    logits = np.random.default_rng(1).normal(size=(4, VOCAB)).astype(np.float32)
    keys, ways = jax.random.split(jax.random.key(3), 4), [{}, {"temperature": 0.0}, {"top_p": 0.5}, {"top_k": 4}]
    before, all_of_them = chosen(ways, logits, keys, np.ones(4, bool)), np.ones(4, bool)
    for row in range(4):
        wrong = logits.copy()
        wrong[row, 7] = np.nan
        expected = [VOCAB if other == row else token for other, token in enumerate(before)]
        assert chosen(ways, wrong, keys, all_of_them) == expected


def test_what_nobody_waits_for_is_not_ranked() -> None:
    assert int(Choices.of(SamplingSettings(temperature=0.0, top_p=0.5), VOCAB).knows[0]) == AS_IS
    logits = np.random.default_rng(1).normal(size=(2, VOCAB)).astype(np.float32)
    keys = jax.random.split(jax.random.key(3), 2)
    both = chosen([{}, {"top_p": 0.5}], logits, keys, np.array([True, False]))
    assert both[0] == chosen([{}, {}], logits, keys, np.ones(2, bool))[0]
