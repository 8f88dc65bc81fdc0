"""Text from ids that are still coming is the text of all of them."""

import pytest
from hypothesis import given, settings, strategies as st

from plainformer.tokenizer import Tokenizer, train_character
from plainformer.tokenizer.stream import TextStream

# Letters that the tokenizers know, others that they spell in bytes of two, three and four, and U+FFFD itself.
TEXTS = st.text(st.one_of(st.sampled_from("ein Mädchen की\n  \ufffd"), st.characters(exclude_categories=["Cs"])))


def streamed(tokenizer: Tokenizer, ids: list[int], before: list[int]) -> str:
    stream = TextStream(tokenizer, before)
    return "".join(stream.push([id]) for id in ids) + stream.flush()


@pytest.fixture(scope="module")
def spelling(sentences: list[str]) -> Tokenizer:
    """Characters, and bytes for the others."""
    return train_character(sentences, byte_fallback=True)


@given(text=TEXTS)
@settings(max_examples=300, deadline=None)
def test_id_by_id_the_text_is_that_of_all_ids(bpe: Tokenizer, spelling: Tokenizer, text: str) -> None:
    for tokenizer in (bpe, spelling):
        ids = tokenizer.encode(text)
        assert streamed(tokenizer, ids, []) == tokenizer.decode(ids) == text
        stream = TextStream(tokenizer)
        assert stream.push(ids) + stream.flush() == text


@given(text=TEXTS, data=st.data())
@settings(max_examples=300, deadline=None)
def test_what_comes_before_is_not_said_again(
    bpe: Tokenizer, spelling: Tokenizer, text: str, data: st.DataObject
) -> None:
    """Cut between two tokens that end and begin whole characters, and wherever a special token stands between them."""
    for tokenizer in (bpe, spelling):
        ids = tokenizer.encode(text)
        cut = data.draw(st.integers(0, len(ids)))
        before = tokenizer.decode(ids[:cut])
        if text.startswith(before):
            assert before + streamed(tokenizer, ids[cut:], ids[:cut]) == text
            special = [tokenizer.bos_id, tokenizer.eos_id]
            assert before + streamed(tokenizer, [*special, *ids[cut:]], ids[:cut]) == text


@given(text=st.text("abdn "))
@settings(deadline=None)
def test_characters_come_one_by_one(text: str) -> None:
    tokenizer = train_character(["banana band"])
    stream = TextStream(tokenizer)
    assert [stream.push([id]) for id in tokenizer.encode(text)] == list(text)
    assert stream.flush() == ""


def test_a_character_of_many_bytes_comes_whole(bpe: Tokenizer) -> None:
    """Four bytes, the first three of them no text yet."""
    ids = bpe.encode("a😀b")
    stream = TextStream(bpe)
    pieces = [stream.push([id]) for id in ids]
    assert pieces[-5:] == ["", "", "", "😀", "b"]
    assert "".join(pieces) == "a😀b"


def test_a_character_that_never_ends_is_flushed(bpe: Tokenizer) -> None:
    stream = TextStream(bpe)
    ids = bpe.encode("a😀")[:-1]
    assert stream.push(ids) == "a"
    assert stream.flush() == "\ufffd" * 3
    assert stream.flush() == ""
