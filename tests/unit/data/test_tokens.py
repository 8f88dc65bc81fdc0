"""Tokens of running text: those of the whole text, made once, kept whole or not at all."""

import json
import math
import os
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import tokenizers

from plainformer.data import text as text_module
from plainformer.data.text import RunningText, read_text
from plainformer.data.tokens import Counts, encode_text
from plainformer.errors import InputError, WorkError
from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer, train_bpe, train_character

VERSE = "Tyger Tyger, burning bright,\nIn the forests of the night;\n\nWhat immortal hand or eye,\n"


@pytest.fixture(autouse=True)
def chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks so small that every text has many, and many batches."""
    monkeypatch.setattr(text_module, "CHUNK", 71)
    monkeypatch.setattr("plainformer.data.tokens.CHUNK", 71)


@pytest.fixture
def running(tmp_path: Path) -> Callable[..., RunningText]:
    def make(*documents: str, dev_share: float = 0.1) -> RunningText:
        path = tmp_path / "text.jsonl"
        path.write_text("".join(json.dumps({"text": text}) + "\n" for text in documents), encoding="utf-8")
        return read_text(path, dev_share=dev_share)

    return make


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def bpe() -> Tokenizer:
    return train_bpe([VERSE] * 3, 350, lead_space=False)


def characters() -> Tokenizer:
    return train_character([VERSE])


@pytest.mark.parametrize("make", [bpe, characters, byte_tokenizer])
def test_the_tokens_are_those_of_the_two_parts_each_in_one(running, cache: Path, make: Callable[[], Tokenizer]) -> None:
    tokenizer, whole = make(), VERSE * 23
    text = running(whole, dev_share=0.25)
    tokens = encode_text(text, tokenizer, folder=cache)
    assert text.train_characters == int(len(whole) * 0.75)
    assert tokens.train.tolist() == tokenizer.encode(whole[: text.train_characters])
    assert tokens.dev.tolist() == tokenizer.encode(whole[text.train_characters :])
    assert tokens.train.dtype == np.uint16
    assert isinstance(tokens.train, np.memmap)
    assert tokens.train_counts == Counts(len(tokens.train), text.train_characters, 0, 0)
    assert tokens.dev_counts == Counts(len(tokens.dev), len(whole) - text.train_characters, 0, 0)


def test_an_eos_stands_between_documents_and_nowhere_else(running, cache: Path) -> None:
    tokenizer = characters()
    documents = [VERSE, "night", VERSE[:50], "T"]
    a, b, c, d = (tokenizer.encode(text) for text in documents)
    whole = encode_text(running(*documents, dev_share=0.0), tokenizer, folder=cache)
    eos = tokenizer.eos_id
    assert whole.train.tolist() == [*a, eos, *b, eos, *c, eos, *d]
    assert whole.dev.tolist() == []
    share = 21 / sum(map(len, documents))  # the last document, and 20 characters of the one before
    parts = encode_text(running(*documents, dev_share=share), tokenizer, folder=cache)
    assert parts.train.tolist() == [*a, eos, *b, eos, *c[:-20]]
    assert parts.dev.tolist() == [*c[-20:], eos, *d]
    assert tokenizer.eos_id not in encode_text(running(VERSE), tokenizer, folder=cache).train.tolist()


def test_without_an_eos_documents_cannot_be_kept_apart(running, cache: Path) -> None:
    bare = SpecialTokens(None, None, None, None, None)
    tokenizer = Tokenizer(tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, [])), bare)
    assert encode_text(running("ab" * 10), tokenizer, folder=cache).train.tolist() == [0, 1] * 9
    with pytest.raises(InputError, match="no eos token"):
        encode_text(running("ab", "ba"), tokenizer, folder=cache)


def test_a_large_vocabulary_takes_four_bytes(running, cache: Path) -> None:
    for size, dtype in ((1 << 16, np.uint16), ((1 << 16) + 1, np.uint32)):
        vocabulary = {"a": size - 1} | {f"t{id}": id for id in range(size - 1)}
        backend = tokenizers.Tokenizer(tokenizers.models.BPE(vocabulary, []))
        tokenizer = Tokenizer(backend, SpecialTokens(None, None, None, None, None))
        assert tokenizer.vocab_size == size
        tokens = encode_text(running("a" * 100), tokenizer, folder=cache)
        assert tokens.train.dtype == dtype
        assert tokens.train.tolist() == [size - 1] * 90


def test_bytes_and_unknown_tokens_are_counted_by_part(running, cache: Path) -> None:
    whole = "Tyger é की\n" * 50 + "Tyger 🙂🙂" * 5
    text = running(whole)
    tokenizer = train_character(["Tyger \n"])
    tokens = encode_text(text, tokenizer, folder=cache)
    for counts, part in ((tokens.train_counts, whole[: text.train_characters]),
                         (tokens.dev_counts, whole[text.train_characters :])):  # fmt: skip
        assert counts.bytes == len(part.encode())
        assert counts.unknown == sum(part.count(character) for character in "éकी🙂") > 0
        assert counts.tokens == len(part)


def test_bits_per_byte_by_hand(cache: Path) -> None:
    """300 tokens of ln 4 nats, two bits each, over 400 bytes."""
    assert Counts(tokens=300, bytes=400).bits_per_byte(math.log(4)) == pytest.approx(1.5)


def test_seams_at_which_the_tokens_are_not_those_of_the_whole_are_counted(running, cache: Path) -> None:
    spaced = train_bpe([VERSE] * 3, 350)  # puts a space before every chunk
    tokens = encode_text(running(VERSE * 20, dev_share=0.0), spaced, folder=cache)
    chunks = sum(1 for _ in running(VERSE * 20, dev_share=0.0).train())
    assert tokens.train_counts.inexact_seams == chunks - 1 > 10
    endless = encode_text(running("night" * 100, dev_share=0.0), bpe(), folder=cache)
    assert endless.train_counts.inexact_seams > 0


def test_progress_counts_up_to_the_whole_text(running, cache: Path) -> None:
    seen: list[tuple[int, int]] = []
    text = running(VERSE * 29)
    encode_text(text, characters(), folder=cache, progress=lambda done, total: seen.append((done, total)))
    assert seen[0] == (0, text.characters)
    assert seen[-1] == (text.characters, text.characters)
    assert seen == sorted(seen)
    assert len(seen) > 5
    encode_text(text, characters(), folder=cache, progress=lambda done, total: pytest.fail("encoded again"))


# The files.


def test_the_second_time_the_file_is_mapped(running, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text, tokenizer = running(VERSE * 9), characters()
    first = encode_text(text, tokenizer, folder=cache)
    assert first.encoded
    monkeypatch.setattr(Tokenizer, "encode_batch", lambda *_: pytest.fail("encoded again"))
    again = encode_text(text, tokenizer, folder=cache)
    assert not again.encoded
    assert again.train.tolist() == first.train.tolist()
    assert again.dev.tolist() == first.dev.tolist()
    assert (again.train_counts, again.dev_counts) == (first.train_counts, first.dev_counts)
    assert sorted(path.suffix for path in cache.iterdir()) == [".ids", ".json"]


def test_another_text_tokenizer_or_split_is_another_file(running, cache: Path) -> None:
    cases = [
        (running(VERSE * 9), characters()),
        (running(VERSE * 9, dev_share=0.2), characters()),
        (running(VERSE * 9), byte_tokenizer()),
        (running(VERSE * 9 + "!"), byte_tokenizer()),
    ]
    for text, tokenizer in cases[:3]:
        assert encode_text(text, tokenizer, folder=cache).encoded
    changed, tokenizer = cases[3]
    assert encode_text(changed, tokenizer, folder=cache).encoded
    assert len(list(cache.glob("*.ids"))) == 4


def test_the_cache_is_where_compiled_programs_are(running, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAINFORMER_CACHE", str(tmp_path / "here"))
    encode_text(running(VERSE), characters())
    assert len(list((tmp_path / "here" / "tokens").glob("*.ids"))) == 1


def cut_short(ids: Path, counts: Path) -> None:
    ids.write_bytes(ids.read_bytes()[:-2])


def lengthen(ids: Path, counts: Path) -> None:
    ids.write_bytes(ids.read_bytes() + b"\0\0")


def lose_the_ids(ids: Path, counts: Path) -> None:
    ids.unlink()


def lose_the_counts(ids: Path, counts: Path) -> None:
    counts.unlink()


def break_the_counts(ids: Path, counts: Path) -> None:
    counts.write_text('{"train": {"tokens": 3}, "dev": ')


def name_other_counts(ids: Path, counts: Path) -> None:
    counts.write_text('{"dtype": "uint16", "train": {"tokens": 3}, "dev": {"glyphs": 3}}')


@pytest.mark.parametrize(
    "damage", [cut_short, lengthen, lose_the_ids, lose_the_counts, break_the_counts, name_other_counts]
)
def test_a_damaged_file_is_made_anew(running, cache: Path, damage: Callable[[Path, Path], None]) -> None:
    text, tokenizer = running(VERSE * 9), characters()
    expected = encode_text(text, tokenizer, folder=cache).train.tolist()
    (ids,), (counts,) = cache.glob("*.ids"), cache.glob("*.json")
    damage(ids, counts)
    again = encode_text(text, tokenizer, folder=cache)
    assert again.encoded
    assert again.train.tolist() == expected
    assert not encode_text(text, tokenizer, folder=cache).encoded


@contextmanager
def full_disk() -> Iterator[None]:
    """A file may not grow beyond 200 bytes, as on a disk with no more room."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (200, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_an_error_that_leaves_nothing(running, cache: Path) -> None:
    text = running(VERSE * 5, dev_share=0.0)
    said = rf"{cache}: the tokens of the text cannot be written \(File too large\).*PLAINFORMER_CACHE"
    with full_disk(), pytest.raises(WorkError, match=said):
        encode_text(text, byte_tokenizer(), folder=cache)
    assert list(cache.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_an_error(running, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WorkError, match="cannot be written"):
        encode_text(running(VERSE), characters(), folder=tmp_path / "file" / "tokens")


def test_a_text_that_is_gone_leaves_nothing(running, cache: Path, tmp_path: Path) -> None:
    text = running(VERSE)
    (tmp_path / "text.jsonl").unlink()
    with pytest.raises(InputError, match="there is no such file"):
        encode_text(text, characters(), folder=cache)
    assert list(cache.iterdir()) == []


def test_what_a_killed_process_left_is_cleared_away_in_time(running, cache: Path) -> None:
    text, tokenizer = running(VERSE), characters()
    encode_text(text, tokenizer, folder=cache)
    (ids,) = cache.glob("*.ids")
    old, young = (ids.with_name(f"{ids.name}.{number}.partial") for number in (7, 11))
    for path in (old, young, ids):
        path.write_bytes(b"")
    long_ago = time.time() - 7200
    os.utime(old, (long_ago, long_ago))
    encode_text(text, tokenizer, folder=cache)
    assert not old.exists()
    assert young.exists()  # perhaps somebody is still writing to it
