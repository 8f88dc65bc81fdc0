"""`plainformer score`: how probable a text is to a language model, or a translation to a translator."""

import json
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.bad_lines import BadLines, OnBadLineOption
from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import escaped
from plainformer.cli.reading import Cut, Lines, check_source, one_text, texts_or_lines
from plainformer.cli.work import begin_work
from plainformer.decode.limits import MOST_SOURCE
from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.decode.score import PairScore
    from plainformer.decode.text_generator import TextGenerator, TextScore
    from plainformer.decode.translator import Translator
    from plainformer.tokenizer import Tokenizer


def score(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, one is read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the text from this file.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Every line that is read is a text of its own.")] = False,
    on_bad_line: OnBadLineOption = "stop",
    tokens: Annotated[bool, typer.Option("--tokens", help="Print every token with its log-probability.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")] = False,
    base: BaseOption = None,
) -> None:
    """Tell how probable a text is, or a translation.

    Texts are scored by a language model, a line each: log-probability in nats, how many tokens that is of, perplexity
    (e to the mean negative log-probability of a token), and bits per byte. By a translator, score pairs: every argument
    or line is a source, a tab and a target, which is scored with its end, without bits per byte.

    A text is an argument as it stands, or else all of the file or of standard input, without the one newline that an
    editor or echo puts at its end. Its first token is given, not scored: nothing stands before it.

    With --tokens there are lines of token, tab, log-probability instead (- for the first token; \\n is a newline), with
    an empty line between texts.

    A text that is empty or of a single token is a bad line. With --on-bad-line empty that has an empty line in place of
    all this (with --json, null for its figures).
    """
    check_source(text, file, "texts", fix="name a file of text")
    if text and lines:
        raise InputError("--lines is for what is read", fix="give texts, or --lines")
    from plainformer.decode.load import load_as
    from plainformer.decode.text_generator import TextGenerator
    from plainformer.decode.translator import Translator

    begin_work()
    loaded = load_as(model, (TextGenerator, Translator), "score", base=base, say=None)
    bad = BadLines(on_bad_line)
    if isinstance(loaded, Translator):
        _score_pairs(loaded, texts_or_lines(text, file, bad=bad), bad, tokens, as_json)
    else:
        if bad.on != "stop" and not (text or lines):
            raise InputError(
                "--on-bad-line is for lines, and the whole text is one", fix="give --lines, or leave it out"
            )
        _score_texts(loaded, _texts(text, file, lines, bad), bad, tokens, as_json)
    bad.end()


def _score_texts(writer: "TextGenerator", texts: Iterator[Lines], bad: BadLines, tokens: bool, as_json: bool) -> None:
    context, long = writer.model.config.context, Cut()

    def answer(places: Sequence[str], lines: Sequence[str]) -> "list[TextScore]":
        return writer.score(lines, where=places)

    def check(place: str, line: str) -> None:
        writer.encode_scored([line], where=[place])

    def said(place: str, found: "TextScore | None") -> str:
        if found is not None and len(found.logprobs) > context:
            long.count([place])
        if as_json:
            record = {"where": place, **_record(found), **(_by_token(writer.tokenizer, found) if tokens else {})}
            return json.dumps(record, ensure_ascii=False) + "\n"
        if found is None:
            return "\n"
        return "".join(_token_lines(writer.tokenizer, found)) if tokens else _line(found)

    _print(texts, bad, answer, check, said, between="\n" if tokens and not as_json else "")
    half = -(-context // 2)
    long.tell(lambda count, first: _said_of_long(count, first, context), f" by the {half:,} to {context:,} before it")


def _said_of_long(count: int, first: str, context: int) -> str:
    many = f"{count:,} texts do" if count > 1 else "1 text does"
    return f"{many} not fit the context of {context:,} tokens (first: {first}); beyond it, a token was scored"


def _print(
    chunks: Iterator[Lines],
    bad: BadLines,
    answer: Callable[[Sequence[str], Sequence[str]], Sequence[Any]],
    check: Callable[[str, str], None],
    said: Callable[[str, Any], str],
    between: str,
) -> None:
    """What is `said` of the answer to every line, as soon as it is there, with something `between` two of them."""
    first = True
    for where, lines in chunks:
        for place, _, found in bad.answers(where, lines, answer, check):
            sys.stdout.write(("" if first else between) + said(place, found))
            first = False
        sys.stdout.flush()


def _texts(texts: list[str] | None, file: Path | None, lines: bool, bad: BadLines) -> Iterator[Lines]:
    """The texts with their places, as they come."""
    if texts or lines:
        yield from texts_or_lines(texts, file, bad=bad)
    else:
        one = one_text(None, file, "text")
        yield [one.name], [one.text]


def _score_pairs(translator: "Translator", chunks: Iterator[Lines], bad: BadLines, tokens: bool, as_json: bool) -> None:
    """Print what is to be said of every line of source, tab, target. Raises InputError for a line that is none."""
    tokenizer = translator.target_tokenizer

    def answer(places: Sequence[str], lines: Sequence[str]) -> "list[tuple[PairScore, list[str]]]":
        sources, targets = _sides(translator, places, lines)
        named = [[tokenizer.token(id) for id in (*ids, tokenizer.eos_id)] for ids in tokenizer.encode_batch(targets)]
        return list(zip(translator.score(sources, targets, where=places), named, strict=True))

    def check(place: str, line: str) -> None:
        _sides(translator, [place], [line])

    def said(place: str, found: "tuple[PairScore, list[str]] | None") -> str:
        score, named = found or (None, [])
        by_token = [
            (_said(tokenizer, token), value)
            for token, value in zip(named, score.token_logprobs if score else (), strict=True)
        ]
        if as_json:
            finite = score and math.isfinite(score.perplexity)
            record = {"where": place, "logprob": score and score.logprob, "tokens": score and score.length}
            record |= {"perplexity": score.perplexity if score and finite else None}
            record |= {"token_logprobs": by_token if score else None} if tokens else {}
            return json.dumps(record, ensure_ascii=False) + "\n"
        if score is None:
            return "\n"
        if tokens:
            return "".join(f"{escaped(token)}\t{value:z.4f}\n" for token, value in by_token)
        return f"{score.logprob:z.4f} nats\t{_count(score.length)}\tperplexity {score.perplexity:#.5g}\n"

    _print(chunks, bad, answer, check, said, between="\n" if tokens and not as_json else "")


def _sides(translator: "Translator", places: Sequence[str], lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """The sources and the targets of lines. Raises InputError for one that is no pair, or of which a side is long."""
    pairs = [line.split("\t") for line in lines]
    for place, pair in zip(places, pairs, strict=True):
        if len(pair) != 2:
            what = f"a pair is a source, a tab and a target, and here are {len(pair) - 1} tabs"
            raise InputError(what, where=place, fix="give one pair a line")
    sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for side, tokenizer in ((sources, translator.source_tokenizer), (targets, translator.target_tokenizer)):
        translator.check_lengths(side, places, MOST_SOURCE, tokenizer=tokenizer, fix="split it into sentences")
    return sources, targets


def _line(score: "TextScore") -> str:
    return (
        f"{score.logprob:z.4f} nats\t{_count(len(score.logprobs))}\t"
        f"perplexity {score.perplexity:#.5g}\t{score.bits_per_byte:z.4f} bits/byte\n"
    )


def _count(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def _record(score: "TextScore | None") -> dict[str, Any]:
    if score is None:
        return dict.fromkeys(("logprob", "tokens", "perplexity", "bits_per_byte"))
    perplexity = score.perplexity if math.isfinite(score.perplexity) else None
    return {
        "logprob": score.logprob,
        "tokens": len(score.logprobs),
        "perplexity": perplexity,
        "bits_per_byte": score.bits_per_byte,
    }


def _by_token(tokenizer: "Tokenizer", score: "TextScore | None") -> dict[str, Any]:
    if score is None:
        return {"token_logprobs": None}
    said = [_said(tokenizer, token) for token in score.tokens]
    return {"token_logprobs": [list(pair) for pair in zip(said, (None, *score.logprobs), strict=True)]}


def _token_lines(tokenizer: "Tokenizer", score: "TextScore") -> Iterator[str]:
    for token, logprob in zip(score.tokens, (None, *score.logprobs), strict=True):
        yield f"{escaped(_said(tokenizer, token))}\t{'-' if logprob is None else f'{logprob:z.4f}'}\n"


def _said(tokenizer: "Tokenizer", token: str) -> str:
    """The text of a token, or its name where it is part of a character or stands for no text."""
    id = tokenizer.id(token)
    # After itself, since a token that begins a text may lose its leading space.
    text = "" if id is None else tokenizer.decode([id, id])[len(tokenizer.decode([id])) :]
    return token if not text or "\ufffd" in text else text
