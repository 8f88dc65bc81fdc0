"""`plainformer generate`: the prompt and what the model writes after it, as it is written, whatever the prompt is."""

import errno
import gzip
import json
import os
import pty
import re
import shutil
import signal
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import plainformer

PROMPT = "the moon\nand"
KINDS = ["character", "byte", "bpe"]


def written(model: Path, prompt: str = PROMPT, **options: Any) -> str:
    """What the writer itself puts after the prompt."""
    ((text,),) = plainformer.load(model).generate([prompt], **options)
    return text


def records(outcome) -> list[dict[str, Any]]:
    assert outcome.code == 0, outcome
    return [json.loads(line) for line in outcome.out.splitlines()]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_printed_is_the_prompt_and_the_text(cli, models, kind):
    outcome = cli("generate", models[kind], PROMPT)
    text = written(models[kind])
    assert len(text) > 5
    assert (outcome.code, outcome.out) == (0, f"{PROMPT}{text}\n")
    assert cli("generate", models[kind], PROMPT, "--no-prompt").out == f"{text}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_json_has_the_text_that_is_printed(cli, models, kind):
    """Bytes, and tokens that are bytes, spell characters together or none at all."""
    options = ("--samples", 3, "--max-tokens", 60, "--temperature", 1.3, "--seed", 11)
    found = records(cli("generate", models[kind], PROMPT, *options, "--json"))
    out = cli("generate", models[kind], PROMPT, *options).out
    parts = re.split(r"(?m)^--- sample (\d) of 3\n", out)
    assert parts == ["", *(part for n, one in enumerate(found, 1) for part in (str(n), f"{PROMPT}{one['text']}\n"))]
    assert [(one["prompt"], one["sample"], one["seed"]) for one in found] == [(PROMPT, n, 11) for n in (1, 2, 3)]
    assert len({one["text"] for one in found}) == 3
    changes = {"max_tokens": 60, "temperature": 1.3, "seed": 11}
    assert [one["text"] for one in found] == plainformer.load(models[kind]).generate([PROMPT], samples=3, **changes)[0]


def test_json_says_how_many_tokens_there_are_and_whether_the_text_ended(cli, models):
    """Tokens are characters here, and what ends by itself is shorter than what is cut."""
    found = records(
        cli("generate", models["character"], "a", "--samples", 40, "--max-tokens", 9, "--json", "--no-prompt")
    )
    assert [one["sample"] for one in found] == list(range(1, 41))
    assert {one["finished"] for one in found} == {True, False}
    for one in found:
        assert one["tokens"] == len(one["text"])
        assert one["finished"] == (one["tokens"] < 9)
        assert "prompt" not in one


# Where the prompt is from


@pytest.mark.parametrize(
    ("raw", "prompt"),
    [
        (b"the moon\nand", PROMPT),
        (b"the moon\nand\n", PROMPT),
        (b"the moon\nand\n\n", f"{PROMPT}\n"),
        (b"\xef\xbb\xbfthe moon\r\nand\r\n", PROMPT),
        (b"\n\n", "\n"),
    ],
)
def test_a_file_or_standard_input_is_one_prompt_less_a_newline_at_its_end(cli, models, tmp_path, raw, prompt):
    expected = f"{prompt}{written(models['character'], prompt)}\n"
    (tmp_path / "prompt.txt").write_bytes(raw)
    (tmp_path / "prompt.gz").write_bytes(gzip.compress(raw))
    assert cli("generate", models["character"], stdin=raw).out == expected
    assert cli("generate", models["character"], "--file", tmp_path / "prompt.txt").out == expected
    assert cli("generate", models["character"], "-f", tmp_path / "prompt.gz").out == expected


def test_an_argument_is_taken_as_it_stands(cli, models):
    expected = written(models["character"], "the moon\n")
    assert expected != written(models["character"], "the moon")
    assert cli("generate", models["character"], "the moon\n").out == f"the moon\n{expected}\n"


def test_what_the_vocabulary_lacks_is_named_or_left_out(cli, models):
    model = models["character"]
    assert cli("generate", model, "the Moon, möön").error(2) == (
        "prompt: the model's vocabulary does not have 'M', 'ö'; write it otherwise, leave it out (--skip-unknown), "
        "or train with tokenizer.kind=bpe, "
        "which has bytes"
    )
    assert cli("generate", model, stdin="the\nman\nün".encode()).error(2).startswith("stdin:3: the model's voc")
    outcome = cli("generate", model, "the Moon, möön", "--skip-unknown")
    assert outcome.out == f"the oon, mn{written(model, 'the oon, mn')}\n"
    assert outcome.err.startswith("left out of the prompt, in 3 places, as the vocabulary lacks it: 'M', 'ö'\n")
    assert "in 1 place, as" in cli("generate", model, "the Moon", "--skip-unknown").err
    assert cli("generate", model, "the moon", "--skip-unknown").err == cli("generate", model, "the moon").err
    many = "".join(map(chr, range(0x900, 0x900 + 23)))
    assert "'ओ', 'औ' and 2 more; write" in cli("generate", model, many.replace("\u0900", "")).error(2)


# How it is written


def test_options_change_the_text_as_they_do_in_python(cli, models):
    model = models["endless"]
    seen = {written(model)}
    changes: list[dict[str, Any]] = [
        {"max_tokens": 7},
        {"temperature": 0.3},
        {"top_k": 2},
        {"top_p": 0.4},
        {"min_p": 0.3},
        {"repetition_penalty": 9.0, "temperature": 0.0},
        {"seed": 6},
    ]
    for options in changes:
        flags = [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", value)]
        expected = written(model, **options)
        assert cli("generate", model, PROMPT, *flags).out == f"{PROMPT}{expected}\n"
        seen.add(expected)
    assert len(seen) == 8


def test_without_options_the_model_folder_decides(cli, models, tmp_path):
    folder = shutil.copytree(models["character"], tmp_path / "model")
    (folder / "generation_config.json").write_text('{"max_tokens": 5, "temperature": 0.0}')
    (folder / "SHA256SUMS").unlink()
    found = records(cli("generate", folder, PROMPT, "--json"))
    assert [(one["text"], one["tokens"]) for one in found] == [(written(folder), 5)]
    assert cli("generate", folder, PROMPT, "--samples", 2).error(2).startswith("--samples: at temperature 0 all ")


def test_a_text_ends_before_a_stop_string_with_escapes(cli, models):
    text = written(models["byte"], seed=4)
    place = next(n for n, character in enumerate(text) if n > 3 and character.isprintable() and character != "\\")
    stop = text[place]
    out = cli("generate", models["byte"], PROMPT, "--seed", 4, "--stop", "\\n\\n\\n", "--stop", stop, "--no-prompt").out
    assert out == text[: text.index(stop)] + "\n"
    lines = cli("generate", models["character"], PROMPT, "--no-prompt", "--samples", 20, "--json", "--stop", "\\n")
    whole = cli("generate", models["character"], PROMPT, "--no-prompt", "--samples", 20, "--json")
    cut = [one["text"] for one in records(lines)]
    assert cut == [one["text"].partition("\n")[0] for one in records(whole)]
    assert cut != [one["text"] for one in records(whole)]


def test_a_window_that_slides_is_said_once(cli, models):
    said = "the text did not fit the context of 16 tokens; beyond it, a token was chosen by the 8 to 16 before it\n"
    assert cli("generate", models["endless"], "the", "--max-tokens", 90).err == said
    assert cli("generate", models["character"], "the", "--max-tokens", 3).err == ""


@pytest.mark.parametrize("weights", ["bfloat16", "int8", "w8a8"])
def test_rounded_weights_write_what_the_rounded_model_prefers(cli, models, weights):
    """Greedily, by the full forward of the same model, uncached."""
    writer = plainformer.load(models["byte"], weights=weights)
    said = cli("generate", models["byte"], "abc", "--max-tokens", 6, "--temperature", 0, "--weights", weights)
    from plainformer.quantize.prepare import prepare

    model, ids = prepare(writer.model, weights), writer.tokenizer.encode("abc")
    for _ in range(6):
        logits = np.array(model(jnp.asarray([ids]))[0, -1])
        logits[list(writer._special["suppress_tokens"])] = -np.inf
        ids.append(int(logits.argmax()))
    assert said.out == writer.tokenizer.decode(ids) + "\n"


# Search


def test_a_beam_of_one_is_greedy(cli, models):
    options = ("--max-tokens", 9)
    greedy = cli("generate", models["byte"], "abc", *options, "--temperature", 0)
    assert cli("generate", models["byte"], "abc", *options, "--beam", 1).out == greedy.out != "abc\n"


@pytest.mark.parametrize("kind", KINDS)
def test_the_n_best_are_lines_of_score_and_text(cli, models, kind):
    options = ("--max-tokens", 9, "--beam", 4, "--length-penalty", "average", "--alpha", 0.9)
    (found,) = plainformer.load(models[kind]).search(
        ["the"], max_tokens=9, beam_size=4, n_best=3, length_penalty="average", alpha=0.9
    )
    assert len({one.text for one in found}) > 1  # bytes that spell nothing are alike
    rows = [line.split("\t") for line in cli("generate", models[kind], "the", *options, "--n-best", 3).out.splitlines()]
    assert [score for score, _ in rows] == [f"{one.score:.4f}" for one in found]
    assert [line.encode().decode("unicode_escape").encode("latin-1").decode() for _, line in rows] == [
        one.text for one in found
    ]
    told = records(cli("generate", models[kind], "the", *options, "--n-best", 3, "--json"))
    assert told == [
        {"prompt": "the", "text": one.text, "rank": rank, "score": one.score, "logprob": one.logprob}
        | {"finished": one.finished}
        for rank, one in enumerate(found, 1)
    ]
    assert cli("generate", models[kind], "the", *options).out == f"the{found[0].text}\n"
    assert cli("generate", models[kind], "the", *options, "--no-prompt").out == f"{found[0].text}\n"


# What is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([""], "the prompt is empty; give some text to go on from"),
        (["é", "--skip-unknown"], "nothing is left of the prompt; give some text"),
        (["a", "--weights", "int4"], "there are no int4 weights; choose float32, bfloat16, int8, w8a8"),
        (["a", "--temperature", "-1"], "temperature is -1.0; give at least 0; 0 is greedy"),
        (["a", "--top-p", "2"], "--top-p is 2.0; give a share above 0 and at most 1"),
        (["a", "--top-k", "-1"], "--top-k is -1; give 0 (all) or how many"),
        (["a", "--min-p", "1.5"], "--min-p is 1.5"),
        (["a", "--repetition-penalty", "0"], "--repetition-penalty is 0.0"),
        (["a", "--max-tokens", "0"], "--max-tokens is 0"),
        (["a", "--max-tokens", "0", "--beam", "2"], "--max-tokens is 0"),
        (["a", "--seed", "-1"], "--seed is -1"),
        (["a", "--samples", "0"], "--samples: 0 samples are asked for; give at least 1"),
        (["a", "--stop", ""], "--stop is empty"),
        (["a", "--stop", "\\d"], "--stop: \\d is no escape; write \\n, "),
        (["a", "--beam", "0"], "--beam is 0; give 1 to"),
        (["a", "--beam", "2", "--n-best", "3"], "--n-best is 3; give 1 to 2, as many as the beam keeps"),
        (["a", "--beam", "2", "--length-penalty", "long"], "--length-penalty is 'long'"),
        (["a", "--beam", "2", "--alpha", "-11"], "--alpha is -11.0"),
        (["a", "--beam", "2"], "a prompt of 1 tokens and 33 more do not fit the context of 16"),
        (["a", "--n-best", "2"], "--n-best is for a beam search; give --beam too, or --samples"),
        (["a", "--alpha", "1"], "--alpha is for a beam search; give --beam too"),
        (["a", "--beam", "2", "--temperature", "1"], "--temperature and --beam exclude each other"),
        (["a", "--beam", "2", "--samples", "2"], "--samples and --beam exclude each other"),
        (["a", "--beam", "2", "--stop", "x"], "--stop and --beam exclude each other"),
        (["a", "--file", __file__], "a prompt and --file are both given; give one of them"),
        (["", "--file", __file__], "a prompt and --file are both given"),
        (["--file", "nowhere.txt"], "nowhere.txt: there is no such file; name a file of text"),
        (["--file", "."], ".: this is a folder, and a file is needed; name a"),
        (["the \udce9"], "prompt: character 5 is not UTF-8"),
        (["a", "--stop", "\udce9"], "--stop: character 1 is not UTF-8"),
        (["a\0b"], "prompt: character 2 is a NUL"),
    ],
)
def test_a_request_that_makes_no_sense_is_one_line(cli, models, words, said):
    assert said in cli("generate", models["character"], *words).error(2)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "stdin: the prompt is empty; give some text"),
        (b"\n", "stdin: the prompt is empty"),
        (b"the\nm\xe4n", "stdin:2: byte 2 of the line is not UTF-8; give UTF-8 text"),
        (b"the\n\nm\0n", "stdin:3: the line has a NUL: this is not text"),
        (b"a\r\xffa\xed\xa0\x80", "stdin:1: byte 3 of the line is not UTF-8"),
    ],
)
def test_a_prompt_that_is_no_text_is_one_line(cli, models, tmp_path, raw, said):
    assert cli("generate", models["character"], stdin=raw).error(2).startswith(said)
    (tmp_path / "prompt").write_bytes(raw)
    found = cli("generate", models["character"], "-f", tmp_path / "prompt").error(2)
    assert found.startswith(said.replace("stdin", f"{tmp_path}/prompt", 1))


def test_a_model_of_another_kind_or_none_is_one_line(cli, models, tmp_path):
    translator, model = models["translator"], models["character"]
    what = f"{translator}: this model is for plainformer translate, not for"
    assert cli("generate", translator, "the").error(2) == f"{what} generate"
    masked = models["masked"]
    assert cli("score", masked, "the").error(2) == f"{masked}: this model is for plainformer fill, not for score"
    assert cli("translate", model, "the").error(2) == (
        f"{model}: this model is for plainformer generate, not for translate"
    )
    assert cli("generate", tmp_path / "none", "the").error(2).startswith(f"{tmp_path}/none: there is no such model")
    assert cli("generate", f"{tmp_path}/n\udcff", "the").error(2).startswith(f"{tmp_path}/n\\udcff: there is no such")


def test_settings_of_the_folder_that_will_not_do_are_one_line(cli, models, tmp_path):
    folder = shutil.copytree(models["character"], tmp_path / "model")
    (folder / "generation_config.json").write_text('{"top_p": 7.0}')
    assert cli("generate", folder, "the").error(2).startswith(f"{folder}/generation_config.json: top_p is 7.0")


# As it is written, and to the end


ENDLESS = ("--max-tokens", 1_000_000, "--seed", 8)


def streamed(process, least: int) -> str:
    """The first bytes that come out while the process is still at work."""
    found = b""
    while len(found) < least:
        data = os.read(process.stdout.fileno(), 1000)
        assert data, process.stderr.read()
        found += data
    assert process.poll() is None
    return found.decode()


def test_ctrl_c_leaves_what_was_written(spawn, finished, models):
    process = spawn("generate", models["endless"], "the", *ENDLESS)
    first = streamed(process, 50)
    process.send_signal(signal.SIGINT)
    outcome = finished(process)
    text = f"the{written(models['endless'], 'the', max_tokens=40, seed=8)}"
    assert (outcome.code, outcome.err) == (130, "plainformer: interrupted\n")
    assert (first + outcome.out).startswith(text)


def test_a_reader_that_has_gone_is_no_error_to_speak_of(spawn, models):
    process = spawn("generate", models["endless"], "the", *ENDLESS)
    streamed(process, 10)
    process.stdout.close()
    assert (process.wait(60), process.stderr.read()) == (141, b"")
    process.stderr.close()


def everything(terminal: int) -> str:
    """What was written to a terminal, which ends with its last writer."""
    found = b""
    while True:
        try:
            data = os.read(terminal, 10_000)
        except OSError as end:
            if end.errno != errno.EIO:
                raise
            data = b""
        if not data:
            os.close(terminal)
            return found.decode().replace("\r\n", "\n")
        found += data


@pytest.mark.parametrize(("colour", "begins"), [("", "\x1b[1mthe moon\x1b[0m"), ("1", "the moon")])
def test_on_a_terminal_the_prompt_is_bold_and_the_pace_is_told(spawn, models, colour, begins):
    """A terminal for each stream; what a model of bytes writes cannot steer it."""
    (out, out_end), (err, err_end) = pty.openpty(), pty.openpty()
    process = spawn(
        *("generate", models["byte"], "the moon", "--max-tokens", 90, "--seed", 9),
        stdout=out_end,
        stderr=err_end,
        env={**os.environ, "NO_COLOR": colour},
    )
    os.close(out_end)
    os.close(err_end)
    said, told = everything(out), everything(err)
    assert process.wait(60) == 0
    text = written(models["byte"], "the moon", max_tokens=90, seed=9)
    shown = "".join(c if c in "\t\n" or (ord(c) >= 32 and not 127 <= ord(c) < 160) else "\ufffd" for c in text)
    assert shown != text
    assert said == f"{begins}{shown}\n"
    *_, last = told.splitlines()
    assert re.fullmatch(r"\d+ tokens, [\d,]+ tokens/s", last)
