"""Differences of two rows: of the same seeds, in BLEU's points and in per cent of perplexity."""

import math
from pathlib import Path
from typing import Any

import pytest

from plainformer.reproduce.compare import compared, deltas
from plainformer.reproduce.record import Comparison, Outputs, Record, Run, Score, write_record
from plainformer.reproduce.rows import Published, Row

PERPLEXITY_OF_BASE, PERPLEXITY = 5.0, 6.0


def a_row(name: str, **changes: Any) -> Row:
    return Row(name=name, group="a", about="it", recipe="recipes/a.toml", metric="bleu", **changes)


def a_record(name: str, perplexity: float, bleus: dict[int, float], *, unfinished: int = 0) -> Record:
    """Runs by seed, of which one may be unfinished."""
    values: dict[str, Any] = {"steps": 3, "planned": 4, "seconds": 1.0, "step_seconds": 0.1, "processor": "an abacus"}
    values |= {"commit": "abc1234", "versions": {}, "parameters": 1, "data": {}, "train": {}}
    values["likelihood"] = {"nll": math.log(perplexity), "tokens": 7.0}
    runs = [
        Run(seed=seed, status="finished", scores=(Score(metric="bleu", value=bleu),), **values)
        for seed, bleu in bleus.items()
    ]
    if unfinished:
        runs.append(Run(seed=unfinished, status="unfinished", **values))
    return Record(name=name, task="translation", recipe="recipes/a.toml", sha256="d4", test="val", runs=tuple(runs))


def test_differences_are_of_the_finished_runs_of_the_same_seeds() -> None:
    base = a_record("base", PERPLEXITY_OF_BASE, {1: 20.0, 2: 22.0}, unfinished=3)
    record = a_record("a", PERPLEXITY, {3: 23.0, 2: 21.0, 1: 20.5, 4: 30.0})
    bleu, perplexity = deltas(a_row("a"), a_row("base"), record, base)
    assert bleu.measured == pytest.approx((0.5, -1.0))
    assert perplexity.measured == pytest.approx((20.0, 20.0))
    assert bleu.published is None
    assert perplexity.published is None


def test_a_published_difference_needs_both_figures() -> None:
    base, row = Published(source="base", value=25.8, perplexity=4.92), Published(source="(A)", value=24.9)
    record = a_record("a", PERPLEXITY, {1: 20.0})
    bleu, perplexity = deltas(a_row("a", published=row), a_row("base", published=base), record, record)
    assert bleu.published == pytest.approx(-0.9)
    assert perplexity.published is None
    both = row.model_copy(update={"perplexity": 5.29})
    _, perplexity = deltas(a_row("a", published=both), a_row("base", published=base), record, record)
    assert perplexity.published == pytest.approx(7.52, abs=0.01)


def test_without_references_the_comparisons_that_stand_are_kept(tmp_path: Path) -> None:
    """As when a run is recorded that is not finished: those of other seeds, with the row that is compared with now."""
    both = {1: 20.0, 2: 22.0}
    base, record = (with_outputs(a_record(name, PERPLEXITY, both, unfinished=3)) for name in ("base", "a"))
    write_record(tmp_path, base)
    made = tuple(
        Comparison(baseline=name, seed=seed, difference=1.0, p_value=0.5, samples=1000, signature="")
        for name, seed in (("base", 1), ("base", 3), ("former", 2))
    )
    found = compared(
        a_row("a", compared_with="base"), record.model_copy(update={"comparisons": made}), tmp_path, [], []
    )
    assert found.comparisons == made[:1]


def with_outputs(record: Record) -> Record:
    """Of its finished runs."""
    outputs = Outputs(file="", sha256="", lines=1)
    runs = [run.model_copy(update={"outputs": outputs}) if run.status == "finished" else run for run in record.runs]
    return record.model_copy(update={"runs": tuple(runs)})
