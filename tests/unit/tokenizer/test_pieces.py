"""Cutting text into pieces."""

import pytest
from hypothesis import given, strategies as st

from plainformer.errors import InputError
from plainformer.tokenizer.pieces import check_unicode, corpus, cut


def pieces(text: str) -> list[str]:
    return [piece for piece, _ in cut().pre_tokenize_str(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (" A dog, two cats", [" A", " dog", ",", " two", " cats"]),
        (" में की", [" में", " की"]),  # vowel signs and the nasal dot stay with their letters
        ("क\u094d\u200dष", ["क\u094d\u200dष"]),  # a joiner shapes the conjunct, it does not end the word
        ("e\u0301te\u0301", ["e\u0301te\u0301"]),
        (" 1984", [" 1", "9", "8", "4"]),
        ("१२", ["१", "२"]),
        ("a  b", ["a", " ", " b"]),
        ("a\r\n\r\n  b", ["a", "\r\n\r\n", " ", " b"]),
        (" \t\n", [" \t", "\n"]),
        ("don't...", ["don", "'", "t", "..."]),
        ("👨\u200d👩 ❤\ufe0f", ["👨\u200d👩", " ❤\ufe0f"]),
        ("<0x41></s>", ["<", "0", "x", "4", "1", "></", "s", ">"]),
    ],
)
def test_pieces_are_words_with_the_space_before_them(text: str, expected: list[str]) -> None:
    assert pieces(text) == expected


@given(st.text())
def test_the_pieces_joined_are_the_text(text: str) -> None:
    assert "".join(pieces(text)) == text


def test_a_lone_surrogate_is_named_with_its_place() -> None:
    with pytest.raises(InputError, match=r"line 7: .*surrogate, U\+D83D at character 3.*UTF-8"):
        check_unicode("ab\ud83d", where="line 7")


@pytest.mark.parametrize("texts", [[], ["", ""], "a single string"])
def test_a_corpus_is_several_texts(texts: list[str]) -> None:
    with pytest.raises(InputError):
        corpus(texts)


def test_a_generator_of_texts_is_a_corpus() -> None:
    assert corpus(word for word in ("ein", "Wort")) == ["ein", "Wort"]
