"""The vocabulary of bytes."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer

BYTES = byte_tokenizer()
FIRST = 3  # the byte 0, after pad, bos and eos


def test_ids_are_the_bytes_after_the_special_tokens() -> None:
    assert BYTES.vocab_size == FIRST + 256
    assert [BYTES.pad_id, BYTES.bos_id, BYTES.eos_id, BYTES.unk_id] == [0, 1, 2, None]
    assert BYTES.encode("aé\n") == [FIRST + 0x61, FIRST + 0xC3, FIRST + 0xA9, FIRST + 0x0A]
    assert byte_tokenizer(SpecialTokens(mask="<mask>")).vocab_size == 5 + 256


@given(st.text())
def test_encode_then_decode_is_the_identity(text: str) -> None:
    ids = BYTES.encode(text)
    assert ids == [FIRST + value for value in text.encode()]
    assert BYTES.decode(ids) == text


def test_nasty_text_is_kept_to_the_letter(nasty: list[str]) -> None:
    assert BYTES.decode_batch(BYTES.encode_batch(nasty)) == nasty


@given(st.lists(st.text()))
def test_the_parts_of_a_text_have_the_ids_of_the_whole(parts: list[str]) -> None:
    assert list(chain.from_iterable(BYTES.encode_batch(parts))) == BYTES.encode("".join(parts))


def test_bytes_that_are_no_text_spoil_no_others() -> None:
    assert BYTES.decode([FIRST + 0x61, FIRST + 0xFF, FIRST + 0x62]) == "a\ufffdb"
    assert BYTES.decode([FIRST + byte for byte in "की".encode()[1:]]) == "\ufffd\ufffdी"


def test_a_file_gives_the_same_tokenizer(tmp_path: Path) -> None:
    BYTES.save(tmp_path / "tokenizer.json")
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.fingerprint == BYTES.fingerprint
    assert loaded.encode("की") == BYTES.encode("की")


@pytest.mark.parametrize("special", [SpecialTokens(pad=None), SpecialTokens(mask="a"), SpecialTokens(mask="<pad>")])
def test_special_tokens_that_text_could_become_are_refused(special: SpecialTokens) -> None:
    with pytest.raises(InputError):
        byte_tokenizer(special)
