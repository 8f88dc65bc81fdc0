"""The vectorised rules against plain Python, and answers worked by hand."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode.constraints import (
    Constraints,
    best_candidates,
    generated_tokens,
    next_logprobs,
    penalise_repetition,
    repeated_ngrams,
    vocabulary_mask,
)
from plainformer.kernels.cpu import registry


def test_a_trigram_may_not_come_again() -> None:
    """1 2 3 1 2: a 3 would repeat 1 2 3. What lies after step 5 is not looked at."""
    history = jnp.array([[1, 2, 3, 1, 2, 0, 0], [1, 2, 3, 2, 1, 3, 3]])
    banned = repeated_ngrams(history, jnp.array([5, 5]), 3, 5)
    np.testing.assert_array_equal(banned, [[False, False, False, True, False], [False] * 5])


@pytest.mark.parametrize("n", [1, 2, 3, 4])
def test_repeated_ngrams_equal_plain_python_at_every_step(n: int) -> None:
    rows, length, vocab = 7, 11, 3
    history = np.random.default_rng(n).integers(0, vocab, size=(rows, length))
    felt = False
    for step in range(length + 1):
        banned = np.asarray(repeated_ngrams(jnp.asarray(history), jnp.full(rows, step), n, vocab))
        for row in range(rows):
            past = history[row, :step].tolist()
            grams = {tuple(past[i : i + n]) for i in range(len(past) - n + 1)}
            suffix = past[len(past) - n + 1 :] if n > 1 else []
            expected = [len(suffix) == n - 1 and (*suffix, token) in grams for token in range(vocab)]
            assert banned[row].tolist() == expected
            felt |= any(expected)
    assert felt


def test_rows_that_are_at_different_steps_have_their_own_past() -> None:
    history = jnp.array([[1, 2, 1, 2], [1, 2, 1, 2]])
    banned = repeated_ngrams(history, jnp.array([3, 4]), 2, 3)
    np.testing.assert_array_equal(banned, [[False, False, True], [False, True, False]])


def test_an_ngram_longer_than_the_output_bans_nothing() -> None:
    assert not repeated_ngrams(jnp.ones((2, 3), jnp.int32), jnp.array([3, 3]), 4, 5).any()


def test_generated_tokens_are_those_before_the_step() -> None:
    seen = generated_tokens(jnp.array([[4, 0, 4, 2]]), jnp.array([3]), 6)
    np.testing.assert_array_equal(seen, [[True, False, False, False, True, False]])


def test_the_repetition_penalty_lowers_logits_of_either_sign_of_seen_tokens_only() -> None:
    logits = jnp.array([[3.0, -3.0, 0.0, 3.0, -jnp.inf]])
    seen = jnp.array([[True, True, True, False, True]])
    np.testing.assert_array_equal(penalise_repetition(logits, seen, 2.0), [[1.5, -6.0, 0.0, 3.0, -np.inf]])


def test_a_ban_moves_no_probability_to_the_other_tokens() -> None:
    logits = jnp.log(jnp.array([[0.3, 0.3, 0.2, 0.1, 0.1]]))
    constraints = Constraints(bos=3, eos=1, pad=4, no_repeat_ngram=1)
    allowed_tokens = jnp.array([True, True, False, True, True])
    logprobs = next_logprobs(logits, jnp.array([[0, 2]]), jnp.array([1]), constraints, allowed_tokens)
    np.testing.assert_allclose(logprobs, [[-np.inf, np.log(0.3), -np.inf, -np.inf, -np.inf]], rtol=1e-6)


def test_an_end_that_has_another_role_may_come_and_one_that_is_not_allowed_may_not() -> None:
    allowed_tokens = jnp.array([True, True, False, True])
    mask = vocabulary_mask(6, ends=(3, 2), roles=(1, 3), allowed_tokens=allowed_tokens)
    np.testing.assert_array_equal(mask, [True, False, False, True, False, False])


@pytest.mark.parametrize(
    "constraints",
    [
        {},
        {"renormalize_logits": True},
        {"forced_bos": 5},
        {"forced_bos": 70},  # no token of the vocabulary: none is possible
        {"forced_eos": True, "forced_bos": 7},
        {"no_repeat_ngram": 2, "repetition_penalty": 1.5},
        {"repetition_penalty": 1.5, "penalises_logprobs": True},
        {"repetition_penalty": 0.5, "penalises_logprobs": True, "renormalize_logits": True},
        {"min_tokens": 4, "renormalize_logits": True, "forced_eos": True},
    ],
    ids=str,
)
@pytest.mark.parametrize("number", [1, 4, 90])
def test_the_best_candidates_are_those_of_all_under_every_rule(constraints: dict[str, Any], number: int) -> None:
    """But for the tokens of what may not come, which are any."""
    assert registry.is_ready("decoding"), "the tests' extra installs Numba, so that its code is always tested"
    draw, vocab = np.random.default_rng(0), 70
    logits = jnp.asarray(draw.normal(size=(6, vocab)).astype(np.float32)) * 3
    given = (
        logits,
        jnp.asarray(draw.integers(0, 6, (6, 9)), jnp.int32),
        jnp.array([0, 1, 2, 3, 5, 8]),
        Constraints(bos=0, eos=1, pad=2, **constraints),
        jnp.asarray(draw.random(60) < 0.7),
        jnp.array([9, 2, 9, 4, 9, 9]),
    )
    found = best_candidates(*given, number)
    expected, tokens = jax.lax.top_k(next_logprobs(*given), min(number, vocab))
    np.testing.assert_allclose(found.logprobs, expected, rtol=1e-5, atol=2e-6)
    may_come = np.isfinite(expected)
    assert found.tokens is not None
    np.testing.assert_array_equal(np.asarray(found.tokens)[may_come], np.asarray(tokens)[may_come])
