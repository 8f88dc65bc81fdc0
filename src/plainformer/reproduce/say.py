"""Rows in words: what there is, and how a run compares with what was recorded and published."""

from collections.abc import Sequence
from pathlib import Path

from plainformer.reproduce.measure import Measured
from plainformer.reproduce.outputs import read_outputs
from plainformer.reproduce.record import Record, outputs_name, read_record, spread
from plainformer.reproduce.rows import Row
from plainformer.table import aligned

DIGITS = {"bleu": 2, "chrf": 2, "nll": 4, "perplexity": 3, "bits_per_byte": 4}
"""Of a figure, by its metric."""

NAMES = {"bleu": "BLEU", "chrf": "chrF", "nll": "nats a token", "bits_per_byte": "bits a byte"}


def listing(rows: Sequence[Row], folder: Path) -> list[str]:
    """A line a row: its name, its metric, what was published, what is recorded."""
    lines = [("row", "metric", "published", "recorded")]
    for row in rows:
        record = read_record(folder, row.name)
        lines.append((row.name, name_of(row.metric), published(row), recorded(row, record)))
    return aligned(lines)


def name_of(metric: str) -> str:
    return NAMES.get(metric, metric)


def published(row: Row) -> str:
    """The figure that somebody published, or a dash."""
    if row.published is None or row.published.value is None:
        return "-"
    return f"{row.published.value:g}"


def recorded(row: Row, record: Record | None) -> str:
    """Mean and range of what is recorded, and which runs are not finished."""
    if record is None or not record.runs:
        return "not run yet"
    values = record.values(row.metric)
    found = [spread(values, DIGITS[row.metric])] if values else []
    others = [run for run in record.runs if run.status != "finished"]
    found += [f"seed {run.seed} {run.status} after {run.steps:,} of {run.planned:,} steps" for run in others]
    return "; ".join(found)


def comparison(row: Row, folder: Path, measured: Measured) -> list[str]:
    """A run beside what is recorded of its row and what was published."""
    run, digits = measured.run, DIGITS[row.metric]
    score = run.score(row.metric)
    if score is None:
        return [
            f"{row.name}, seed {run.seed}: {run.status} after {run.steps:,} of {run.planned:,} steps {run.why}".strip()
        ]
    lines = [f"{row.name}, seed {run.seed}: {name_of(row.metric)} {score.value:.{digits}f} {score.signature}".strip()]
    record = read_record(folder, row.name)
    if record is None:
        lines.append("recorded: nothing yet")
    else:
        lines.append(f"recorded: {recorded(row, record)}")
        lines += _of_same_seed(row, folder, record, measured)
    if row.published is not None:
        lines.append(f"published: {published(row)} ({row.published.source})")
    return lines


def _of_same_seed(row: Row, folder: Path, record: Record, measured: Measured) -> list[str]:
    """How the outputs differ from those recorded of the same seed, if any are."""
    old = next((run for run in record.runs if run.seed == measured.run.seed and run.outputs), None)
    if old is None:
        return []
    before = read_outputs(folder / outputs_name(row.name, old.seed))
    score, digits = old.score(row.metric), DIGITS[row.metric]
    figure = f"{score.value:.{digits}f}" if score else "none"
    if before == measured.lines:
        return [f"recorded of this seed: {figure}, and the same outputs"]
    if len(before) != len(measured.lines):
        return [f"recorded of this seed: {figure}, of {len(before):,} outputs, and here are {len(measured.lines):,}"]
    others = sum(one != other for one, other in zip(before, measured.lines, strict=True))
    return [f"recorded of this seed: {figure}; {others:,} of {len(before):,} outputs differ"]
