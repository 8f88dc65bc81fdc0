"""`plainformer fill`: for every gap of every text the most probable tokens, best first."""

import gzip
import json
import re

import pytest

import plainformer
from plainformer.cli.escapes import escaped

TEXTS = ["the m<mask>n", "a <mask>at<mask>the", "<mask>"]
MODELS = ["masked", "masked-bpe"]


def blocks(reader: plainformer.MaskFiller, texts: list[str], top: int = 5) -> str:
    """What has to be printed; how a token stays on its line, test_escapes has."""
    found = []
    for text, gaps in zip(texts, reader.fill(texts, top=top), strict=True):
        for number, guesses in enumerate(gaps, 1):
            head = f"gap {number} of {len(gaps)}: {text}" if len(gaps) > 1 else text
            shown = [(guess.probability, escaped(guess.text)) for guess in guesses]
            found.append("\n".join([head, *(f"{probability:.4f}\t{token}" for probability, token in shown)]) + "\n")
    return "\n".join(found)


@pytest.mark.parametrize("model", MODELS)
def test_every_gap_has_a_block_of_tokens(cli, models, model):
    reader = plainformer.load(models[model])
    outcome = cli("fill", models[model], *TEXTS)
    assert (outcome.code, outcome.err) == (0, "")
    assert outcome.out == blocks(reader, TEXTS)
    assert cli("fill", models[model], *TEXTS, "--top", 2).out == blocks(reader, TEXTS, top=2)


def test_a_block_as_a_reader_sees_it(cli, models):
    out = cli("fill", models["masked"], "a <mask>at<mask>the", "--top", 3).out
    first, second = out.split("\n\n")
    for number, block in enumerate((first, second), 1):
        head, *lines = block.splitlines()
        assert head == f"gap {number} of 2: a <mask>at<mask>the"
        assert all(re.fullmatch(r"0\.\d{4}\t(\\n|.)", line) for line in lines)
        probabilities = [float(line.partition("\t")[0]) for line in lines]
        assert len(lines) == 3
        assert probabilities == sorted(probabilities, reverse=True)


def test_all_tokens_that_stand_for_text_together_have_the_probability_one(cli, models):
    reader = plainformer.load(models["masked"])
    (record,) = map(json.loads, cli("fill", models["masked"], "the <mask>", "--top", 1000, "--json").out.splitlines())
    (guesses,) = record["gaps"]
    assert sum(guess["probability"] for guess in guesses) == pytest.approx(1.0, rel=1e-5)
    assert len(guesses) == reader.tokenizer.vocab_size - len(reader.tokenizer.special.tokens())


def test_a_token_that_begins_a_word_keeps_its_space(cli, models):
    """One space before a gap belongs to it, so that words can be guessed there at all."""
    out = cli("fill", models["masked-bpe"], "the moon and<mask>", "--top", 400).out
    assert cli("fill", models["masked-bpe"], "the moon and <mask>", "--top", 400).out.replace("and <", "and<") == out
    assert "\t the\n" in out


@pytest.mark.parametrize("model", MODELS)
def test_json_has_all_of_it(cli, models, model):
    found = plainformer.load(models[model]).fill(TEXTS, top=4)
    records = [json.loads(line) for line in cli("fill", models[model], *TEXTS, "--top", 4, "--json").out.splitlines()]
    assert records == [
        {
            "where": f"argument {number}",
            "text": text,
            "gaps": [[{"token": one.text, "probability": one.probability} for one in guesses] for guesses in gaps],
        }
        for number, (text, gaps) in enumerate(zip(TEXTS, found, strict=True), 1)
    ]


def test_a_file_and_standard_input_give_what_arguments_give(cli, models, tmp_path):
    expected = cli("fill", models["masked"], *TEXTS).out
    raw = "\r\n".join(TEXTS).encode()
    (tmp_path / "texts.txt").write_bytes(raw)
    (tmp_path / "texts.gz").write_bytes(gzip.compress(raw))
    assert cli("fill", models["masked"], stdin=raw + b"\n").out == expected
    assert cli("fill", models["masked"], "--file", tmp_path / "texts.txt").out == expected
    assert cli("fill", models["masked"], "-f", tmp_path / "texts.gz").out == expected


def test_no_lines_give_nothing(cli, models):
    outcome = cli("fill", models["masked"], stdin=b"")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


NO_GAP = "the text has no gap; write <mask> where a word is to be guessed"


@pytest.mark.parametrize(
    ("words", "raw", "said"),
    [
        (["the moon"], b"", f"argument 1: {NO_GAP}"),
        (["<mask>", ""], b"", f"argument 2: {NO_GAP}"),
        ([], b"<mask>\nthe moon\n", f"stdin:2: {NO_GAP}"),
        (["the m\u00f6<mask>n"], b"", "argument 1: the model's vocabulary does not have '\u00f6'"),
        (["a \udce9<mask>"], b"", "argument 1: character 3 is not UTF-8"),
        ([], b"a \xe4<mask>\n<mask>\n", "stdin:1: byte 3 of the line is not UTF-8; give UTF-8 text"),
        ([], b"<mask>\0", "stdin:1: the line has a NUL"),
        (["<mask>", "--top", "0"], b"", "0 guesses were asked for; give at least 1"),
        (["<mask>", "--file", __file__], b"", "texts and --file are both given; give one of them"),
        (["--file", "nowhere.txt"], b"", "nowhere.txt: there is no such file; name a file of texts"),
    ],
)
def test_what_cannot_be_filled_is_one_line(cli, models, words, raw, said):
    outcome = cli("fill", models["masked"], *words, stdin=raw)
    assert outcome.code == 2
    assert outcome.last_line().startswith(said)


def test_a_line_of_a_file_is_named_by_the_file(cli, models, tmp_path):
    (tmp_path / "texts").write_text("<mask>\nthe moon\n")
    first = cli("fill", models["masked"], "<mask>").written()
    outcome = cli("fill", models["masked"], "-f", tmp_path / "texts")
    assert outcome.error(2, out=first) == f"{tmp_path}/texts:2: {NO_GAP}"


def test_lines_before_a_bad_one_in_another_chunk_are_filled(cli, models):
    outcome = cli("fill", models["masked"], "--json", stdin=b"<mask>\n" * 64 + b"x\n")
    assert (outcome.code, outcome.out.count("\n")) == (2, 64)
    assert outcome.last_line() == f"stdin:65: {NO_GAP}"


@pytest.mark.parametrize("kind", ["translator", "character", "classifier"])
def test_a_model_of_another_kind_is_one_line(cli, models, kind):
    verb = {"translator": "translate", "character": "generate", "classifier": "classify"}[kind]
    error = cli("fill", models[kind], "<mask>").error(2)
    assert error == f"{models[kind]}: this model is for plainformer {verb}, not for fill"


def test_a_model_that_is_broken_is_a_failure_at_work(cli, models, spoilt):
    error = cli("fill", spoilt(models["masked"]), "<mask>").error(1)
    assert error == "the model gives numbers that are not finite; check that its weights are finite"


def test_a_blank_line_is_passed_over(cli, models):
    lines = ["the <mask>\n", "\n", "a <mask>"]
    expected = cli("fill", models["masked"], stdin=(lines[0] + lines[2]).encode()).out
    assert cli("fill", models["masked"], stdin="".join(lines).encode()).out == expected
    assert "argument 1: the text has no gap" in cli("fill", models["masked"], "").error(2)
