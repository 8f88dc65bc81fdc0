"""`plainformer embed`: the vectors of texts, as lines of JSON or as one array."""

import errno
import gzip
import json
import os

import numpy as np
import pytest

import plainformer

TEXTS = ["the moon", "a man, a cat", "th", "man"]
KINDS = ["masked", "classifier"]


def vectors(outcome) -> np.ndarray:
    assert outcome.code == 0, outcome
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert all(record.keys() == {"text", "vector"} for record in records)
    return np.array([record["vector"] for record in records], np.float32)


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_has_a_line_with_its_vector(cli, models, kind):
    expected = plainformer.load(models[kind]).embed(TEXTS)
    outcome = cli("embed", models[kind], *TEXTS)
    assert [json.loads(line)["text"] for line in outcome.out.splitlines()] == TEXTS
    # To the bit: what is printed is read back as the same number.
    np.testing.assert_array_equal(vectors(outcome), expected)
    assert expected.shape == (4, 12)
    assert len(np.unique(expected.round(3), axis=0)) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_an_array_has_the_same_vectors(cli, models, tmp_path, kind):
    file = tmp_path / "vectors.npy"
    outcome = cli("embed", models[kind], *TEXTS, "--output", file)
    assert outcome.out == f"4 vectors of 12 numbers are in {file}\n"
    found = np.load(file, allow_pickle=False)
    assert (found.dtype, found.shape) == (np.float32, (4, 12))
    np.testing.assert_array_equal(found, vectors(cli("embed", models[kind], *TEXTS)))
    assert list(tmp_path.iterdir()) == [file]


def test_many_lines_are_rows_in_order(cli, models, tmp_path):
    lines = [f"{'a man, ' * (number % 2)}cat" for number in range(150)]
    single = plainformer.load(models["masked"]).embed(lines[:2])
    (tmp_path / "texts.gz").write_bytes(gzip.compress("\r\n".join(lines).encode()))
    assert cli("embed", models["masked"], "-f", tmp_path / "texts.gz", "-o", tmp_path / "v").code == 0
    # Batches of other shapes add up in another order.
    np.testing.assert_allclose(np.load(tmp_path / "v"), np.tile(single, (75, 1)), rtol=1e-4, atol=1e-5)


def test_no_lines_are_no_rows(cli, models, tmp_path):
    assert cli("embed", models["masked"], stdin=b"").out == ""
    assert cli("embed", models["masked"], "-o", tmp_path / "v", stdin=b"").out.startswith("0 vectors of 12 numbers ")
    assert np.load(tmp_path / "v").shape == (0, 12)


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_vocabulary_lacks_is_read_as_unknown_and_counted_once(cli, models, kind):
    outcome = cli("embed", models[kind], "the", "m\u00f6\u00f6n")
    expected = plainformer.load(models[kind]).embed(["the", "m\u00f6\u00f6n"], allow_unknown=True)
    np.testing.assert_array_equal(vectors(outcome), expected)
    assert outcome.err == "2 tokens are not in the model's vocabulary, and read as unknown (first: argument 2)\n"


# What is refused


@pytest.mark.parametrize(
    ("words", "raw", "said"),
    [
        (["the", ""], b"", "argument 2: the text is empty; give some text"),
        ([], b"the\n\n", "stdin:2: the text is empty"),
        (
            ["the man and a sun", "--truncate", "no"],
            b"",
            "argument 1: the text has 17 tokens, and the model reads 16 at once",
        ),
        (["a \udce9"], b"", "argument 1: character 3 is not UTF-8"),
        ([], b"m\xe4n\nthe\n", "stdin:1: byte 2 of the line is not UTF-8; give UTF-8 text"),
        (["the", "--file", __file__], b"", "texts and --file are both given; give one of them"),
        (["--file", "nowhere.txt"], b"", "nowhere.txt: there is no such file; name a file of texts"),
        (["the", "--output", "nowhere/v.npy"], b"", "nowhere: there is no such folder; make it, or name another file"),
        (["the", "--output", "."], b"", ".: this is a folder; name a file in it"),
    ],
)
def test_what_cannot_be_turned_into_vectors_is_one_line(cli, models, words, raw, said):
    outcome = cli("embed", models["masked"], *words, stdin=raw)
    assert outcome.code == 2
    assert outcome.last_line().startswith(said)


def test_after_an_error_the_file_is_as_it_was(cli, models, tmp_path):
    file = tmp_path / "v.npy"
    file.write_text("mine")
    raw = b"the man\n" * 70 + b"the man" * 9
    outcome = cli("embed", models["masked"], "--output", file, "--truncate", "no", stdin=raw)
    assert outcome.error(2).startswith("stdin:71: the text has 63 tokens")
    assert file.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [file]


def test_a_file_that_cannot_be_written_is_a_failure_at_work(cli, models, tmp_path, monkeypatch):
    def breaks_off(file, vectors):
        file.write(b"the first half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("numpy.save", breaks_off)
    file = tmp_path / "v.npy"
    error = cli("embed", models["masked"], "the", "-o", file).error(1)
    assert error == f"{file}: the vectors could not be written (No space left on device)"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["translator", "character"])
def test_a_model_of_another_kind_is_one_line(cli, models, kind):
    verb = {"translator": "translate", "character": "generate"}[kind]
    error = cli("embed", models[kind], "the").error(2)
    assert error == f"{models[kind]}: this model is for plainformer {verb}, not for embed"


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_is_broken_is_a_failure_at_work(cli, models, spoilt, kind):
    error = cli("embed", spoilt(models[kind]), "the").error(1)
    assert error == "the model gives numbers that are not finite; check that its weights are finite"
