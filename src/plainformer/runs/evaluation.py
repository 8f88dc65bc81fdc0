"""A finished run, or any model folder, scored: a translator on pairs, a language model on text."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path

from plainformer import toml
from plainformer.data.text import read_text
from plainformer.data.tokens import encode_text
from plainformer.decode.load import find_model, load_as
from plainformer.decode.translator import Translator
from plainformer.decode.writer import Writer
from plainformer.errors import InputError
from plainformer.evaluate.evaluation import evaluate
from plainformer.evaluate.report import Result, write_report
from plainformer.evaluate.text import evaluate_text
from plainformer.folder import read_config
from plainformer.models.config import TransformerConfig
from plainformer.recipe import LanguageRecipe, Recipe, TranslationRecipe, load_recipe, parse_recipe
from plainformer.runs.text import text_of
from plainformer.runs.translation import read_pairs_of

Show = Callable[[str, int, int], None]


def evaluate_run(
    folder: Path,
    changes: Sequence[str] = (),
    *,
    text: Sequence[Path] = (),
    report_file: Path | None = None,
    progress: Show = lambda what, done, total: None,
) -> tuple[Result, list[str]]:
    """Score a model: a translator on a set of pairs, a language model on a text.

    The score of a whole run on its own test set, nothing changed, also goes to `evaluation.json` in its folder.

    Args:
        folder: a run, or a model folder.
        changes: settings of the run's recipe to change, as `--set` has them; what a translator without a run is scored
            on.
        text: files for a language model; without any, the test set of its recipe or, if that has none, the part that
            was held out.
        report_file: write the report here.
        progress: told how much is done: what it is, done, all.

    Returns:
        The report, and a translator's translations.

    Raises:
        InputError: nothing is named to score the model on, or it does not go with this kind of model.
    """
    model = find_model(folder)
    config, about = read_config(model)
    run = next((place for place in (folder, folder.resolve().parent) if (place / "recipe.toml").exists()), None)
    recipe = load_recipe(run / "recipe.toml", changes) if run else None
    translations: list[str] = []
    if isinstance(config, TransformerConfig):
        if text:
            raise InputError("a translator is scored on pairs", where=str(folder), fix="give --pairs, not --text")
        pairs_recipe = recipe or _recipe_of_translator(model, str(about.get("languages", "")), changes)
        report, translations = _score_translator(model, pairs_recipe, progress)
    else:
        report = _score_writer(model, recipe, text, progress)
    if report_file is None and run is not None and run == folder and not changes and not text:
        report_file = run / "evaluation.json"
    if report_file is not None:
        write_report(report, report_file)
    return report, translations


def _score_translator(model: Path, recipe: Recipe, progress: Show) -> tuple[Result, list[str]]:
    assert isinstance(recipe, TranslationRecipe)
    if recipe.data.test is None:
        raise InputError("no test set is named", where="data.test", fix="give --pairs NAME")
    return evaluate(
        load_as(model, Translator),
        read_pairs_of(recipe, recipe.data.test),
        model=str(model),
        data=f"{recipe.data.embedded or recipe.data.folder}/{recipe.data.test}",
        tokenize=recipe.evaluate.tokenize,
        lowercase=recipe.evaluate.lowercase,
        changes=recipe.decode.model_dump(),
        progress=partial(progress, "translated"),
    )


def _recipe_of_translator(model: Path, languages: str, changes: Sequence[str]) -> Recipe:
    """What a model folder that belongs to no run says about itself, for `changes` to name the data."""
    codes = languages.split(" to ")
    known = dict(zip(("source", "target"), codes, strict=True)) if len(codes) == 2 else {}
    settings = asdict(load_as(model, Translator).settings)
    text = toml.dumps({"data": known, "train": {"steps": 1}, "decode": settings})
    return parse_recipe(text, changes, where=str(model))


def _score_writer(model: Path, recipe: Recipe | None, text: Sequence[Path], progress: Show) -> Result:
    writer, encoded = load_as(model, Writer), partial(progress, "characters encoded")
    assert recipe is None or isinstance(recipe, LanguageRecipe)
    paths = text or (recipe.data.test if recipe else None)
    if paths:
        found = read_text([*paths], dev_share=0.0, key=recipe.data.key if recipe else "text")
        tokens = encode_text(found, writer.tokenizer, progress=encoded)
        name, ids, counts = found.name, tokens.train, tokens.train_counts
    elif recipe:
        found = text_of(recipe.data)
        tokens = encode_text(found, writer.tokenizer, progress=encoded)
        name, ids, counts = f"the held-out part of {found.name}", tokens.dev, tokens.dev_counts
    else:
        raise InputError("no text is named to score the model on", where=str(model), fix="give --text FILE")
    scored = partial(progress, "tokens scored")
    return evaluate_text(writer.model, ids, counts, name=str(model), data=name, progress=scored)
