"""A finished run, or any model folder, scored on a set of pairs."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from plainformer import toml
from plainformer.decode.load import find_model, load_as
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.evaluate.evaluation import evaluate
from plainformer.evaluate.report import Report, write_report
from plainformer.folder import read_config
from plainformer.recipe import Recipe, load_recipe, parse_recipe
from plainformer.runs.folder import generation_of
from plainformer.runs.text import read_pairs_of


def evaluate_run(
    folder: Path,
    changes: Sequence[str] = (),
    *,
    report_file: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Report, list[str]]:
    """Score a model on a set of pairs.

    The score of a whole run on its own test set, nothing changed, also goes to `evaluation.json` in its folder.

    Args:
        folder: a run, or a model folder.
        changes: settings of the run's recipe to change, as `--set` has them; what a model without a run is scored on.
        report_file: write the report here.
        progress: called with the numbers of sentences translated and of all.

    Raises:
        InputError: no test set is named.
    """
    model = find_model(folder)
    run = next((place for place in (folder, folder.resolve().parent) if (place / "recipe.toml").exists()), None)
    recipe = load_recipe(run / "recipe.toml", changes) if run else _recipe_of_model(model, changes)
    if recipe.data.test is None:
        raise InputError("no test set is named", where="data.test", fix="give --pairs NAME")
    if report_file is None and run is not None and run == folder and not changes:
        report_file = run / "evaluation.json"
    report, translations = evaluate(
        load_as(model, Translator),
        read_pairs_of(recipe, recipe.data.test),
        model=str(model),
        data=_name(recipe),
        tokenize=recipe.evaluate.tokenize,
        lowercase=recipe.evaluate.lowercase,
        changes=generation_of(recipe),
        progress=progress,
    )
    if report_file is not None:
        write_report(report, report_file)
    return report, translations


def _recipe_of_model(model: Path, changes: Sequence[str]) -> Recipe:
    """What a model folder that belongs to no run says about itself, for `changes` to name the data."""
    languages = str(read_config(model)[1].get("languages", "")).split(" to ")
    known = dict(zip(("source", "target"), languages, strict=True)) if len(languages) == 2 else {}
    settings = asdict(load_as(model, Translator).settings)
    text = toml.dumps({"data": known, "train": {"steps": 1}, "decode": settings})
    return parse_recipe(text, changes, where=str(model))


def _name(recipe: Recipe) -> str:
    return f"{recipe.data.embedded or recipe.data.folder}/{recipe.data.test}"
