"""Masks and positions, by hand: who sees whom, and who stands where in the texts of packed rows."""

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.equations.masks import (
    AttentionMask,
    cache_mask,
    causal_mask,
    padding_mask,
    positions_within,
    segment_mask,
)


def causal_within(text: jax.Array) -> AttentionMask:
    return segment_mask(text, text, is_causal=True)


def numbers(*rows: list[int]) -> jax.Array:
    return jnp.asarray(rows, jnp.int32)


def seen(mask: AttentionMask) -> list[list[list[int]]]:
    """For each row, who sees whom; heads see alike."""
    shown = mask.materialise()
    assert shown is not None
    assert shown.dtype == bool
    assert shown.shape[1] == 1
    return np.asarray(shown[:, 0]).astype(int).tolist()


def test_padding_is_hidden_from_all() -> None:
    shown = padding_mask(jnp.asarray([[True, True, True, False], [True, False, False, False]]))
    assert shown.allowed is not None
    assert shown.allowed.shape == (2, 1, 1, 4)
    assert seen(shown) == [[[1, 1, 1, 0]], [[1, 0, 0, 0]]]


def test_one_row_of_keys_for_all_queries_is_told_from_other_masks() -> None:
    padding = padding_mask(jnp.asarray([[True, True, False], [True, False, False]]))
    for_all = AttentionMask(jnp.asarray([True, False, True])[None, None, None, :])
    for mask, wanted in ((padding, [[1, 1, 0], [1, 0, 0]]), (for_all, [[1, 0, 1], [1, 0, 1]])):
        keys = mask.keys(2)
        assert mask.is_of_keys
        assert keys is not None
        assert np.asarray(keys).astype(int).tolist() == wanted
    text = numbers([1, 1, 2], [1, 2, 0])
    by_head = AttentionMask(jnp.ones((2, 5, 1, 3), bool))
    for mask in (AttentionMask(), causal_mask(3), causal_within(text), segment_mask(text, text), by_head):
        assert not mask.is_of_keys
        assert mask.keys(2) is None


def test_the_future_is_hidden() -> None:
    assert seen(causal_mask(4)) == [[[1, 0, 0, 0], [1, 1, 0, 0], [1, 1, 1, 0], [1, 1, 1, 1]]]
    assert AttentionMask().materialise() is None


def test_of_a_cache_the_places_up_to_ones_own_are_seen() -> None:
    assert seen(cache_mask(jnp.asarray(1), 4)) == [[[1, 1, 0, 0]]]
    assert seen(cache_mask(jnp.asarray(1), 5, queries=3)) == [[[1, 1, 0, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0]]]


def test_positions_begin_anew_with_every_text() -> None:
    """Numbers may be skipped; a text may be of one token; padding stands at 0, as nothing else is said of it."""
    assert positions_within(numbers([1, 1, 2, 4, 4, 4, 0, 0])).tolist() == [[0, 1, 0, 0, 1, 2, 0, 0]]
    both = positions_within(numbers([1, 1, 1, 1, 1], [1, 2, 2, 2, 3]))
    assert both.tolist() == [[0, 1, 2, 3, 4], [0, 0, 1, 2, 0]]
    assert positions_within(numbers([0, 0, 0], [1, 1, 0])).tolist() == [[0, 0, 0], [0, 1, 0]]
    assert positions_within(numbers([2])).tolist() == [[0]]


def test_a_text_sees_itself_alone() -> None:
    """The picture of the module."""
    text = numbers([1, 1, 2, 0])
    assert seen(segment_mask(text, text)) == [[[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]]
    assert seen(causal_within(text)) == [[[1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]]]


def test_queries_see_the_keys_that_have_their_number() -> None:
    """Two sides of other lengths: a number that one of them lacks finds nobody, and every row is its own."""
    query, key = numbers([1, 2, 4], [2, 2, 0]), numbers([1, 3, 4, 4, 0], [1, 1, 2, 0, 0])
    assert seen(segment_mask(query, key)) == [
        [[1, 0, 0, 0, 0], [0, 0, 0, 0, 0], [0, 0, 1, 1, 0]],
        [[0, 0, 1, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 0, 0]],
    ]


def test_the_future_of_a_text_is_hidden_and_so_is_its_past_in_other_texts() -> None:
    assert seen(causal_within(numbers([1, 3, 3, 3, 0], [2, 2, 5, 6, 6]))) == [
        [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0], [0, 1, 1, 0, 0], [0, 1, 1, 1, 0], [0, 0, 0, 0, 0]],
        [[1, 0, 0, 0, 0], [1, 1, 0, 0, 0], [0, 0, 1, 0, 0], [0, 0, 0, 1, 0], [0, 0, 0, 1, 1]],
    ]


def test_zero_sees_nothing_and_is_seen_by_none() -> None:
    """Not even by zero: padding is no text, on either side."""
    nothing, text = numbers([0, 0, 0]), numbers([1, 1, 0])
    for mask in (
        segment_mask(nothing, nothing),
        causal_within(nothing),
        segment_mask(text, nothing),
        segment_mask(nothing, text),
    ):
        assert seen(mask) == [[[0, 0, 0]] * 3]
    for mask in (segment_mask(text, text), causal_within(text)):
        shown = np.asarray(seen(mask))[0]
        assert not shown[2].any()
        assert not shown[:, 2].any()
