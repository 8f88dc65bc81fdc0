"""Texts cut into sentences and put together again: nothing is lost, whatever the text."""

import pytest
from hypothesis import given, strategies as st

from plainformer.serve.sentences import cut


@given(st.text(st.sampled_from("ab A1.!?…。 \t\n\r\u2028\u00a0\"'”)，,"), max_size=60), st.integers(1, 9))
def test_what_was_cut_is_put_together_as_it_was(text: str, most: int) -> None:
    found = cut(text, lambda sentence: len(sentence) <= most)
    assert found.joined(found.sentences) == text
    assert len(found.between) == len(found.sentences) + 1
    for sentence in found.sentences:
        assert len(sentence) <= most
        assert sentence
        assert sentence == sentence.strip()
        assert "\n" not in sentence
    assert not any(character.isalnum() for gap in found.between for character in gap)


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("A man. A dog!  A cat?", ["A man.", "A dog!", "A cat?"]),
        ("He said “Go.” Then he went.", ["He said “Go.”", "Then he went."]),
        ("Dr. Smith paid 3.50 on the 4. May, i.e. late.", ["Dr. Smith paid 3.50 on the 4. May, i.e. late."]),
        ("J. S. Bach was born. He died.", ["J. S. Bach was born.", "He died."]),
        ("“What?” he asked.", ["“What?” he asked."]),
        ("Wait… It rains.\n\n  A list:\n- one\n- two", ["Wait…", "It rains.", "A list:", "- one", "- two"]),
        ("今天下雨。我们走吧！好", ["今天下雨。", "我们走吧！", "好"]),
        ("यह एक घर है। वह बड़ा है।", ["यह एक घर है।", "वह बड़ा है।"]),
        (" \n ☺ ... \n", []),
        ("", []),
    ],
)
def test_where_sentences_end(text: str, sentences: list[str]) -> None:
    assert list(cut(text).sentences) == sentences


def test_what_does_not_fit_is_cut_between_words_and_at_commas() -> None:
    found = cut("one two three, four five six", lambda sentence: len(sentence) <= 15)
    assert list(found.sentences) == ["one two three,", "four five six"]
    assert list(cut("a,", lambda sentence: len(sentence) < 2).sentences) == ["a"]
    assert list(cut("x" * 10, lambda sentence: len(sentence) <= 3).sentences) == ["xx", "xxx", "xx", "xxx"]
