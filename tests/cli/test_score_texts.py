"""`plainformer score`: how probable texts are, a line each, token by token, or as JSON."""

import gzip
import io
import json
import math
import re
import shutil

import numpy as np
import pytest

import plainformer
from plainformer.tokenizer import train_bpe

TEXT = "the moon\nand the man"
KINDS = ["character", "byte", "bpe"]


def line_of(score: plainformer.TextScore) -> str:
    many = len(score.logprobs)
    return (
        f"{score.logprob:.4f} nats\t{many} token{'s' * (many > 1)}\t"
        f"perplexity {score.perplexity:#.5g}\t{score.bits_per_byte:.4f} bits/byte\n"
    )


def numbers(out: str) -> np.ndarray:
    """The four figures of every line."""
    return np.array([re.findall(r"-?\d[\d.]*", line) for line in out.splitlines()], float)


@pytest.mark.parametrize("kind", KINDS)
def test_every_text_has_a_line(cli, models, kind):
    texts = ["the sun", TEXT, "a man", "th"]
    found = plainformer.load(models[kind]).score(texts)
    assert cli("score", models[kind], *texts).out == "".join(map(line_of, found))


def test_a_line_known_by_hand(cli, models, tmp_path):
    """With weights of zero every token costs the logarithm of the vocabulary's size; here it has 16."""
    from safetensors.numpy import load_file, save_file

    folder = shutil.copytree(models["character"], tmp_path / "model", ignore=shutil.ignore_patterns("SHA256SUMS"))
    weights = load_file(folder / "model.safetensors")
    save_file({name: 0 * value for name, value in weights.items()}, folder / "model.safetensors")
    vocab = plainformer.load(folder).tokenizer.vocab_size
    nats = f"{-2 * math.log(vocab):.4f} nats"
    line = f"{nats}\t2 tokens\tperplexity {vocab:.3f}\t{math.log2(vocab):.4f} bits/byte\n"
    assert cli("score", folder, "man").out == line


@pytest.mark.parametrize("ending", ["", "\n"])
def test_what_is_read_is_one_text_less_a_newline_at_its_end(cli, models, tmp_path, ending):
    expected = cli("score", models["character"], TEXT).out
    raw = TEXT.encode() + ending.encode()
    (tmp_path / "text.gz").write_bytes(gzip.compress(raw.replace(b"\n", b"\r\n")))
    assert cli("score", models["character"], stdin=raw).out == expected
    assert cli("score", models["character"], "--file", tmp_path / "text.gz").out == expected
    assert cli("score", models["character"], stdin=TEXT.encode() + b"\n\n").out != expected


def test_lines_are_texts_of_their_own(cli, models, tmp_path):
    lines = [f"the man {'and a' * (n % 4)}" for n in range(70)]
    expected = cli("score", models["bpe"], *lines).out
    raw = "\r\n".join(lines).encode()
    (tmp_path / "text").write_bytes(raw)
    for outcome in (
        cli("score", models["bpe"], "--lines", stdin=raw + b"\n"),
        cli("score", models["bpe"], "--lines", "-f", tmp_path / "text"),
    ):
        # Sums of float32 numbers, in batches of other shapes.
        np.testing.assert_allclose(numbers(outcome.out), numbers(expected), rtol=1e-5, atol=2e-4)
    assert numbers(expected).shape == (70, 4)
    assert len(set(numbers(expected)[:, 1])) == 4


@pytest.mark.parametrize("kind", KINDS)
def test_tokens_are_lines_that_add_up_and_spell_the_text(cli, models, kind):
    found = plainformer.load(models[kind]).score([TEXT])[0]
    rows = [line.split("\t") for line in cli("score", models[kind], TEXT, "--tokens").out.splitlines()]
    assert "".join(token for token, _ in rows) == TEXT.replace("\n", "\\n")
    assert [number for _, number in rows] == ["-", *(f"{logprob:.4f}" for logprob in found.logprobs)]


def test_texts_by_token_are_apart(cli, models):
    one, other = (cli("score", models["character"], text, "--tokens").out for text in ("the", "man"))
    assert cli("score", models["character"], "the", "man", "--tokens").out == f"{one}\n{other}"


def test_a_token_that_is_part_of_a_character_has_its_name(cli, models):
    """é is not in the vocabulary of the pairs, and a byte token elsewhere."""
    rows = [line.split("\t")[0] for line in cli("score", models["bpe"], "a é 😀", "--tokens").out.splitlines()]
    assert rows == ["a", " ", "<0xC3>", "<0xA9>", " ", "😀"]
    rows = [line.split("\t")[0] for line in cli("score", models["byte"], "a\té", "--tokens").out.splitlines()]
    assert rows == ["a", "\\t", "Ã", "©"]


def test_a_first_token_keeps_its_space(cli, models, tmp_path):
    """Its tokenizer puts a space before a text, and takes it off when it decodes."""
    from plainformer.folder import ModelFolder, load_folder, save_folder

    tokenizer = train_bpe(["the moon the moon"], 340)
    content = load_folder(models["bpe"])
    assert tokenizer.vocab_size <= content.source_tokenizer.vocab_size
    save_folder(ModelFolder(content.model, tokenizer, tokenizer), tmp_path / "model")
    rows = [line.split("\t")[0] for line in cli("score", tmp_path / "model", "the moon", "--tokens").out.splitlines()]
    assert rows == [" the", " moon"]


def test_json_has_all_of_it(cli, models):
    found = plainformer.load(models["bpe"]).score([TEXT, "a man"])
    outcome = cli("score", models["bpe"], TEXT, "a man", "--json", "--tokens")
    told = [json.loads(line) for line in outcome.out.splitlines()]
    for number, (one, score) in enumerate(zip(told, found, strict=True), 1):
        pairs = one.pop("token_logprobs")
        assert [token for token, _ in pairs] == list(score.tokens)
        assert [logprob for _, logprob in pairs] == [None, *score.logprobs]
        assert one == {
            "where": f"argument {number}",
            "logprob": score.logprob,
            "tokens": len(score.logprobs),
            "perplexity": score.perplexity,
            "bits_per_byte": score.bits_per_byte,
        }
    (whole,) = cli("score", models["bpe"], "--json", stdin=b"a man\na cat\n").out.splitlines()
    assert json.loads(whole)["where"] == "stdin"
    assert "token_logprobs" not in whole
    lines = cli("score", models["bpe"], "--json", "--lines", stdin=b"a man\na cat\n").out.splitlines()
    assert [json.loads(line)["where"] for line in lines] == ["stdin:1", "stdin:2"]


def test_texts_longer_than_the_context_are_counted_and_named(cli, models):
    """17 tokens fit a context of 16: the last is not read."""
    texts = ["a" * 17, "a" * 18, "the", "the man " * 4]
    assert cli("score", models["character"], texts[0]).err == ""
    assert cli("score", models["character"], *texts).err == (
        "2 texts do not fit the context of 16 tokens (first: argument 2); "
        "beyond it, a token was scored by the 8 to 16 before it\n"
    )
    assert cli("score", models["character"], stdin=texts[1].encode()).err.startswith("1 text does not fit the context ")


# What is refused


@pytest.mark.parametrize(
    ("words", "raw", "said"),
    [
        ([""], b"", "argument 1: the text is empty; give some text"),
        (["the", "m"], b"", "argument 2: the text has one token, and the first is not scored; give a longer text"),
        (["the möon"], b"", "argument 1: the model's vocabulary does not have 'ö'"),
        (["the \udce9"], b"", "argument 1: character 5 is not UTF-8"),
        ([], b"", "stdin: the text is empty"),
        ([], b"m\n", "stdin: the text has one token"),
        ([], b"the\nm\xe4n", "stdin:2: byte 2 of the line is not UTF-8; give UTF-8 text"),
        ([], b"the\0", "stdin:1: the line has a NUL"),
        (["--lines"], b"\nthe", "stdin:1: the text is empty"),
        (["--lines"], b"the\nthe\nm\n", "stdin:3: the text has one token"),
        (["--lines"], "the\nmän\n".encode(), "stdin:2: the model's vocabulary does not have 'ä'"),
        (["the", "--lines"], b"", "--lines is for what is read; give texts, or --lines"),
        (["the", "--file", __file__], b"", "texts and --file are both given; give one of them"),
        (["--file", "nowhere.txt"], b"", "nowhere.txt: there is no such file; name a file of text"),
    ],
)
def test_what_cannot_be_scored_is_one_line(cli, models, words, raw, said):
    outcome = cli("score", models["character"], *words, stdin=raw)
    assert outcome.code == 2
    assert outcome.last_line().startswith(said)


def test_lines_before_a_bad_one_in_another_chunk_are_scored(cli, models):
    raw = b"the man\n" * 64 + b"x\n"
    outcome = cli("score", models["character"], "--lines", stdin=raw)
    assert (outcome.code, outcome.out.count("\n")) == (2, 64)
    assert outcome.last_line().startswith("stdin:65: the model's vocabulary does not have 'x'")


def test_a_model_that_is_broken_is_a_failure_at_work(cli, models, spoilt):
    error = cli("score", spoilt(models["character"]), "the").error(1)
    assert error.startswith("argument 1: the model's log-probabilities are not finite")


class Terminal(io.BytesIO):
    """A standard input at which somebody types."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_told_what_is_waited_for(cli, models):
    outcome = cli("score", models["character"], stdin=Terminal(b"the sun\n"))
    assert outcome.out == cli("score", models["character"], "the sun").out
    assert outcome.err == "reading the text from the terminal; Ctrl-D on a line of its own ends it\n"
    outcome = cli("generate", models["wide"], "--max-tokens", 3, stdin=Terminal(b"the sun\n"))
    assert outcome.err == "reading the prompt from the terminal; Ctrl-D on a line of its own ends it\n"
