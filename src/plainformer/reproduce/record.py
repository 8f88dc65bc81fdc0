"""`results/NAME.json`: what was measured of a row, one entry a run (a seed), as JSON for people to read.

Figures are those of `metrics.jsonl` and of the evaluation at the end. Curves are thinned to some 60 points. The texts
themselves are not here, since their licences differ: there are their fingerprints, and the outputs of the model.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from plainformer.errors import InputError
from plainformer.files import atomic, json_object
from plainformer.files.validation import first_error
from plainformer.recipe.sections import FromList, Section
from plainformer.reproduce.rows import Metric

Status = Literal["finished", "unfinished", "failed"]
Whole = Annotated[tuple[int, ...], FromList]
Curve = dict[str, Annotated[tuple[int | float, ...], FromList]]
"""A figure at steps: `step`, and each metric at them."""


class Score(Section):
    """One figure of a run.

    Attributes of BLEU are sacreBLEU's: `counts` are the 1- to 4-grams of the outputs that are in their reference,
    `totals` all of them, `hyp_len` and `ref_len` the tokens of outputs and references.
    """

    metric: Metric = Field(description="What it is.")
    value: float = Field(description="The figure.")
    signature: str = Field(default="", description="sacreBLEU's, of BLEU and chrF.")
    hyp_len: int | None = Field(default=None, description="Tokens of the outputs, of BLEU.")
    ref_len: int | None = Field(default=None, description="Tokens of the references, of BLEU.")
    counts: Whole | None = Field(default=None, description="n-grams that match, of BLEU.")
    totals: Whole | None = Field(default=None, description="n-grams of the outputs, of BLEU.")


class Outputs(Section):
    """The file of a run's outputs."""

    file: str = Field(description="Its name, in results/.")
    sha256: str = Field(description="Of the text in it.")
    lines: int = Field(ge=0, description="How many there are: sentences, or blocks.")


class Run(Section):
    """One training of a row, scored, or as far as it came."""

    seed: int = Field(description="train.seed.")
    status: Status = Field(description="Whether the last step was reached.")
    why: str = Field(default="", description="Of a run that failed: why.")
    steps: int = Field(ge=0, description="Steps done.")
    planned: int = Field(ge=1, description="Steps of the recipe.")
    seconds: float = Field(ge=0.0, description="Wall time of the training's steps, compiling included; no evaluation.")
    compiling_seconds: float = Field(
        default=0.0, ge=0.0, description="Of them, spent compiling; 0 where nobody counted."
    )
    step_seconds: float = Field(ge=0.0, description="Median time of a step, which compiling has no part in.")
    processor: str = Field(description="What it was trained on.")
    commit: str = Field(description="Of this repository, when it was trained.")
    versions: dict[str, str] = Field(description="Of what the figures depend on.")
    parameters: int = Field(ge=0, description="Of the model.")
    data: dict[str, str] = Field(description="Fingerprints (SHA-256) of the texts.")
    likelihood: dict[str, float] = Field(default={}, description="nll (nats a token) and tokens of the references.")
    scores: Annotated[tuple[Score, ...], FromList] = Field(default=(), description="The row's metric is among them.")
    outputs: Outputs | None = Field(default=None, description="What was scored.")
    train: Curve = Field(description="The training curve.")
    dev: Curve = Field(default={}, description="That of the dev set.")
    dev_bleu: Curve = Field(default={}, description="Its BLEU, greedy, where that was looked at.")
    note: str = Field(default="", description="What a reader should know.")

    def score(self, metric: str) -> Score | None:
        """Its first score of a metric: by the recipe's own scoring, of several."""
        return next((score for score in self.scores if score.metric == metric), None)


class Comparison(Section):
    """A run beside one of another row, by BLEU and paired bootstrap resampling."""

    baseline: str = Field(description="The other row.")
    seed: int = Field(description="Of both runs.")
    difference: float = Field(description="BLEU less the other's.")
    p_value: float = Field(description="That the draw of sentences alone makes so large a difference.")
    samples: int = Field(description="Sets of sentences that were drawn.")
    signature: str = Field(description="sacreBLEU's.")


class Record(Section):
    """The runs of a row, by seed."""

    name: str = Field(description="The row's.")
    task: str = Field(description="The recipe's.")
    recipe: str = Field(description="Its file.")
    set: Annotated[tuple[str, ...], FromList] = Field(default=(), description="Settings changed in it.")
    sha256: str = Field(description="Of the settings (`rows.settings_hash`).")
    test: str = Field(description="What was scored.")
    runs: Annotated[tuple[Run, ...], FromList] = Field(description="One a seed.")
    comparisons: Annotated[tuple[Comparison, ...], FromList] = Field(default=(), description="With another row.")

    def values(self, metric: str) -> list[float]:
        """The figure of every finished run."""
        return [score.value for run in self.runs if run.status == "finished" and (score := run.score(metric))]


def path_of(folder: Path, name: str) -> Path:
    return folder / f"{name}.json"


def outputs_name(name: str, seed: int) -> str:
    return f"{name}.seed{seed}.txt.gz"


def read_record(folder: Path, name: str) -> Record | None:
    """The record of a row; None where nothing was recorded yet. Raises InputError where the file will not do."""
    path = path_of(folder, name)
    if not path.exists():
        return None
    values = json_object.read_object(path, fix="put the file back, or record the runs again")
    try:
        return Record.model_validate(values)
    except ValidationError as failure:
        _, what, fix = first_error(failure, Record)
        raise InputError(what, where=str(path), fix=fix) from failure


def write_record(folder: Path, record: Record) -> Path:
    """Write it whole or not at all; its path."""
    path = path_of(folder, record.name)
    values = record.model_dump(exclude_defaults=True)
    atomic.write_text(path, _dumped(values) + "\n")
    return path


def spread(values: Sequence[float], digits: int = 2) -> str:
    """Mean and range: "37.31 (36.90 to 37.55, 3 seeds)", or of one run its figure."""
    if not values:
        return "none"
    if len(values) == 1:
        return f"{values[0]:.{digits}f} (1 seed)"
    return f"{fmean(values):.{digits}f} ({min(values):.{digits}f} to {max(values):.{digits}f}, {len(values)} seeds)"


def _dumped(value: Any, depth: int = 0) -> str:
    """JSON with a line for each key, and one for a whole list of numbers."""
    inner, outer = "  " * (depth + 1), "  " * depth
    if isinstance(value, Mapping) and value:
        lines = [f"{inner}{json.dumps(key)}: {_dumped(entry, depth + 1)}" for key, entry in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{outer}}}"
    if isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
        return "[\n" + ",\n".join(f"{inner}{_dumped(entry, depth + 1)}" for entry in value) + f"\n{outer}]"
    return json.dumps(value, ensure_ascii=False)
