"""A run of a row as it is recorded: read from its folder, scored if it is finished, its outputs beside the record."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from plainformer.errors import InputError
from plainformer.evaluate.report import Report, environment
from plainformer.evaluate.text import TextReport
from plainformer.figures.curves import Point, read_curves
from plainformer.files import json_object, toml
from plainformer.folder import read_config
from plainformer.inspect.count import count
from plainformer.locate import find_model
from plainformer.recipe import Recipe, TranslationRecipe, difference, load_recipe
from plainformer.reproduce.check import references_of, scorings_of
from plainformer.reproduce.compare import compared
from plainformer.reproduce.outputs import digest, write_outputs
from plainformer.reproduce.record import Curve, Outputs, Record, Run, Score, Status, outputs_name, read_record
from plainformer.reproduce.rows import Row, recipe_of, settings_hash
from plainformer.reproduce.scoring import of_blocks, of_translations
from plainformer.runs.evaluation import evaluate_run

CURVE = 60  # points of a training curve at most, and of one of the dev set
DIGITS = 5  # of a figure on a curve

Show = Callable[[str, int, int], None]

FREE = (
    *("name", "description", "data.folder", "data.text", "data.embedded", "data.test", "train.mesh"),
    *("train.log_every", "train.tensorboard", "train.samples", "train.log_norms"),
)
"""What a run may have other than its row's recipe: names, where its text is, the devices, how much it says."""

SCORING = "decode.", "evaluate.", "generate."
"""Sections of a recipe in which the row's holds, whatever a run was trained with: they have no part in its weights."""


@dataclass(frozen=True)
class Where:
    """What a run's folder does not say: what it was trained on, at which commit, and what else a reader should know."""

    processor: str
    commit: str
    note: str = ""


@dataclass(frozen=True)
class Measured:
    """A run and, if it is finished, the lines that its model gave and, of a translator, the references."""

    run: Run
    lines: list[str]
    references: list[str]


def run_recipe_of(row: Row, folder: Path, run: Path) -> Recipe:
    """The recipe of a run, which must be the row's but for what is free. Raises InputError."""
    if not (run / "recipe.toml").is_file():
        raise InputError("there is no run", where=str(run), fix="name its folder with --run FOLDER")
    recipe = load_recipe(run / "recipe.toml")
    wanted = recipe_of(row, folder, seed=recipe.train.seed)
    changed = {line.partition(":")[0]: line for line in difference(wanted, recipe)}
    others = [line for key, line in changed.items() if key not in FREE and not key.startswith(SCORING)]
    if others or (
        getattr(recipe.train, "best_by", "nll") == "bleu" and any(key.startswith(SCORING) for key in changed)
    ):
        others = others or list(changed.values())
        what = f"this run is not of {row.name}: {', '.join(others)}"
        raise InputError(what, where=str(run), fix="name another run, or another row")
    return recipe


def measure(row: Row, folder: Path, run: Path, where: Where, progress: Show, data: Path | None = None) -> Measured:
    """What a run has come to, with its scores if it is finished; nothing is written into `folder`.

    Args:
        folder: of the rows.
        run: the run's.
        data: where its text is now, if it was moved.

    Raises:
        InputError: it is no run of this row, or its text is not there.
    """
    recipe = run_recipe_of(row, folder, run)
    points = read_curves([run]).points
    status, why, steps = _status(run, recipe, points)
    lines: list[str] = []
    references: list[str] = []
    scored: dict[str, Any] = {}
    if status == "finished":
        scored, lines, references = _scored(row, folder, run, recipe, data, progress)
    seconds, pace = _times(points)
    found = Run(
        seed=recipe.train.seed,
        status=status,
        why=why,
        steps=steps,
        planned=recipe.train.steps,
        seconds=seconds,
        compiling_seconds=round(_total(points, "compiling_seconds"), 1),
        step_seconds=pace,
        processor=where.processor,
        commit=where.commit,
        versions=environment(),
        parameters=_parameters(run),
        train=thinned(points, "train", ("loss", "nll")),
        dev=thinned(points, "dev", ("loss", "nll")),
        dev_bleu=thinned(points, "dev", ("bleu",)),
        note=where.note,
        **{"data": _texts(run), **scored},
    )
    return Measured(found, lines, references)


def record_of(row: Row, folder: Path, measured: Measured) -> Record:
    """The row's record with this run in it, its outputs written.

    Raises:
        InputError: what was recorded before is of other settings.
    """
    run, name = measured.run, outputs_name(row.name, measured.run.seed)
    if run.outputs is not None:
        write_outputs(folder / name, measured.lines)
    recipe, sha256 = recipe_of(row, folder), settings_hash(row, folder)
    old = read_record(folder, row.name)
    # Runs of other settings are not of this row any more.
    kept = tuple(other for other in old.runs if other.seed != run.seed) if old and old.sha256 == sha256 else ()
    record = Record(
        name=row.name,
        task=recipe.task,
        recipe=row.recipe,
        set=row.set,
        sha256=sha256,
        test=_test_name(recipe),
        runs=tuple(sorted((*kept, run), key=lambda one: one.seed)),
        comparisons=old.comparisons if old and kept else (),
    )
    return compared(row, record, folder, measured.references, scorings_of(row, recipe))


def records_beside(row: Row, rows: Sequence[Row], folder: Path, measured: Measured) -> Iterator[Record]:
    """The records of the rows that are compared with this one, compared with what is now recorded of it.

    Raises:
        InputError: outputs are missing or damaged, or of other sentences.
    """
    for other in rows:
        record = read_record(folder, other.name) if other.compared_with == row.name else None
        if record is not None and record.sha256 == settings_hash(other, folder):
            scorings = scorings_of(other, recipe_of(other, folder))
            yield compared(other, record, folder, measured.references, scorings)


def _test_name(recipe: Recipe) -> str:
    if isinstance(recipe, TranslationRecipe):
        return f"{recipe.data.test}, {recipe.data.source} to {recipe.data.target}"
    return "the held-out part" if not recipe.data.test else ", ".join(recipe.data.test)


def _scored(
    row: Row, folder: Path, run: Path, recipe: Recipe, data: Path | None, progress: Show
) -> tuple[dict[str, Any], list[str], list[str]]:
    """What the evaluation of a finished run adds to its record, its outputs, and the references."""
    changes = _scoring(recipe_of(row, folder, data=data), is_moved=data is not None)
    here = load_recipe(run / "recipe.toml", changes)
    report, lines = evaluate_run(run, changes, progress=progress)
    references = references_of(here)
    texts = _texts(run) | {"test": references.fingerprint}
    likelihood: dict[str, float] = {}
    scores: list[Score] = []
    if isinstance(report, Report):
        scores = of_translations(lines, references.targets, scorings_of(row, here))
    elif isinstance(report, TextReport):
        likelihood = {"tokens_a_byte": report.counts.tokens / report.counts.bytes}
        scores = of_blocks(lines, float(report.likelihood.tokens), likelihood["tokens_a_byte"])
    assert isinstance(report, Report | TextReport)
    assert report.likelihood is not None
    likelihood |= {"nll": report.likelihood.nll, "tokens": float(report.likelihood.tokens)}
    outputs = Outputs(file=outputs_name(row.name, recipe.train.seed), sha256=digest(lines), lines=len(lines))
    return (
        {"data": texts, "likelihood": likelihood, "scores": tuple(scores), "outputs": outputs},
        lines,
        references.targets,
    )


def _scoring(wanted: Recipe, *, is_moved: bool) -> list[str]:
    """The settings with which a run's recipe scores as its row's: test set, search and scoring; where the text is."""
    keys = ["data.test", *(["data.folder", "data.text"] if is_moved else [])]
    found = {key: getattr(wanted.data, key.removeprefix("data."), None) for key in keys}
    for section in ("decode", "evaluate"):
        values = getattr(wanted, section).model_dump() if hasattr(wanted, section) else {}
        found |= {f"{section}.{key}": value for key, value in values.items()}
    return [f"{key}={toml.inline(value)}" for key, value in found.items() if value is not None]


def _parameters(run: Path) -> int:
    """Of its model; 0 where it has not kept one yet."""
    try:
        config, _ = read_config(find_model(run))
    except InputError:
        return 0
    return count(config)


def _texts(run: Path) -> dict[str, str]:
    """The fingerprints of the texts that a run was trained on."""
    facts = json_object.read_object(run / "data.json", fix="name another run")
    return {key: value for key, value in facts.items() if isinstance(value, str)}


def _status(run: Path, recipe: Recipe, points: tuple[Point, ...]) -> tuple[Status, str, int]:
    """Whether it ended well, why not, and its steps."""
    steps = max(point.step for point in points)
    ended = (run / "last").is_dir() and (steps >= recipe.train.steps or getattr(recipe.train, "patience", 0) > 0)
    if (run / "capsule").is_dir() and not ended:
        return "failed", f"the numbers left the finite ones after step {steps:,}", steps
    return ("finished", "", steps) if ended else ("unfinished", "", steps)


def _total(points: tuple[Point, ...], metric: str) -> float:
    """Of all lines of training."""
    return sum((point.value for point in points if (point.kind, point.metric) == ("train", metric)), start=0.0)


def _times(points: tuple[Point, ...]) -> tuple[float, float]:
    """Seconds of all steps, and the median of a step's."""
    spent = [(point.step, point.value) for point in points if (point.kind, point.metric) == ("train", "seconds")]
    if not spent:
        return 0.0, 0.0
    before = [0, *(step for step, _ in spent[:-1])]
    each = [seconds / (step - start) for (step, seconds), start in zip(spent, before, strict=True) if step > start]
    return round(sum(seconds for _, seconds in spent), 1), round(median(each), 5)


def thinned(points: tuple[Point, ...], kind: str, metrics: tuple[str, ...]) -> Curve:
    """A curve by its figures, thinned: its steps, and each metric at them."""
    by_step: dict[int, dict[str, float]] = {}
    for point in points:
        if point.kind == kind and point.metric in metrics:
            by_step.setdefault(point.step, {})[point.metric] = point.value
    names = [name for name in metrics if any(name in values for values in by_step.values())]
    steps = [step for step, values in sorted(by_step.items()) if all(name in values for name in names)]
    stride = -(-len(steps) // CURVE) or 1
    chosen = steps[::-1][::stride][::-1]  # the last one always
    curve = {name: tuple(float(f"{by_step[step][name]:.{DIGITS}g}") for step in chosen) for name in names}
    return {"step": tuple(chosen), **curve} if chosen else {}
