"""Batches of labelled texts: a function of (seed, step), each text once an epoch."""

from itertools import chain

import numpy as np
import pytest

from plainformer.data.labelled_loader import LabelledBatch, LabelledLoader
from plainformer.errors import InputError

NAMES, PAD = ("bad", "good", "odd"), 2
NUMBERED = 5  # the smallest id of a text
LENGTHS = np.random.default_rng(3).integers(1, 14, 41).tolist()
LABELS = [NAMES[number % 3] for number in range(41)]


def loader(seed: int = 1, *, buckets: int = 3, multiple: int = 1) -> LabelledLoader:
    """Text i is of one token, id 5 + i, repeated."""
    texts = [[NUMBERED + i] * length for i, length in enumerate(LENGTHS)]
    return LabelledLoader(texts, LABELS, NAMES, pad=PAD, batch_tokens=70, buckets=buckets, seed=seed, multiple=multiple)


def texts_of(batch: LabelledBatch) -> list[int]:
    """Which texts a batch holds; it is checked that each is whole, with its label."""
    assert np.array_equal(batch.loss_mask, batch.valid.any(axis=1))
    assert (batch.ids[~batch.valid] == PAD).all()
    found = (batch.ids[batch.loss_mask, 0] - NUMBERED).tolist()
    for row, text in enumerate(found):
        assert batch.ids[row, batch.valid[row]].tolist() == [NUMBERED + text] * LENGTHS[text]
        assert NAMES[batch.labels[row]] == LABELS[text]
    return found


def epoch(loader: LabelledLoader, number: int) -> list[list[int]]:
    count = loader.batches_per_epoch
    return [texts_of(loader.batch(number * count + index)) for index in range(1, count + 1)]


def test_every_epoch_has_every_text_once_in_an_order_of_its_own() -> None:
    one = loader()
    assert len({bucket.source for bucket in one.buckets}) == 3
    epochs = [epoch(one, number) for number in range(3)]
    for batches in epochs:
        assert sorted(chain.from_iterable(batches)) == list(range(41))
    assert epochs[0] != epochs[1] != epochs[2] != epochs[0]
    assert epoch(loader(seed=2), 0) != epochs[0]


def test_a_batch_is_a_function_of_seed_and_step() -> None:
    used, new = loader(), loader()
    seen = {step: used.batch(step) for step in range(1, 20)}
    for step in reversed(range(1, 20)):
        assert all(np.array_equal(a, b) for a, b in zip(new.batch(step), seen[step], strict=True))
    made = [texts_of(batch) for batch in used.batches(3, 7)]
    assert made == [texts_of(seen[step]) for step in range(3, 8)]


def test_in_order_has_every_text_once() -> None:
    first, second = ([texts_of(batch) for batch in loader(seed).in_order()] for seed in (1, 2))
    assert sorted(chain.from_iterable(first)) == list(range(41))
    assert first == second


@pytest.mark.parametrize("multiple", [2, 5, 16])
def test_devices_and_microbatches_do_not_change_the_rows_of_a_batch(multiple: int) -> None:
    plain, filled = loader(), loader(multiple=multiple)
    for step in range(1, plain.batches_per_epoch + 1):
        assert texts_of(filled.batch(step)) == texts_of(plain.batch(step))
        assert len(filled.batch(step).ids) % multiple == 0


def test_a_batch_known_by_hand() -> None:
    one = LabelledLoader(
        [[7, 8, 9], [6]], ["odd", "bad"], NAMES, pad=PAD, batch_tokens=6, buckets=1, seed=0, multiple=4
    )
    batch = next(iter(one.in_order()))
    assert batch.ids.tolist() == [[7, 8, 9], [6, PAD, PAD], [PAD] * 3, [PAD] * 3]
    assert batch.valid.tolist() == [[True] * 3, [True, False, False], [False] * 3, [False] * 3]
    assert batch.labels.tolist() == [2, 0, 0, 0]
    assert batch.loss_mask.tolist() == [True, True, False, False]
    assert (batch.ids.dtype, batch.labels.dtype) == (np.int32, np.int32)
    assert len(one) == 2


def test_what_makes_no_batches_is_refused() -> None:
    options = {"pad": PAD, "batch_tokens": 9, "buckets": 1, "seed": 0}
    with pytest.raises(InputError, match="there are no texts"):
        LabelledLoader([], [], NAMES, **options)
    with pytest.raises(InputError, match="one has no tokens"):
        LabelledLoader([[5], []], ["bad", "bad"], NAMES, **options)
    with pytest.raises(InputError, match="2 texts and 1 labels"):
        LabelledLoader([[5], [6]], ["bad"], NAMES, **options)
    with pytest.raises(InputError, match="no output of the model is for the label 'ugly'"):
        LabelledLoader([[5]], ["ugly"], NAMES, **options)
