"""`plainformer score`: how probable a text is to a language model, or a translation to a translator."""

import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.base import BaseOption
from plainformer.cli.escapes import escaped
from plainformer.cli.reading import Lines, check_source, one_text, texts_or_lines
from plainformer.cli.work import begin_work
from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.decode.translator import Translator
    from plainformer.decode.writer import TextScore, Writer
    from plainformer.text import Tokenizer

LONGEST = 1024  # tokens of a source that is scored


def score(
    model: Annotated[Path, typer.Argument(help="A model folder, or a run.")],
    text: Annotated[list[str] | None, typer.Argument(help="Texts; without any, one is read.")] = None,
    file: Annotated[Path | None, typer.Option("--file", "-f", help="Read the text from this file.")] = None,
    lines: Annotated[bool, typer.Option("--lines", help="Every line that is read is a text of its own.")] = False,
    tokens: Annotated[bool, typer.Option("--tokens", help="Print every token with its log-probability.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A line of JSON for every text.")] = False,
    base: BaseOption = None,
) -> None:
    """Score texts by a language model, a line each: its log-probability in nats, how many tokens that is of,
    perplexity (e to the mean negative log-probability of a token), and bits per byte. By a translator, score pairs:
    every argument or line is a source, a tab and a target, which is scored with its end, without bits per byte.

    A text is an argument as it stands, or else all of the file or of standard input, without the one newline that an
    editor or echo puts at its end. Its first token is given, not scored: nothing stands before it.

    With --tokens there are lines of token, tab, log-probability instead (- for the first token; \\n is a newline), with
    an empty line between texts.
    """
    check_source(text, file, "texts", fix="name a file of text")
    if text and lines:
        raise InputError("--lines is for what is read", fix="give texts, or --lines")
    from plainformer.decode.load import load_as
    from plainformer.decode.translator import Translator
    from plainformer.decode.writer import Writer

    begin_work()
    loaded = load_as(model, (Writer, Translator), "score", base=base, say=None)
    if isinstance(loaded, Translator):
        sys.stdout.writelines(_pair_lines(loaded, texts_or_lines(text, file), tokens, as_json))
    else:
        _score_texts(loaded, _texts(text, file, lines), tokens, as_json)


def _score_texts(writer: "Writer", texts: Iterator[Lines], tokens: bool, as_json: bool) -> None:
    context, long, first = writer.model.config.context, [], True
    for where, chunk in texts:
        for place, found in zip(where, writer.score(chunk, where=where), strict=True):
            if as_json:
                record = {"where": place, **_record(found), **(_by_token(writer.tokenizer, found) if tokens else {})}
                sys.stdout.write(json.dumps(record, ensure_ascii=False) + "\n")
            elif tokens:
                sys.stdout.write("" if first else "\n")
                sys.stdout.writelines(_token_lines(writer.tokenizer, found))
            else:
                sys.stdout.write(_line(found))
            first = False
            long += [place] if len(found.logprobs) > context else []
        sys.stdout.flush()
    if long:
        many = f"{len(long):,} texts do" if len(long) > 1 else "1 text does"
        said = f"{many} not fit the context of {context:,} tokens (first: {long[0]}); beyond it, a token was scored"
        typer.echo(f"{said} by the {-(-context // 2):,} to {context:,} before it", err=True)


def _texts(texts: list[str] | None, file: Path | None, lines: bool) -> Iterator[Lines]:
    """The texts with their places, as they come."""
    if texts or lines:
        yield from texts_or_lines(texts, file)
    else:
        one = one_text(None, file, "text")
        yield [one.name], [one.text]


def _pair_lines(translator: "Translator", chunks: Iterator[Lines], tokens: bool, as_json: bool) -> Iterator[str]:
    """What is said of every line of source, tab, target. Raises InputError for a line that is none."""
    tokenizer, first = translator.target_tokenizer, True
    for where, chunk in chunks:
        pairs = [line.split("\t") for line in chunk]
        for place, pair in zip(where, pairs, strict=True):
            if len(pair) != 2:
                what = f"a pair is a source, a tab and a target, and here are {len(pair) - 1} tabs"
                raise InputError(what, where=place, fix="give one pair a line")
        sources, targets = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        translator.check_lengths(sources, where, LONGEST)
        names = [[tokenizer.token(id) for id in (*ids, tokenizer.eos_id)] for ids in tokenizer.encode_batch(targets)]
        for place, found, named in zip(where, translator.score(sources, targets), names, strict=True):
            by_token = [
                (_said(tokenizer, token), value) for token, value in zip(named, found.token_logprobs, strict=True)
            ]
            if as_json:
                record = {"where": place, "logprob": found.logprob, "tokens": found.length}
                record |= {"perplexity": found.perplexity if math.isfinite(found.perplexity) else None}
                record |= {"token_logprobs": by_token} if tokens else {}
                yield json.dumps(record, ensure_ascii=False) + "\n"
            elif tokens:
                yield "" if first else "\n"
                yield from (f"{escaped(said)}\t{value:.4f}\n" for said, value in by_token)
            else:
                yield f"{found.logprob:.4f} nats\t{_count(found.length)}\tperplexity {found.perplexity:#.5g}\n"
            first = False


def _line(score: "TextScore") -> str:
    return (
        f"{score.logprob:.4f} nats\t{_count(len(score.logprobs))}\t"
        f"perplexity {score.perplexity:#.5g}\t{score.bits_per_byte:.4f} bits/byte\n"
    )


def _count(tokens: int) -> str:
    return "1 token" if tokens == 1 else f"{tokens} tokens"


def _record(score: "TextScore") -> dict[str, Any]:
    perplexity = score.perplexity if math.isfinite(score.perplexity) else None
    return {
        "logprob": score.logprob,
        "tokens": len(score.logprobs),
        "perplexity": perplexity,
        "bits_per_byte": score.bits_per_byte,
    }


def _by_token(tokenizer: "Tokenizer", score: "TextScore") -> dict[str, Any]:
    said = [_said(tokenizer, token) for token in score.tokens]
    return {"token_logprobs": [list(pair) for pair in zip(said, (None, *score.logprobs), strict=True)]}


def _token_lines(tokenizer: "Tokenizer", score: "TextScore") -> Iterator[str]:
    for token, logprob in zip(score.tokens, (None, *score.logprobs), strict=True):
        yield f"{escaped(_said(tokenizer, token))}\t{'-' if logprob is None else f'{logprob:.4f}'}\n"


def _said(tokenizer: "Tokenizer", token: str) -> str:
    """The text of a token, or its name where it is part of a character or stands for no text."""
    id = tokenizer.id(token)
    # After itself, since a token that begins a text may lose its leading space.
    text = "" if id is None else tokenizer.decode([id, id])[len(tokenizer.decode([id])) :]
    return token if not text or "\ufffd" in text else text
