"""Two rows of one test set: whether one is better, seed by seed, by the paired bootstrap."""

from collections.abc import Sequence
from pathlib import Path

from plainformer.errors import InputError
from plainformer.evaluate.significance import paired_bootstrap
from plainformer.reproduce.outputs import read_outputs
from plainformer.reproduce.record import Comparison, Record, Run, outputs_name, read_record
from plainformer.reproduce.rows import Row, Scoring


def comparisons(
    row: Row, record: Record, folder: Path, references: Sequence[str], scoring: Scoring
) -> tuple[Comparison, ...]:
    """The runs of a row beside those of the row that it is compared with, where both have outputs of a seed.

    Raises:
        InputError: outputs are missing or damaged, or of other sentences.
    """
    baseline = read_record(folder, row.compared_with) if row.compared_with else None
    if baseline is None:
        return ()
    seeds = {run.seed: run for run in baseline.runs if run.outputs}
    return tuple(
        _of_seed(row, run, seeds[run.seed], folder, references, scoring)
        for run in record.runs
        if run.outputs and run.seed in seeds
    )


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
