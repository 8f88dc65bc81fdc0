"""A finished run, or any model folder, scored on a set of pairs."""

from collections.abc import Callable, Sequence
from pathlib import Path

from plainformer.decode.translator import find_model, load
from plainformer.errors import InputError
from plainformer.evaluate.evaluation import evaluate
from plainformer.evaluate.report import Report, write_report
from plainformer.recipe import Recipe, load_recipe
from plainformer.runs.folder import generation_of
from plainformer.runs.text import read_pairs_of


def evaluate_run(
    folder: Path,
    changes: Sequence[str] = (),
    *,
    report_file: Path | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[Report, list[str]]:
    """Score the model of a run on its test set; the report also goes to `evaluation.json` in the run's folder.

    Args:
        folder: the run, or one of its model folders.
        changes: settings of the run's recipe to change, as `--set` has them.
        report_file: write the report here instead.
        progress: called with the numbers of sentences translated and of all.

    Raises:
        InputError: the folder belongs to no run, or names no test set.
    """
    run = next((place for place in (folder, folder.resolve().parent) if (place / "recipe.toml").exists()), None)
    if run is None:
        raise InputError("this model belongs to no run, so there is no recipe", where=str(folder))
    recipe = load_recipe(run / "recipe.toml", changes)
    if recipe.data.test is None:
        raise InputError("the recipe names no test set", where="data.test", fix="give --pairs NAME")
    model = find_model(folder)
    report, translations = evaluate(
        load(model),
        read_pairs_of(recipe, recipe.data.test),
        model=str(model),
        data=_name(recipe),
        tokenize=recipe.evaluate.tokenize,
        lowercase=recipe.evaluate.lowercase,
        changes=generation_of(recipe),
        progress=progress,
    )
    write_report(report, report_file or run / "evaluation.json")
    return report, translations


def _name(recipe: Recipe) -> str:
    return f"{recipe.data.embedded or recipe.data.folder}/{recipe.data.test}"
