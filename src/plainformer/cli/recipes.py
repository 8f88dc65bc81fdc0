"""`plainformer recipes`: those that come with plainformer, and what each is for, needs, costs and reaches."""

import shutil
import sys
import textwrap
from typing import Annotated

import typer

from plainformer.errors import InputError
from plainformer.shipped import did_you_mean, find_recipe, shipped_files, shipped_recipes

__all__ = ["find_recipe", "names", "recipes"]

INDENT = "         "


def names() -> list[str]:
    """The recipes that there are, for completion."""
    return list(shipped_files())


def recipes(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="Print this recipe, to be saved and changed.", autocompletion=names),
    ] = None,
) -> None:
    """List the recipes that come with plainformer.

    For each there is its name and task, what it is for, the data that it reads, how long it took where it was run, and
    the score that it reached. plainformer train NAME runs it, from anywhere; plainformer recipes NAME prints it.
    """
    if name is not None:
        files = shipped_files()
        if name not in files:
            near = did_you_mean(name, files)
            raise InputError(f"there is no recipe {name!r}", fix=f"name one of {', '.join(files)}{near}")
        sys.stdout.write(files[name].read_text(encoding="utf-8"))
        return
    width = max(60, min(shutil.get_terminal_size().columns, 120))
    for one in shipped_recipes():
        typer.echo(f"{one.name}  ({one.task})")
        for what, said in (("", one.description), ("data", one.data), ("cost", one.cost), ("score", one.score)):
            lead = f"  {what}".ljust(len(INDENT)) if what else "  "
            typer.echo(textwrap.fill(said, width, initial_indent=lead, subsequent_indent=INDENT if what else "  "))
        typer.echo()
    typer.echo(
        "Run one: plainformer train NAME. Print one: plainformer recipes NAME. All settings: plainformer settings."
    )
