"""`plainformer evaluate`: BLEU, chrF and perplexity of a model on a set of pairs."""

from pathlib import Path
from typing import Annotated

import typer

from plainformer.cli.progress import show_progress
from plainformer.cli.train import Set, moved_to
from plainformer.errors import InputError
from plainformer.toml import inline


def evaluate(
    model: Annotated[Path, typer.Argument(help="A run, or a model folder.")],
    pairs: Annotated[str | None, typer.Option("--pairs", help="The set, by its name or file [default: test].")] = None,
    data: Annotated[str | None, typer.Option(help="The folder it is in [default: the recipe's].")] = None,
    source: Annotated[str | None, typer.Option(help="Source language [default: the recipe's].")] = None,
    target: Annotated[str | None, typer.Option(help="Target language [default: the recipe's].")] = None,
    text: Annotated[list[Path] | None, typer.Option(help="For a language model: a file of text.")] = None,
    beam: Annotated[int | None, typer.Option(help="Beam size [default: the recipe's].")] = None,
    tokenize: Annotated[str | None, typer.Option(help="sacreBLEU's tokenizer: 13a, none, intl, …")] = None,
    lowercase: Annotated[bool | None, typer.Option("--lowercase/--cased", help="Ignore case in scoring.")] = None,
    output: Annotated[Path | None, typer.Option(help="Write the translations here, a line each.")] = None,
    json: Annotated[Path | None, typer.Option(help="Write the report here as JSON.")] = None,
    set: Set = None,
) -> None:
    """Score a translator on pairs with sacreBLEU, or a language model on text in bits a byte."""
    from plainformer.machine import keep_compiled_programs, keep_freed_memory

    keep_freed_memory()
    keep_compiled_programs()
    from plainformer.decode.translator import one_line
    from plainformer.runs.evaluation import evaluate_run

    changes = [*(set or []), *moved_to(data)]
    flags = {
        "data.source": source,
        "data.target": target,
        "data.test": pairs,
        "decode.beam_size": beam,
        "evaluate.tokenize": tokenize,
        "evaluate.lowercase": lowercase,
    }
    changes += [f"{key}={inline(value)}" for key, value in flags.items() if value is not None]
    if not model.exists():
        raise InputError("there is no such run or model", where=str(model), fix="name the folder of one")
    report, translations = evaluate_run(model, changes, text=text or (), report_file=json, progress=show_progress)
    if output is not None and not translations:
        raise InputError("only a translator has translations to write", where="--output", fix="leave it out")
    if output is not None:
        output.write_text("".join(one_line(text) + "\n" for text in translations), encoding="utf-8")
    typer.echo(str(report))
