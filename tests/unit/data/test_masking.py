"""Dynamic masking: what is chosen, what it becomes, and that it is a function of (seed, step)."""

import math
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from plainformer.data.block import BlockLoader
from plainformer.data.masking import LAST_WORD, MaskedBatch, MaskedLoader, Masking, hide, in_order
from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, train_bpe, train_character

VOCAB, MASK, SPECIAL = 97, 3, 5  # ids below 5 are special
PLAIN = Masking(MASK, np.arange(VOCAB) < SPECIAL)
# An id that is a multiple of 3 begins a word.
WORDS = replace(PLAIN, starts=np.arange(VOCAB) % 3 == 0)


def random(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def texts(rows: int, context: int, *, seed: int = 0, ordinary: bool = True) -> NDArray[np.int32]:
    return random(seed).integers(SPECIAL if ordinary else 0, VOCAB, (rows, context)).astype(np.int32)


def restored(batch: MaskedBatch) -> NDArray[np.int32]:
    ids = batch.ids.copy()
    row, column = np.nonzero(batch.loss_mask)
    ids[row, batch.masked_positions[row, column]] = batch.targets[row, column]
    return ids


@pytest.mark.parametrize("masking", [PLAIN, WORDS], ids=["tokens", "words"])
def test_targets_are_the_masked_tokens_and_no_other_token_is_changed(masking: Masking) -> None:
    ids = texts(13, 37, ordinary=False)
    valid = np.arange(37) < random(1).integers(0, 38, 13)[:, None]
    batch = hide(ids, valid, masking, random(2))
    room = masking.masked_positions(37)
    assert [field.shape for field in batch] == [(13, 37), (13, 37), (13, room), (13, room), (13, room)]
    assert [field.dtype for field in batch] == [np.int32, np.bool_, np.int32, np.int32, np.bool_]
    assert np.array_equal(restored(batch), ids)
    assert np.array_equal(batch.valid, valid)
    for row in range(13):
        masked_positions = batch.masked_positions[row, batch.loss_mask[row]]
        assert (np.diff(masked_positions) > 0).all()  # from left to right, none twice
        assert valid[row, masked_positions].all()
        assert (ids[row, masked_positions] >= SPECIAL).all()  # never a special token
        assert not batch.loss_mask[row, len(masked_positions) :].any()
    assert (batch.masked_positions[~batch.loss_mask] == 0).all()
    assert (batch.targets[~batch.loss_mask] == 0).all()


def test_of_each_row_its_share_is_chosen_and_at_least_one() -> None:
    """Of 0, 1, 3, 4, 17, 37 ordinary tokens: 15 % is 0, 0.15, 0.45, 0.6, 2.55, 5.55."""
    lengths = np.array([0, 1, 3, 4, 17, 37])
    batch = hide(texts(6, 37), np.arange(37) < lengths[:, None], PLAIN, random())
    assert batch.loss_mask.sum(axis=1).tolist() == [0, 1, 1, 1, 3, 6]
    assert batch.masked_positions.shape == (6, 6)
    special = np.full((1, 37), 2, np.int32)
    special[0, 30:] = 50
    assert hide(special, special > 0, PLAIN, random()).loss_mask.sum() == 1  # 15 % of the seven ordinary ones
    many = hide(texts(2, 37), np.ones((2, 37), bool), replace(PLAIN, share=0.5), random())
    assert many.loss_mask.sum(axis=1).tolist() == [18, 18]


def test_of_the_chosen_eight_tenths_are_masked_a_tenth_replaced_and_a_tenth_stay() -> None:
    """Each of n chosen tokens draws for itself, so a count has the standard deviation √(n p (1 - p)).

    A token that is replaced draws from 92, itself among them. Five standard deviations: once in two million tests.
    """
    ids = texts(600, 401, seed=3)
    batch = hide(ids, np.ones(ids.shape, bool), PLAIN, random(4))
    n = int(batch.loss_mask.sum())
    assert n == 600 * 60
    shown = np.take_along_axis(batch.ids, batch.masked_positions, axis=1)
    masked, stayed = (shown == MASK).sum(), (shown == batch.targets).sum()
    ordinary = VOCAB - SPECIAL
    for count, p in ((masked, 0.8), (stayed, 0.1 + 0.1 / ordinary), (n - masked - stayed, 0.1 - 0.1 / ordinary)):
        assert abs(count - n * p) < 5 * math.sqrt(n * p * (1 - p))
    # Another token is any ordinary one, each as likely: chi-square with 91 degrees of freedom, 139.8 at p = 0.0008.
    others = shown[(shown != MASK) & (shown != batch.targets)]
    assert others.min() >= SPECIAL
    counts = np.bincount(others, minlength=VOCAB)[SPECIAL:]
    mean = len(others) / ordinary
    assert ((counts - mean) ** 2 / mean).sum() < 139.8


def test_every_place_is_chosen_as_often() -> None:
    """Chi-square over 23 places with 22 degrees of freedom: 48.3 at p = 0.001."""
    ids = texts(5000, 23)
    masked_positions = hide(ids, np.ones(ids.shape, bool), PLAIN, random(7)).masked_positions
    counts = np.bincount(masked_positions.ravel(), minlength=23)
    mean = 5000 * 3 / 23
    # Places of a row are drawn without putting back, which only makes the counts more even.
    assert ((counts - mean) ** 2 / mean).sum() < 48.3


def test_what_is_hidden_cannot_be_read_off() -> None:
    """Texts that differ at the chosen places alone look alike wherever a token does not stay."""
    ids = texts(50, 41, seed=1)
    valid = np.ones(ids.shape, bool)
    one = hide(ids, valid, PLAIN, random(5))
    other_ids = ids.copy()
    row, column = np.nonzero(one.loss_mask)
    other_ids[row, one.masked_positions[row, column]] = (one.targets[row, column] - SPECIAL + 1) % (
        VOCAB - SPECIAL
    ) + SPECIAL
    other = hide(other_ids, valid, PLAIN, random(5))
    assert np.array_equal(other.masked_positions, one.masked_positions)
    differs = one.ids != other.ids
    assert (one.ids[differs] == ids[differs]).all()  # those that stay
    assert 0 < differs.sum() < 0.2 * one.loss_mask.sum()


# ---------------------------------------------------------------------------------------------------------------------
# Whole words
# ---------------------------------------------------------------------------------------------------------------------


def groups(ids: NDArray[np.int32]) -> list[list[int]]:
    """The places of each word of a row, by hand: a special token is none, and ends the one before it."""
    found: list[list[int]] = []
    for place, id in enumerate(ids.tolist()):
        if id < SPECIAL:
            found.append([])
        elif id % 3 == 0 or not found or place == 0:
            found.append([place])
        else:
            found[-1].append(place)
    return [word for word in found if word]


@pytest.mark.parametrize("ordinary", [True, False])
def test_words_are_chosen_whole_until_the_number_is_reached_or_just_passed(ordinary: bool) -> None:
    ids = texts(300, 53, ordinary=ordinary)
    batch = hide(ids, np.ones(ids.shape, bool), WORDS, random(1))
    passed = set()
    for row in range(300):
        chosen = set(batch.masked_positions[row, batch.loss_mask[row]].tolist())
        words = groups(ids[row])
        assert all(set(word) <= chosen or not set(word) & chosen for word in words)
        wanted = WORDS.wanted(int((ids[row] >= SPECIAL).sum()))
        taken = [len(word) for word in words if set(word) <= chosen]
        passed.add(len(chosen) - wanted)
        # Without some last word, the number was not reached; a number that is not reached had no word that fitted.
        assert len(chosen) - max(taken) < wanted
        left = [len(word) for word in words if not set(word) & chosen]
        assert len(chosen) >= wanted or min(left) > wanted + LAST_WORD - len(chosen)
    assert min(passed) >= 0
    assert 2 <= max(passed) <= LAST_WORD


def test_a_word_longer_than_all_places_gives_its_beginning() -> None:
    ids = np.full((1, 40), 7, np.int32)  # no token begins a word
    batch = hide(ids, np.ones(ids.shape, bool), WORDS, random())
    assert batch.masked_positions[0, batch.loss_mask[0]].tolist() == [0, 1, 2, 3, 4, 5]  # 15 % of 40


def test_words_are_those_of_the_tokenizer() -> None:
    """In a vocabulary of characters a word has the space before it; here each is of four."""
    text = "one two six ten nil not the cat dog sun ".replace("one", " one", 1)
    tokenizer = train_character([text], special=SpecialTokens(mask="<mask>"))
    masking = Masking.of(tokenizer, whole_words=True)
    ids = np.array([tokenizer.encode(text)[:40]], np.int32)
    for seed in range(20):
        batch = hide(ids, np.ones(ids.shape, bool), masking, random(seed))
        masked_positions = batch.masked_positions[0, batch.loss_mask[0]]
        assert len(masked_positions) == 8  # 6 are wanted
        assert (masked_positions.reshape(2, 4) % 4 == np.arange(4)).all()


# ---------------------------------------------------------------------------------------------------------------------
# The loader
# ---------------------------------------------------------------------------------------------------------------------


def loader(tokens: int = 211, context: int = 7, rows: int = 5, seed: int = 3, masking: Masking = PLAIN) -> MaskedLoader:
    text = random(9).integers(SPECIAL, VOCAB, tokens).astype(np.uint16)
    return MaskedLoader(BlockLoader(text, context=context, rows=rows, seed=1), masking, seed=seed)


def same(one: MaskedBatch, other: MaskedBatch) -> bool:
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("masking", [PLAIN, WORDS], ids=["tokens", "words"])
def test_a_batch_is_a_function_of_seed_and_step(masking: Masking) -> None:
    used, new = loader(masking=masking), loader(masking=masking)
    seen = {step: used.batch(step) for step in range(1, 30)}
    assert all(same(new.batch(step), seen[step]) for step in reversed(range(1, 30)))
    made = list(used.batches(4, 9))
    assert len(made) == 6
    assert all(same(batch, seen[step]) for step, batch in enumerate(made, 4))
    assert list(used.batches(5, 4)) == []
    other = loader(seed=4, masking=masking).batch(1)
    assert np.array_equal(restored(other), restored(seen[1]))  # the same blocks
    assert not np.array_equal(other.masked_positions, seen[1].masked_positions)


def test_epochs_hide_different_tokens_of_the_same_blocks() -> None:
    """One block an epoch, of the same 31 tokens wherever it begins."""
    text = np.tile(np.array([50, 60], np.uint16), 40)
    blocks = BlockLoader(text, context=31, rows=1, seed=1)
    assert blocks.blocks_per_epoch == 1
    hidden = MaskedLoader(blocks, PLAIN, seed=3)
    chosen = {tuple(hidden.batch(step).masked_positions[0].tolist()) for step in range(1, 41)}
    assert len(chosen) > 30  # of 169,911 ways to choose 5 of 31


def test_in_order_the_text_comes_once_and_its_masks_are_fixed() -> None:
    text = random(9).integers(SPECIAL, VOCAB, 211).astype(np.uint16)
    whole, again = (list(in_order(text, PLAIN, context=7, rows=5, seed=3)) for _ in range(2))
    assert all(same(one, other) for one, other in zip(whole, again, strict=True))
    read = np.concatenate([restored(batch)[batch.valid] for batch in whole])
    assert np.array_equal(read, text[:-1])
    assert [batch.loss_mask.sum() for batch in whole] == [5] * 6
    assert whole[-1].masked_positions.shape == (5, 1)


def test_a_held_out_block_and_the_step_of_its_number_draw_from_numbers_of_their_own() -> None:
    """All 31 tokens are ordinary, so that the same numbers would choose the same places in any of them."""
    text = random(9).integers(SPECIAL, VOCAB, 311).astype(np.uint16)
    steps = MaskedLoader(BlockLoader(text, context=31, rows=1, seed=1), PLAIN, seed=3)
    held_out = list(in_order(text, PLAIN, context=31, rows=1, seed=3))
    for number in range(1, 9):
        step, block = steps.batch(number), held_out[number]
        assert step.loss_mask.all()
        assert block.loss_mask.all()
        assert not np.array_equal(step.masked_positions, block.masked_positions)


def test_the_masks_of_a_held_out_block_depend_on_its_number_alone() -> None:
    text = random(9).integers(SPECIAL, VOCAB, 211).astype(np.uint16)
    three, eight = (
        [row for batch in in_order(text, PLAIN, context=31, rows=rows, seed=3) for row in zip(*batch, strict=True)]
        for rows in (3, 8)
    )
    assert len(three) == 9  # two of which only fill the batch
    assert not three[8][1].any()
    assert not three[8][4].any()
    for one, other in zip(three, eight, strict=False):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len({tuple(row[2].tolist()) for row in three[:6]}) == 6
    other_seed = next(iter(in_order(text, PLAIN, context=31, rows=3, seed=4)))
    assert other_seed.masked_positions.tolist() != [row[2].tolist() for row in three[:3]]


# ---------------------------------------------------------------------------------------------------------------------
# What is refused
# ---------------------------------------------------------------------------------------------------------------------


def test_a_masking_is_made_of_a_tokenizer() -> None:
    tokenizer = train_bpe(["some words here"] * 2, 300, special=SpecialTokens(mask="<mask>"))
    masking = Masking.of(tokenizer, share=0.2)
    assert (masking.mask, masking.share, masking.starts) == (4, 0.2, None)
    assert np.flatnonzero(masking.special).tolist() == [0, 1, 2, 3, 4]
    assert masking.masked_positions(100) == 20
    assert Masking.of(tokenizer, share=0.2, whole_words=True).masked_positions(100) == 20 + LAST_WORD


def test_a_tokenizer_without_a_mask_and_a_share_that_is_none_are_refused() -> None:
    with pytest.raises(InputError, match=r"no mask token; train it with SpecialTokens\(mask"):
        Masking.of(train_character(["abc"]))
    for share in (0.0, 1.0, -0.1):
        with pytest.raises(InputError, match="the share of hidden tokens is"):
            Masking.of(train_character(["abc"], special=SpecialTokens(mask="<mask>")), share=share)
