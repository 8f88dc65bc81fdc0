"""`plainformer generate`: what a language model writes after a prompt, as it writes it."""

import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import escaped, unescaped
from plainformer.cli.page import Pace, put
from plainformer.cli.reading import Given, check_argument, check_source, one_text
from plainformer.cli.usage import in_options
from plainformer.cli.work import begin_work, say_aside
from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.decode.text_generator import Chunk, TextGenerator

MOST_NAMED = 20  # of the unknown characters of a prompt

MaxTokens = Annotated[int | None, typer.Option(help="The most tokens written.")]
Temperature = Annotated[float | None, typer.Option(help="Below 1 the likely is likelier; 0 takes the likeliest.")]
TopK = Annotated[int | None, typer.Option(help="Only the K most probable tokens; 0 is all.")]
TopP = Annotated[float | None, typer.Option(help="Only the likeliest tokens that together have this probability.")]
MinP = Annotated[float | None, typer.Option(help="Only tokens at least so many times as probable as the likeliest.")]
Repetition = Annotated[float | None, typer.Option(help="Above 1, what is in the text already becomes less likely.")]
Stop = Annotated[
    list[str] | None,
    typer.Option(help="End before this string (may be given again); \\n is a newline, \\\\ a backslash."),
]
Samples = Annotated[int, typer.Option(help="This many texts, which differ by chance.")]
Seed = Annotated[int | None, typer.Option(help="Another seed, another text; the same seed, the same text.")]
Beam = Annotated[int | None, typer.Option(help="Search for the most probable text with a beam of this size.")]
NBest = Annotated[int | None, typer.Option(help="With --beam: the so many best, each with its score.")]
Penalty = Annotated[
    str | None,
    typer.Option(
        metavar="gnmt|average|none", help="With --beam: gnmt ((5 + length) / 6)^alpha, average length^alpha, or none."
    ),
]
Alpha = Annotated[float | None, typer.Option(help="With --beam: exponent of the length penalty.")]
Weights = Annotated[
    str,
    typer.Option(
        metavar="float32|bfloat16|int8|w8a8",
        help="Write with float32 weights (as trained), bfloat16, int8, or w8a8 (inputs rounded too).",
    ),
]
NoPrompt = Annotated[bool, typer.Option("--no-prompt", help="Print the new text alone, without the prompt.")]
Skip = Annotated[bool, typer.Option("--skip-unknown", help="Leave out of the prompt what the vocabulary lacks.")]
AsJson = Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")]


def generate(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    prompt: Annotated[str | None, typer.Argument(help="What to go on from; without it, it is read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the prompt from this file.")] = None,
    max_tokens: MaxTokens = None,
    temperature: Temperature = None,
    top_k: TopK = None,
    top_p: TopP = None,
    min_p: MinP = None,
    repetition_penalty: Repetition = None,
    stop: Stop = None,
    samples: Samples = 1,
    seed: Seed = None,
    beam: Beam = None,
    n_best: NBest = None,
    length_penalty: Penalty = None,
    alpha: Alpha = None,
    weights: Weights = "float32",
    no_prompt: NoPrompt = False,
    skip_unknown: Skip = False,
    as_json: AsJson = False,
    base: BaseOption = None,
) -> None:
    """Write on from a prompt, by a language model.

    Printed are the prompt and what comes after it, as it is written. The prompt is the argument as it stands, or else
    all of the file or of standard input, however many lines it has, without the one newline that an editor or echo puts
    at its end. One newline is printed after the text.

    What is not said here is as the model's generation_config.json says. Several samples are each headed by a line "---
    sample 2 of 3". With --n-best there are lines of score, tab, continuation, with \\n for a newline in it.
    """
    check_source(prompt, file, "a prompt", fix="name a file of text")
    sampled = _given(temperature=temperature, top_k=top_k, top_p=top_p, min_p=min_p, seed=seed)
    searched = _given(n_best=n_best, length_penalty=length_penalty, alpha=alpha)
    _check_options(beam, searched, sampled | _given(stop=stop, samples=None if samples == 1 else samples))
    stops = [_stop(string) for string in stop or []]
    from plainformer.decode.load import load_as
    from plainformer.decode.text_generator import TextGenerator

    begin_work()
    writer = load_as(model, TextGenerator, weights=weights, base=base, say=say_aside)
    text = _known(writer, one_text(prompt, file, "prompt"), skip_unknown)
    changes = _given(max_tokens=max_tokens, repetition_penalty=repetition_penalty)
    changes |= sampled if beam is None else {"beam_size": beam, **searched}
    with in_options(changes):
        if beam is None:
            _sample(writer, text, stops, samples, changes, not no_prompt, as_json)
        else:
            _search(writer, text, changes, not no_prompt, as_json)


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _check_options(beam: int | None, searched: dict[str, Any], sampled: dict[str, Any]) -> None:
    """Raises InputError for an option that would have no effect."""
    if beam is None and searched:
        fix = "give --beam too" if "n_best" not in searched else "give --beam too, or --samples for texts by chance"
        raise InputError(f"{_flag(next(iter(searched)))} is for a beam search", fix=fix)
    if beam is not None and sampled:
        fix = "give one of them"
        raise InputError(f"{_flag(next(iter(sampled)))} and --beam exclude each other: a search draws nothing", fix=fix)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _stop(string: str) -> str:
    check_argument(string, "--stop")
    if not string:
        raise InputError("the string is empty", where="--stop", fix="leave it out, or write \\n for a newline")
    return unescaped(string, "--stop")


def _known(writer: "TextGenerator", prompt: Given, skip_unknown: bool) -> str:
    """The prompt, without what the vocabulary lacks if that is to be left out.

    Raises:
        InputError: nothing is there to go on from, or something in it is unknown and must not be left out.
    """
    tokenizer, text = writer.tokenizer, prompt.text
    ids, left_out = tokenizer.encode(text), ""
    if count := tokenizer.count_unknown(ids):
        unknown = tokenizer.unknown_characters(text) or tokenizer.unknown_pieces(text)
        more = f" and {len(unknown) - MOST_NAMED:,} more" if len(unknown) > MOST_NAMED else ""
        named = ", ".join(map(repr, unknown[:MOST_NAMED])) + more
        if not skip_unknown:
            place, fix = (
                prompt.place(max(0, text.find(unknown[0]))),
                "write it otherwise, leave it out (--skip-unknown), or train with tokenizer.kind=bpe, which has bytes",
            )
            raise InputError(f"the model's vocabulary does not have {named}", where=place, fix=fix)
        ids = [id for id in ids if id != tokenizer.unk_id]
        text = tokenizer.decode(ids)
        left_out = f"left out of the prompt, in {count:,} place{'s' * (count > 1)}, as the vocabulary lacks it: {named}"
    if not ids:
        what = "nothing is left of the prompt" if left_out else "the prompt is empty"
        fix = r"give some text to go on from; in many shells $'\n' is a newline, to begin afresh"
        raise InputError(what, where=prompt.name if prompt.has_lines else None, fix=fix)
    if left_out:
        typer.echo(left_out, err=True)
    return text


def _sample(
    writer: "TextGenerator",
    prompt: str,
    stops: Sequence[str],
    samples: int,
    changes: dict[str, Any],
    show_prompt: bool,
    as_json: bool,
) -> None:
    settings = writer.settings_with(changes)  # what is wrong with them is said before anything is printed
    if samples < 1:
        raise InputError(f"{samples} samples are asked for", where="--samples", fix="give at least 1")
    if samples > 1 and settings.temperature == 0.0:
        raise InputError("at temperature 0 all samples are the same", where="--samples", fix="raise --temperature")
    slides: list[None] = []
    chunks = writer.stream_samples(prompt, samples=samples, stop=stops, on_slide=lambda: slides.append(None), **changes)
    shown, pace = prompt if show_prompt else None, Pace()
    if as_json:
        _print_records(chunks, _given(prompt=shown), {"seed": settings.seed}, pace)
    else:
        _print_texts(chunks, shown or "", samples, pace)
    if slides:
        context, half = writer.model.config.context, -(-writer.model.config.context // 2)
        said = f"the text did not fit the context of {context:,} tokens; beyond it, a token was chosen"
        typer.echo(f"{said} by the {half:,} to {context:,} before it", err=True)
    if sys.stderr.isatty():
        typer.echo(str(pace), err=True)


def _print_texts(chunks: Iterator["Chunk"], prompt: str, samples: int, pace: Pace) -> None:
    def begin(sample: int) -> None:
        if samples > 1:
            put(f"--- sample {sample + 1} of {samples}\n")
        put(prompt, bold=True)

    begin(0)
    try:
        for chunk in chunks:
            pace.count(chunk.tokens)
            put(chunk.text)
            if chunk.finished is not None:
                put("\n")
                if chunk.sample + 1 < samples:
                    begin(chunk.sample + 1)
    except KeyboardInterrupt:
        if sys.stdout.isatty():
            put("\n")  # what is said now begins a line
        raise


def _print_records(chunks: Iterator["Chunk"], before: dict[str, Any], after: dict[str, Any], pace: Pace) -> None:
    texts: list[str] = []
    tokens = 0
    for chunk in chunks:
        pace.count(chunk.tokens)
        texts.append(chunk.text)
        tokens += chunk.tokens
        if chunk.finished is not None:
            said = {"text": "".join(texts), "sample": chunk.sample + 1}
            _print_record({**before, **said, **after, "tokens": tokens, "finished": chunk.finished})
            texts, tokens = [], 0


def _search(writer: "TextGenerator", prompt: str, changes: dict[str, Any], show_prompt: bool, as_json: bool) -> None:
    (found,) = writer.search([prompt], **changes)
    for rank, one in enumerate(found, 1):
        if as_json:
            said = {"text": one.text, "rank": rank, "score": one.score, "logprob": one.logprob}
            _print_record({**_given(prompt=prompt if show_prompt else None), **said, "finished": one.finished})
        elif "n_best" in changes:
            put(f"{one.score:z.4f}\t{escaped(one.text)}\n")
        else:
            put(prompt if show_prompt else "", bold=True)
            put(one.text + "\n")


def _print_record(record: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
    sys.stdout.flush()
