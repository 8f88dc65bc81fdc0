"""Two rows of one test set, seed by seed: how far apart they are, and whether one is better by the paired bootstrap."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from plainformer.errors import InputError
from plainformer.evaluate.significance import paired_bootstrap
from plainformer.reproduce.outputs import read_outputs
from plainformer.reproduce.record import Comparison, Record, Run, outputs_name, read_record
from plainformer.reproduce.rows import Published, Row, Scoring


@dataclass(frozen=True)
class Delta:
    """A translator's figure less that of another row, as published (None: it was not) and here for every seed of both.

    BLEU in its points; perplexity in per cent of the other's, so that figures of other tokens can stand beside.
    """

    published: float | None
    measured: tuple[float, ...]


def deltas(row: Row, other: Row, record: Record, baseline: Record) -> tuple[Delta, Delta]:
    """Of BLEU and of perplexity, from the finished runs of the same seeds."""
    before, after = ({run.seed: run for run in one.runs if run.status == "finished"} for one in (baseline, record))
    pairs = [(after[seed], before[seed]) for seed in sorted(after.keys() & before.keys())]
    here, there = row.published or Published(source=""), other.published or Published(source="")
    bleu = here.value - there.value if here.value and there.value else None
    ratio = here.perplexity / there.perplexity if here.perplexity and there.perplexity else None
    nats = [one.likelihood["nll"] - two.likelihood["nll"] for one, two in pairs]
    return (
        Delta(bleu, tuple(_bleu(one) - _bleu(two) for one, two in pairs)),
        Delta(ratio and 100 * (ratio - 1), tuple(100 * math.expm1(one) for one in nats)),
    )


def _bleu(run: Run) -> float:
    return next(score.value for score in run.scores if score.metric == "bleu")


def compared(row: Row, record: Record, folder: Path, references: Sequence[str], scorings: Sequence[Scoring]) -> Record:
    """The record with its comparisons made anew; without references, as for an unfinished run, with those that stand.

    Raises:
        InputError: outputs are missing or damaged, or of other sentences.
    """
    if references:
        found = comparisons(row, record, folder, references, scorings[0])
    else:
        standing = expected(row, record, folder)
        found = tuple(one for one in record.comparisons if (one.baseline, one.seed) in standing)
    return record.model_copy(update={"comparisons": found})


def expected(row: Row, record: Record, folder: Path) -> list[tuple[str, int]]:
    """The other row and the seed of each comparison that a record should have."""
    return [(row.compared_with, run.seed) for run, _ in pairs_of_runs(row, record, folder)]


def comparisons(
    row: Row, record: Record, folder: Path, references: Sequence[str], scoring: Scoring
) -> tuple[Comparison, ...]:
    """The runs of a row beside those of the row that it is compared with, where both have outputs of a seed.

    Raises:
        InputError: outputs are missing or damaged, or of other sentences.
    """
    return tuple(
        _of_seed(row, run, other, folder, references, scoring) for run, other in pairs_of_runs(row, record, folder)
    )


def pairs_of_runs(row: Row, record: Record, folder: Path) -> list[tuple[Run, Run]]:
    """The runs of a row, each with that of its seed of the row that it is compared with, where both have outputs."""
    baseline = read_record(folder, row.compared_with) if row.compared_with else None
    others = {run.seed: run for run in baseline.runs if run.outputs} if baseline else {}
    return [(run, others[run.seed]) for run in record.runs if run.outputs and run.seed in others]


def _of_seed(row: Row, run: Run, other: Run, folder: Path, references: Sequence[str], scoring: Scoring) -> Comparison:
    if run.data.get("test") != other.data.get("test"):
        what = f"{row.name} and {row.compared_with} were not scored on the same text"
        raise InputError(what, where=str(folder), fix="take compared_with out of rows.toml")
    before, after = (read_outputs(folder / outputs_name(name, run.seed)) for name in (row.compared_with, row.name))
    found = paired_bootstrap(before, after, references, tokenize=scoring.tokenize, lowercase=scoring.lowercase)
    return Comparison(
        baseline=row.compared_with,
        seed=run.seed,
        difference=found.difference,
        p_value=found.p_value,
        samples=found.samples,
        signature=found.signature,
    )
