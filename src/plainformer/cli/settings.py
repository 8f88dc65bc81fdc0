"""`plainformer settings`: everything that a recipe, or `--set`, can say."""

import shutil
import textwrap
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated

import typer

from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.recipe.settings import Setting


def settings(
    section: Annotated[
        str | None,
        typer.Argument(metavar="SECTION", help="Only a section, or a setting, such as train or train.steps."),
    ] = None,
    task: Annotated[
        str | None, typer.Option(metavar="TASK", help="Only what recipes of this task have, such as translation.")
    ] = None,
) -> None:
    """List every setting of a recipe: type, default, meaning.

    In a recipe a setting stands in its section; on the command line it is --set SECTION.NAME=VALUE. What only some
    tasks have, or have otherwise, says so.
    """
    from plainformer.recipe import TASKS
    from plainformer.recipe.settings import sections_of, settings_of

    if task is not None and task not in TASKS:
        raise InputError(f"there is no task {task!r}", where="--task", fix=f"choose one of {', '.join(TASKS)}")
    tasks = {name: kind for name, kind in TASKS.items() if task in (None, name)}
    by_task = {name: settings_of(kind) for name, kind in tasks.items()}
    about = {(one, name): said for one, kind in tasks.items() for name, said in sections_of(kind).items()}
    sections = list(dict.fromkeys(name for found in by_task.values() for name in found))
    keys = list(dict.fromkeys(one.key for found in by_task.values() for entries in found.values() for one in entries))
    if section is not None and section not in (*sections, *keys):
        raise _unknown(section, [*filter(None, sections), *keys])
    for name in sections:
        having: dict[Setting, list[str]] = {}
        for one, found in by_task.items():
            for setting in found.get(name, ()):
                if section in (None, name or "name", setting.key):
                    having.setdefault(setting, []).append(one)
        for own in dict.fromkeys(map(tuple, having.values())):
            _show(name, own, len(own) == len(tasks), about, [one for one in having if tuple(having[one]) == own])
    typer.echo("Change one: plainformer train RECIPE --set SECTION.NAME=VALUE")


def _show(
    section: str, own: tuple[str, ...], shared: bool, about: "dict[tuple[str, str], str]", settings: "list[Setting]"
) -> None:
    """The settings of a section that the same tasks have, two lines each."""
    whose = "" if shared else f" of {', '.join(own)}"
    said = {about.get((one, section), "") for one in own}  # nothing, where each task has its own to say
    title = f"[{section}]{whose}" if section else f"Above all sections{whose}"
    typer.echo(f"{title}: {said.pop()}" if len(said) == 1 and "" not in said else title)
    width = max(60, min(shutil.get_terminal_size().columns, 120))
    for one in settings:
        typer.echo(
            f"  {one.key} = {one.default} ({one.type})" if one.has_value else f"  {one.key} ({one.type}, {one.default})"
        )
        typer.echo(textwrap.fill(one.meaning, width, initial_indent=" " * 6, subsequent_indent=" " * 6))
    typer.echo()


def _unknown(section: str, known: list[str]) -> InputError:
    if near := get_close_matches(section, known, n=1):
        fix = f"did you mean {near[0]}"
    else:
        fix = f"the sections are {', '.join(name for name in known if '.' not in name)}"
    return InputError(f"there is no section or setting {section!r}", fix=fix)
