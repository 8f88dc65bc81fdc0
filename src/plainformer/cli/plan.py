"""`plainformer plan`: what a training would take on devices that need not be there."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plainformer.cli.recipes import names
from plainformer.cli.train import Set
from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.plan.measure import Measured
    from plainformer.plan.plan import Plan
    from plainformer.recipe import Recipe

COMPILERS = ("cpu", "chip", "none")

Subject = Annotated[
    str,
    typer.Argument(metavar="RECIPE", help="A recipe, as for train, or a preset such as gpt2.", autocompletion=names),
]
Shape = Annotated[str | None, typer.Option(metavar="SHAPE", help="Such as data=2,fsdp=4,tensor=2 [default: the best].")]
Compiler = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="Read exchange and memory from the step compiled for devices that the processor plays (cpu), or for the "
        "chip itself (chip: with JAX for CUDA or libtpu installed, though the chip be not there); none: by rule alone.",
    ),
]
Picture = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw which parameter lives where, as .svg or (extra plots) .png.")
]


def plan(
    recipe: Subject,
    mesh: Shape = None,
    devices: Annotated[int | None, typer.Option(min=1, help="How many [default: the mesh's].")] = None,
    chip: Annotated[
        str, typer.Option(metavar="NAME", help="h100, h200, a100, b200, v4, v5e, v5p, v6e or cpu.")
    ] = "h100",
    compiler: Compiler = "none",
    whole: Annotated[bool, typer.Option("--whole", help="Compile all layers, and not small models of them.")] = False,
    vocab: Annotated[int | None, typer.Option(min=1, help="Tokens of the vocabulary, if not the recipe's.")] = None,
    measure: Annotated[bool, typer.Option("--measure", help="Run some steps on this machine, and compare.")] = False,
    picture: Picture = None,
    as_json: Annotated[bool, typer.Option("--json", help="The plan as JSON.")] = False,
    set: Set = None,
) -> None:
    """Plan a training: memory, exchange and time of a step.

    Everything is computed from shapes: no text is read, and no weight is drawn. Shown are the memory of a device, what
    the devices exchange, how long a step takes at least and what binds it, the largest batch that fits, and all meshes
    of as many devices, ranked. A preset is planned with a batch of its own.
    """
    _check(chip, compiler, whole, picture)
    from plainformer.plan.place import play, sizes

    loaded = _loaded(recipe, set or [], sizes(mesh, devices)[1])
    if mesh is None and loaded.train.mesh:
        mesh = str(loaded.train.mesh)
    play(sizes(mesh, devices)[1] if compiler == "cpu" or measure else 1, alone=not measure)
    from plainformer.plan.plan import plan as planned

    found = planned(loaded, mesh=mesh, devices=devices, chip=chip, compiler=compiler, whole=whole, vocab=vocab)
    if picture is not None:
        from plainformer.inspect.chart import save_svg
        from plainformer.plan.picture import drawing

        save_svg(drawing(found), picture)
    compared = None
    if measure:
        from plainformer.plan.measure import measured

        compared = measured(found)
    _show(found, compared, picture, as_json)


def _check(chip: str, compiler: str, whole: bool, picture: Path | None) -> None:
    """Before JAX is started, refuse what cannot be. Raises InputError."""
    from plainformer.plan.chips import chip_named

    chip_named(chip)
    if compiler not in COMPILERS:
        fix = f"choose one of {', '.join(COMPILERS)}"
        raise InputError(f"there is no compiler {compiler!r}", where="--compiler", fix=fix)
    if whole and compiler == "none":
        raise InputError("--whole is how a step is compiled, and none is", fix="say --compiler cpu, or leave it out")
    if picture is not None:
        from plainformer.inspect.chart import check_picture

        check_picture(picture, "vl_convert")


def _loaded(recipe: str, changes: list[str], devices: int) -> "Recipe":
    """A recipe, or that of a preset."""
    from plainformer.models.presets import PRESETS
    from plainformer.plan.subject import preset_recipe
    from plainformer.recipe import load_recipe, parse_recipe

    if recipe in PRESETS and not Path(recipe).exists():
        return parse_recipe(preset_recipe(recipe, devices), changes, where=f"preset {recipe}", name=recipe)
    return load_recipe(recipe, changes)


def _show(found: "Plan", compared: "Measured | None", picture: Path | None, as_json: bool) -> None:
    from plainformer.plan.report import as_json as in_json, lines

    if as_json:
        typer.echo(json.dumps({**in_json(found), **({"measured": compared.as_json()} if compared else {})}))
        return
    for line in (*lines(found), *(compared.lines() if compared else ())):
        typer.echo(line)
    if picture is not None:
        typer.echo(f"\nwhich parameter lives where is drawn in {picture}")
