"""A vocabulary of characters."""

import random
from collections import Counter

import pytest
from hypothesis import given, strategies as st

from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, Tokenizer, train_character
from plainformer.tokenizer.character import count_characters

BANANA = ["banana", "band"]  # a 4, n 3, b 2, d 1


def test_every_character_is_a_token_by_code_point() -> None:
    tokenizer = train_character(BANANA)
    assert [tokenizer.token(id) for id in range(tokenizer.vocab_size)] == ["<pad>", "<s>", "</s>", "<unk>", *"abdn"]
    assert tokenizer.encode("nab") == [7, 4, 5]


def test_a_limited_vocabulary_keeps_the_most_frequent() -> None:
    tokenizer = train_character(BANANA, 4 + 3)
    assert [tokenizer.token(id) for id in range(4, tokenizer.vocab_size)] == ["a", "b", "n"]
    assert tokenizer.unknown_characters("dandy") == ["d", "y"]


def test_each_unknown_character_counts() -> None:
    tokenizer = train_character(BANANA)
    assert tokenizer.count_unknown(tokenizer.encode("xaxx")) == 3
    assert tokenizer.unknown_characters("xaéx ") == ["x", "é", " "]


def test_characters_of_long_and_short_texts_are_counted_alike() -> None:
    text = "".join(random.Random(3).choices("abc\nकी🙂\U0010ffff\0", k=1 << 14))
    assert count_characters([text]) == count_characters(text) == Counter(text)
    assert count_characters([text, "ab", text]) == Counter(text + "ab" + text)


def test_known_text_is_kept_to_the_letter(characters: Tokenizer, sentences: list[str]) -> None:
    for text in sentences:
        ids = characters.encode(text)
        assert characters.decode(ids) == text
        assert len(ids) == len(text)
        assert characters.count_unknown(ids) == 0


def test_special_tokens_in_text_are_characters() -> None:
    tokenizer = train_character(["</s> <pad>"])
    assert len(tokenizer.encode("</s><pad>")) == 9
    assert tokenizer.decode(tokenizer.encode("</s><pad>")) == "</s><pad>"


@given(st.text())
def test_with_bytes_encode_then_decode_is_the_identity(text: str) -> None:
    tokenizer = train_character(["<0x41> </s>"], byte_fallback=True)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert tokenizer.count_unknown(ids) == 0


def test_without_bytes_unk_is_needed() -> None:
    with pytest.raises(InputError, match="unk token is missing"):
        train_character(BANANA, special=SpecialTokens(unk=None))
    assert train_character(BANANA, special=SpecialTokens(unk=None), byte_fallback=True).unk_id is None


@pytest.mark.parametrize(("byte_fallback", "least"), [(False, 5), (True, 261)])
def test_a_vocabulary_too_small_names_the_least(byte_fallback: bool, least: int) -> None:
    with pytest.raises(InputError, match=f"set vocab_size to at least {least}$"):
        train_character(BANANA, least - 1, byte_fallback=byte_fallback)
    assert train_character(BANANA, least, byte_fallback=byte_fallback).id("a") == least - 1
