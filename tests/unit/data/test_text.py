"""Running text: found, read as a stream, cut at seams, split by position."""

import gzip
import hashlib
import json
import os
import random
import tracemalloc
from itertools import chain, pairwise
from pathlib import Path

import pytest
from tokenizers.pre_tokenizers import ByteLevel

from plainformer.data import text as text_module
from plainformer.data.builtin import TEXTS
from plainformer.data.text import Chunk, embedded_text, find_files, read_text
from plainformer.errors import InputError
from plainformer.recipe import load_recipe
from plainformer.tokenizer import Tokenizer, train_bpe

VERSE = "Tyger Tyger, burning bright,\nIn the forests of the night;\n\nWhat immortal hand or eye,\n"


@pytest.fixture
def chunk(monkeypatch: pytest.MonkeyPatch) -> int:
    """Chunks so small that every text has many."""
    monkeypatch.setattr(text_module, "CHUNK", 61)
    return 61


def write(path: Path, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


def rows(*texts: str, key: str = "text") -> str:
    return "".join(json.dumps({key: text}) + "\n" for text in texts)


def joined(chunks: list[Chunk]) -> list[str]:
    """The documents, put together again; the first may have begun before."""
    documents: list[str] = []
    for chunk in chunks:
        if chunk.begins or not documents:
            documents.append("")
        documents[-1] += chunk.text
    return documents


def refusal(*paths: str | Path, **options) -> str:
    with pytest.raises(InputError) as caught:
        read_text(list(paths), **options)
    message = str(caught.value)
    assert "\n" not in message
    return message


# What is read.


@pytest.mark.parametrize("packed", ["", ".gz"])
def test_a_file_is_a_document_and_so_is_a_line_of_jsonl(tmp_path: Path, packed: str) -> None:
    write(tmp_path / f"b.md{packed}", "\ufeffone\r\ntwo\r")
    write(tmp_path / f"a.jsonl{packed}", rows("x\r\ny", "", "z"))
    text = read_text([tmp_path / f"b.md{packed}", tmp_path / f"a.jsonl{packed}"], dev_share=0.0)
    assert joined(list(text.train())) == ["one\ntwo\n", "x\r\ny", "z"]
    assert all(chunk.begins for chunk in text.train())
    assert (text.documents, text.characters, text.train_characters) == (3, 13, 13)
    assert list(text.dev()) == []


def test_the_key_of_the_text_can_be_chosen(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", rows("one", key="body"))
    assert joined(list(read_text(path, key="body", dev_share=0.0).train())) == ["one"]
    assert "has no key 'text'; its keys are 'body'" in refusal(path)


def test_globs_are_sorted_and_a_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b.txt", "a.txt", "c.md", "sub/d.txt", "sub/deep/e.txt"):
        write(tmp_path / name, name)
    (tmp_path / "folder.txt").mkdir()
    monkeypatch.chdir(tmp_path)
    assert find_files(["c.md", "*.txt", "a.txt"]) == [Path("c.md"), Path("a.txt"), Path("b.txt")]
    assert find_files(["**/*.txt"]) == [Path(name) for name in ("a.txt", "b.txt", "sub/d.txt", "sub/deep/e.txt")]
    write(tmp_path / "odd[1].txt", "x")  # a name that looks like a glob
    assert find_files(["odd[1].txt"]) == [Path("odd[1].txt")]


def test_what_is_not_found_is_refused_with_what_is_near(tmp_path: Path) -> None:
    write(tmp_path / "texts" / "moby_dick.txt", "x")
    assert "there is no such file; did you mean 'moby_dick.txt'?" in refusal(tmp_path / "texts" / "mobydick.txt")
    assert "there is no such file; did you mean 'texts'?" in refusal(tmp_path / "text" / "moby_dick.txt")
    assert "no file matches; did you mean 'moby_dick.txt'?" in refusal(tmp_path / "texts" / "moby_*.text")
    assert "no file matches; " in refusal(tmp_path / "texts" / "*.csv")
    assert f"{tmp_path / 'texts'} has moby_dick.txt" in refusal(tmp_path / "texts" / "zzzzzzzz")
    assert "this is a folder, and a file is needed; give" in refusal(tmp_path / "texts")
    assert "no file of text is named" in refusal()


def test_parallel_text_is_no_running_text(tmp_path: Path) -> None:
    for name in ("a.tsv", "a.tmx.gz"):
        assert f"{name}: .{name.split('.')[1]} is a format of parallel text" in refusal(
            write(tmp_path / name, "a\tb\n")
        )


def test_files_without_text_are_refused_together_and_passed_over_one_by_one(tmp_path: Path) -> None:
    empty, full = write(tmp_path / "a.txt", ""), write(tmp_path / "b.txt", "text")
    assert "a.txt: there is no text in it" in refusal(empty)
    text = read_text([empty, full, write(tmp_path / "c.jsonl", rows("x", "", "y"))], dev_share=0.0)
    assert (text.documents, text.empty) == (3, 2)
    assert "6 characters in 3 documents (2 more are empty); the first" in text.split_line()


def test_an_error_names_file_and_line(tmp_path: Path) -> None:
    good = write(tmp_path / "a.txt", "fine\n")
    assert "b.txt:3: not UTF-8: 0xFF at byte 2" in refusal(good, write(tmp_path / "b.txt", b"a\nb\nc\xff\n"))
    assert "c.jsonl:2: broken JSON" in refusal(good, write(tmp_path / "c.jsonl", rows("a") + "{\n"))


# How it is cut.


def test_chunks_end_with_a_line(tmp_path: Path, chunk: int) -> None:
    path = write(tmp_path / "a.txt", VERSE * 30)
    chunks = list(read_text(path, dev_share=0.0).train())
    assert "".join(each.text for each in chunks) == VERSE * 30
    assert [each.begins for each in chunks] == [True] + [False] * (len(chunks) - 1)
    for each, following in pairwise(chunks):
        assert 0 < len(each.text) <= chunk
        assert each.text.endswith("\n")
        assert not following.text.startswith("\n")


def test_a_long_line_is_cut_before_a_word_else_anywhere(tmp_path: Path, chunk: int) -> None:
    chunks = list(read_text(write(tmp_path / "a.txt", "burning 7 bright " * 40), dev_share=0.0).train())
    assert {each.text[:2] for each in chunks[1:]} <= {" b"}
    chunks = list(read_text(write(tmp_path / "b.txt", "ब" * 150), dev_share=0.0).train())
    assert [len(each.text) for each in chunks] == [chunk, chunk, 150 - 2 * chunk]


def test_runs_of_line_ends_are_not_cut_apart(tmp_path: Path, chunk: int) -> None:
    chunks = list(read_text(write(tmp_path / "a.jsonl", rows("12345\r\n\r\n678\n\n\n" * 50)), dev_share=0.0).train())
    assert len(chunks) > 10
    for each, following in pairwise(chunks):
        assert each.text[-1] == "\n"
        assert following.text[0] not in "\r\n"


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return train_bpe([VERSE] * 5, 400, lead_space=False)


def mixture(seed: int) -> str:
    """Text of everything that a seam must not tear apart, with a seam in reach of every 200 characters."""
    parts = ["Tyger", "bright", "की", "é", "7", ".", "—", "🙂\u200d🙂", " ", "  ", "\t", "\n", "\n\n", " \n ", "\u2028"]
    return "".join(random.Random(seed).choices([*parts, *VERSE.split(" ")], k=900))


@pytest.mark.parametrize("seed", range(20))
def test_the_ids_of_the_chunks_are_those_of_the_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bpe: Tokenizer, seed: int
) -> None:
    monkeypatch.setattr(text_module, "CHUNK", 200)
    text = read_text(write(tmp_path / "a.txt", mixture(seed)), dev_share=0.0)
    chunks = [each.text for each in text.train()]
    assert len(chunks) > 10
    assert list(chain.from_iterable(bpe.encode_batch(chunks))) == bpe.encode(mixture(seed))


@pytest.mark.parametrize("content", [*map(mixture, range(5)), "One line a paragraph, and a blank one.\n\n" * 50])
def test_seams_also_fit_the_words_of_gpt2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str) -> None:
    monkeypatch.setattr(text_module, "CHUNK", 400)
    words = ByteLevel(add_prefix_space=False).pre_tokenize_str
    chunks = [each.text for each in read_text(write(tmp_path / "a.txt", content), dev_share=0.0).train()]
    assert [word for each in chunks for word, _ in words(each)] == [word for word, _ in words(content)]


# How it is split.


@pytest.mark.parametrize("dev_share", [0.0, 0.1, 0.25, 1 / 3, 0.999])
def test_the_split_is_exact_to_the_character(tmp_path: Path, chunk: int, dev_share: float) -> None:
    documents = ["ein Text\n" * 13, "की" * 7, VERSE * 3, "x"]
    whole = "".join(documents)
    text = read_text(write(tmp_path / "a.jsonl", rows(*documents)), dev_share=dev_share)
    at = int(len(whole) * (1 - dev_share))
    train, dev = list(text.train()), list(text.dev())
    assert "".join(each.text for each in train) == whole[:at]
    assert "".join(each.text for each in dev) == whole[at:]
    # No boundary of a document is lost, and none is added where one is cut in two.
    assert sum(each.begins for each in train + dev) == 4
    assert all(each.text for each in train + dev)
    assert text.train_characters == at


def test_the_split_is_said_in_a_line(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "0123456789" * 200)
    assert read_text(path).split_line() == (
        f"{path}: 2,000 characters in 1 document; the first 1,800 to train on, the last 200 (10.0%) held out"
    )


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_a_share_is_a_share(tmp_path: Path, share: float) -> None:
    assert "dev_share is" in refusal(write(tmp_path / "a.txt", "text"), dev_share=share)


def test_a_sample_is_read_anew_and_ends_at_its_length(tmp_path: Path, chunk: int) -> None:
    text = read_text(write(tmp_path / "a.txt", VERSE * 10))
    sample = text.sample(200)
    assert "".join(sample) == "".join(sample) == (VERSE * 10)[:200]
    assert "".join(text.sample(10**9)) == (VERSE * 10)[: text.train_characters]


# What stands for it.


def test_the_fingerprint_is_of_text_and_documents_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    one = read_text(write(tmp_path / "a.txt", "ab\nc"))
    # By hand: the text, then its length in eight bytes.
    assert one.fingerprint == hashlib.sha256(b"ab\nc" + bytes([4, 0, 0, 0, 0, 0, 0, 0])).hexdigest()
    same = [
        read_text(write(tmp_path / "b.md.gz", "\ufeffab\r\nc"), dev_share=0.5),
        read_text(write(tmp_path / "c.jsonl", rows("", "ab\nc"))),
    ]
    monkeypatch.setattr(text_module, "CHUNK", 1)
    same.append(read_text(tmp_path / "a.txt"))
    assert {text.fingerprint for text in same} == {one.fingerprint}
    others = [rows("ab\n", "c"), rows("ab", "\nc"), rows("ab\nc "), rows("ab\nc", "ab\nc")]
    prints = {read_text(write(tmp_path / f"{number}.jsonl", other)).fingerprint for number, other in enumerate(others)}
    assert len(prints | {one.fingerprint}) == 5


def test_a_large_text_is_never_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_module, "CHUNK", 1 << 16)
    path = write(tmp_path / "a.txt.gz", (VERSE * 11 + "x" * 5000) * 5000)  # 30 MB, a few hundred kilobytes on the disk
    size = len(VERSE * 11 + "x" * 5000) * 5000
    assert os.path.getsize(path) < size / 50
    tracemalloc.start()
    text = read_text(path)
    total = sum(len(chunk.text) for chunk in text.train())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (text.characters, total) == (size, int(size * 0.9))
    assert peak < size / 3


# What is built in.


def test_the_language_reference_of_python_is_english_text() -> None:
    documents = TEXTS["python-docs"]()
    text = embedded_text("python-docs")
    assert text.documents == len(documents) > 50
    assert text.characters == sum(map(len, documents)) > 400_000
    assert joined([*text.train(), *text.dev()])[:-1] == documents[:-1] or text.documents == 1
    assert any('The "if" statement is used for conditional execution' in document for document in documents)
    assert embedded_text("python-docs").fingerprint == text.fingerprint


def test_a_text_that_is_not_built_in_is_refused_with_what_is_near() -> None:
    with pytest.raises(InputError, match=r"no text 'python-doc' is built in; did you mean 'python-docs'\?"):
        embedded_text("python-doc")
    with pytest.raises(InputError, match="there is python-docs"):
        embedded_text("zzz")


# Several files.


def test_each_file_gives_its_share(tmp_path: Path) -> None:
    one, two = (
        write(tmp_path / "a.txt", "A" * 90 + "a" * 10),
        write(tmp_path / "b.jsonl", rows("B" * 30, "B" * 6 + "b" * 4)),
    )
    text = read_text([one, two])
    assert joined(list(text.train())) == ["A" * 90, "B" * 30, "B" * 6]
    assert joined(list(text.dev())) == ["a" * 10, "b" * 4]
    assert (text.train_characters, text.characters) == (126, 140)
    assert "".join(text.sample(95)) == "A" * 90 + "B" * 5
    assert text.split_line() == (
        "2 files: 140 characters in 3 documents; of each of 2 files the first to train on, 126 in all, and the last "
        "held out, 14 (10.0%)"
    )
    end = read_text([one, two], each=False)
    assert joined(list(end.train())) == ["A" * 90 + "a" * 10, "B" * 26]
    assert end.fingerprint == text.fingerprint
    assert end.split == read_text(one).split == read_text([one, two], dev_share=0.0).split == ""
    assert text.split not in ("", read_text([one, two], dev_share=0.2).split)


def test_a_run_of_before_goes_on_with_the_end_of_all_its_text(tmp_path: Path) -> None:
    text = 'task = "language-model"\n[data]\ntext = ["a", "b"]\n[train]\nsteps = 7\n[schedule]\nwarmup = 2\n'
    own = write(tmp_path / "recipe.toml", text)
    assert load_recipe(own).data.split == "each"
    write(tmp_path / "data.json", "{}")  # as a run has it
    assert load_recipe(own).data.split == "end"
    assert load_recipe(own, ["data.split=each"]).data.split == "each"
    assert load_recipe(write(tmp_path / "other.toml", text)).data.split == "each"
