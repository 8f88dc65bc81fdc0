"""A finished run, or any model folder, scored: on pairs, on text or on labelled texts, as its kind of model is."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from plainformer.data import Pairs
from plainformer.data.labelled import Labelled, read_labelled
from plainformer.data.masking import Masking
from plainformer.data.text import read_text
from plainformer.data.tokens import Counts, encode_text
from plainformer.decode.load import load_as, settings_of
from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.text_classifier import TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.evaluate.evaluation import evaluate
from plainformer.evaluate.labelled import evaluate_labelled
from plainformer.evaluate.masked import evaluate_masked
from plainformer.evaluate.report import Result, write_report
from plainformer.evaluate.text import evaluate_text
from plainformer.files import toml
from plainformer.folder import load_folder, read_config
from plainformer.locate import find_model
from plainformer.models.config import EncoderConfig, SingleStackConfig, TransformerConfig
from plainformer.recipe import (
    ClassificationRecipe,
    LanguageRecipe,
    MaskedRecipe,
    Recipe,
    TranslationRecipe,
    load_recipe,
    parse_recipe,
)
from plainformer.recipe.text import TextOptions
from plainformer.recipe.translation import DecodeOptions
from plainformer.runs.held_out import find_kept, read_kept_labelled, read_kept_pairs
from plainformer.runs.pairs import read_pairs_of
from plainformer.runs.text import text_of
from plainformer.spelling import option
from plainformer.tokenizer import Tokenizer

Show = Callable[[str, int, int], None]
OneTask = TypeVar("OneTask", bound=Recipe)


def gives_no_lines(folder: Path, base: Path | None = None) -> bool:
    """Whether scoring the model in `folder` gives nothing to write for each text: neither translations nor labels."""
    config, _ = read_config(find_model(folder), base)
    return isinstance(config, SingleStackConfig) and not getattr(config, "labels", ())


class Given(NamedTuple):
    """Files of text to score a model on, if any are given, and what to call them where that is not their path."""

    files: Sequence[Path]
    name: str | None


def evaluate_run(
    folder: Path,
    changes: Sequence[str] = (),
    *,
    text: Sequence[Path] = (),
    text_name: str | None = None,
    report_file: Path | None = None,
    say: Callable[[str], None] = lambda line: None,
    progress: Show = lambda what, done, total: None,
    base: Path | None = None,
) -> tuple[Result, list[str]]:
    """Score a model: a translator on pairs, a classifier on labelled texts, a language model, masked or not, on a text.

    The score of a whole run on its own test set, nothing changed, also goes to `evaluation.json` in its folder.

    Args:
        folder: a run, or a model folder.
        changes: settings of the run's recipe to change, as `--set` has them; for a model without a run, all there are.
        text: files for a language model, masked or not; without any, the test set of its recipe or, if that has none,
            the part that was held out.
        text_name: what to call it, in the report and in an error; its path, or how many there are, if not given.
        report_file: write the report here.
        say: told the report, before it is written anywhere.
        progress: told how much is done: what it is, done, all.
        base: the model that an adapter belongs to, if not where it says.

    Returns:
        The report, and for every line of the set its translation or the label that it was given, or for every block of
        the text what it costs a language model, in nats.

    Raises:
        InputError: nothing is named to score the model on, or it does not go with this kind of model.
    """
    model = find_model(folder)
    config, about = read_config(model, base)
    run = next((place for place in (folder, folder.resolve().parent) if (place / "recipe.toml").exists()), None)
    recipe = load_recipe(run / "recipe.toml", changes) if run else None
    lines: list[str] = []
    if isinstance(config, TransformerConfig):
        _refuse_text(text, "a translator is scored on pairs", folder)
        pairs_recipe = recipe or _recipe_of_translator(model, str(about.get("languages", "")), changes, base)
        report, lines = _score_translator(model, pairs_recipe, _own(run, changes), say, progress, base)
    elif isinstance(config, EncoderConfig) and config.labels:
        _refuse_text(text, "a classifier is scored on labelled texts", folder)
        labels_recipe = recipe or _recipe_of_labeller(model, changes, base)
        report, lines = _score_labeller(model, labels_recipe, _own(run, changes), progress, base)
    elif isinstance(config, EncoderConfig):
        text_recipe = recipe or _recipe_of_text("masked-language-model", model, text, changes)
        report = _score_reader(model, text_recipe, Given(text, text_name), progress, base)
    else:
        text_recipe = recipe or _recipe_of_text("language-model", model, text, changes)
        report, lines = _score_writer(model, text_recipe, Given(text, text_name), progress, base)
    say(str(report))
    if report_file is None and run is not None and run == folder and not changes and not text:
        report_file = run / "evaluation.json"
    if report_file is not None:
        write_report(report, report_file)
    return report, lines


def _refuse_text(text: Sequence[Path], what: str, folder: Path) -> None:
    if text:
        raise InputError(what, where=str(folder), fix=f"give {_pairs()}, not {option('text', 'FILE')}")


def _pairs() -> str:
    return option("pairs", "NAME", python="data.test=NAME in changes")


def _of_task(recipe: Recipe, task: type[OneTask], model: Path) -> OneTask:
    """The recipe, if it is of the model's task. Raises InputError for a model that was put into another run."""
    if not isinstance(recipe, task):
        what = f"the recipe beside this model is for another task ({recipe.task})"
        raise InputError(what, where=str(model), fix="move the model to a folder of its own")
    return recipe


def _own(run: Path | None, changes: Sequence[str]) -> Path | None:
    """The run, unless other data than its own is asked for."""
    moved = any(change.replace(" ", "").startswith(("data.folder=", "data.embedded=")) for change in changes)
    return None if moved else run


def _pairs_of(recipe: TranslationRecipe, run: Path | None) -> tuple[Pairs, str]:
    """The set that a recipe names, or that its run held out, and what to call it."""
    data = recipe.data
    if kept := find_kept(run, data.test, is_held_out=bool(data.test_pairs)):
        return read_kept_pairs(kept, data), str(kept)
    return read_pairs_of(recipe, _test_set(data.test)), f"{data.embedded or data.folder}/{data.test}"


def _labelled_of(recipe: ClassificationRecipe, run: Path | None) -> tuple[Labelled, str]:
    """The labelled texts that a recipe names, or that its run held out, and what to call them."""
    data = recipe.data
    if kept := find_kept(run, data.test, is_held_out=bool(data.test_texts)):
        return read_kept_labelled(kept), str(kept)
    return read_labelled(data.path, _test_set(data.test)), f"{data.folder}/{data.test}"


def _score_translator(
    model: Path, any_recipe: Recipe, run: Path | None, say: Callable[[str], None], progress: Show, base: Path | None
) -> tuple[Result, list[str]]:
    recipe = _of_task(any_recipe, TranslationRecipe, model)
    pairs, name = _pairs_of(recipe, run)
    for note in pairs.notes:
        say(note)
    return evaluate(
        load_as(model, Translator, base=base),
        pairs,
        model=str(model),
        data=name,
        tokenize=recipe.evaluate.tokenize,
        lowercase=recipe.evaluate.lowercase,
        changes=recipe.decode.model_dump(),
        progress=partial(progress, "translated"),
    )


def _recipe_of_translator(model: Path, languages: str, changes: Sequence[str], base: Path | None) -> Recipe:
    """What a model folder that belongs to no run says about itself, for `changes` to name the data."""
    codes = languages.split(" to ")
    known = dict(zip(("source", "target"), codes, strict=True)) if len(codes) == 2 else {}
    settings = settings_of(load_folder(find_model(model), base))
    # What a recipe cannot say stays as the model's folder has it.
    decode = {name: value for name, value in settings.items() if name in DecodeOptions.model_fields}
    text = toml.dumps({"data": known, "train": {"steps": 1}, "decode": decode})
    return parse_recipe(text, changes, where=str(model))


def _score_labeller(
    model: Path, any_recipe: Recipe, run: Path | None, progress: Show, base: Path | None
) -> tuple[Result, list[str]]:
    recipe = _of_task(any_recipe, ClassificationRecipe, model)
    held_out, name = _labelled_of(recipe, run)
    told, way = partial(progress, "told apart"), recipe.data.truncate
    labeller = load_as(model, TextClassifier, base=base)
    # What left longer texts out of its training reads as much as the model can.
    most = labeller.max_tokens if way == "no" else recipe.data.max_tokens or 0
    labeller = replace(labeller, truncate=way, max_tokens=most)
    return evaluate_labelled(labeller, held_out, model=str(model), data=name, progress=told)


def _recipe_of_labeller(model: Path, changes: Sequence[str], base: Path | None) -> Recipe:
    """For a model folder that belongs to no run: `changes` name the data."""
    if not any(change.replace(" ", "").startswith("data.folder=") for change in changes):
        what = "no labelled texts are named to score the model on"
        fix = f"give {option('data', 'FOLDER', python='data.folder=FOLDER in changes')} and {_pairs()}"
        raise InputError(what, where=str(model), fix=fix)
    labeller = load_as(model, TextClassifier, base=base)
    data = {"truncate": labeller.truncate} | ({"max_tokens": labeller.max_tokens} if labeller.max_tokens else {})
    text = toml.dumps({"task": "classification", "data": data, "train": {"steps": 1}})
    return parse_recipe(text, changes, where=str(model))


def _test_set(name: str | None) -> str:
    """Raises InputError where the recipe has none."""
    if name is None:
        raise InputError("no test set is named", where="data.test", fix=f"give {_pairs()}")
    return name


def _score_reader(model: Path, any_recipe: Recipe, text: Given, progress: Show, base: Path | None) -> Result:
    recipe, reader = _of_task(any_recipe, MaskedRecipe, model), load_as(model, MaskFiller, base=base)
    reader.check_head(str(model))
    masking = Masking.of(reader.tokenizer, share=recipe.mask.share, whole_words=recipe.mask.whole_words)
    data, ids, counts = _tokens_of(recipe.data, text, reader.tokenizer, progress)
    named = {"name": str(model), "data": data}
    scored, seed = partial(progress, "tokens read"), recipe.train.seed
    return evaluate_masked(reader.model, ids, counts, masking, seed=seed, progress=scored, **named)


def _score_writer(
    model: Path, any_recipe: Recipe, text: Given, progress: Show, base: Path | None
) -> tuple[Result, list[str]]:
    recipe, writer = _of_task(any_recipe, LanguageRecipe, model), load_as(model, TextGenerator, base=base, say=None)
    data, ids, counts = _tokens_of(recipe.data, text, writer.tokenizer, progress)
    scored = partial(progress, "tokens scored")
    report, losses = evaluate_text(writer.model, ids, counts, name=str(model), data=data, progress=scored)
    return report, [f"{loss:.6f}" for loss in losses]


def _recipe_of_text(task: str, model: Path, text: Sequence[Path], changes: Sequence[str]) -> Recipe:
    """For a model folder that belongs to no run: `changes` may say what is hidden, or the key of the text in JSON."""
    if not text:
        raise InputError(
            "no text is named to score the model on", where=str(model), fix=f"give {option('text', 'FILE')}"
        )
    # A recipe names a text; what is scored is `text`.
    head = {"task": task, "data": {"text": "given"}, "train": {"steps": 1}}
    return parse_recipe(toml.dumps(head), changes, where=str(model))


def _tokens_of(
    options: TextOptions, text: Given, tokenizer: Tokenizer, progress: Show
) -> tuple[str, NDArray[np.integer], Counts]:
    """The text to score a model on, its name, its ids, and what else is known of them.

    It is that of the files, or else the test text of a recipe or, if that has none, the part that was held out.
    """
    encoded = partial(progress, "characters encoded")
    if paths := text.files or options.test:
        found = read_text([*paths], dev_share=0.0, key=options.key, name=text.name if text.files else None)
        tokens = encode_text(found, tokenizer, progress=encoded)
        return found.name, tokens.train, tokens.train_counts
    found = text_of(options)
    tokens = encode_text(found, tokenizer, progress=encoded)
    return f"the held-out part of {found.name}", tokens.dev, tokens.dev_counts
