"""A row checked without training: its outputs are those recorded, and score what was recorded.

Where the text is at hand they are scored again against the references; where it is not, all that can be told without
it is: checksums, the n-grams of the outputs, BLEU from its counts, and that recipe and record belong together.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plainformer.errors import InputError
from plainformer.recipe import LanguageRecipe, Recipe, TranslationRecipe
from plainformer.reproduce.compare import comparisons, expected
from plainformer.reproduce.outputs import digest, read_outputs
from plainformer.reproduce.record import Record, Run, outputs_name, read_record
from plainformer.reproduce.rows import Row, Scoring, recipe_of, settings_hash
from plainformer.reproduce.scoring import (
    ROUNDED,
    all_close,
    differences,
    of_blocks,
    of_translations,
    without_references,
)


@dataclass(frozen=True)
class Checked:
    """What the check of a row found.

    Attributes:
        name: the row's.
        runs: how many finished runs were checked.
        differences: what is not as it was recorded; nothing where all is well.
        unread: why the outputs were not scored against the text, if they were not.
    """

    name: str
    runs: int
    differences: tuple[str, ...]
    unread: str = ""

    def __str__(self) -> str:
        if self.differences:
            return f"{self.name}: differs: {'; '.join(self.differences)}"
        if not self.runs:
            return f"{self.name}: nothing to check: no finished run is recorded"
        seeds = f"{self.runs} seed" + "s" * (self.runs > 1)
        if self.unread:
            return f"{self.name}: {seeds}: outputs and figures agree; not scored again: {self.unread}"
        return f"{self.name}: {seeds}: scored again, as recorded"


def check_row(row: Row, folder: Path, data: Path | None = None, *, draws: bool = True) -> Checked:
    """Check all runs of a row.

    Args:
        folder: of the rows.
        data: where the text is, instead of where the recipe says (`rows.moved_to`).
        draws: make the draws of the paired bootstrap again, too, which take half a second a seed.

    Raises:
        InputError: the recipe or the record cannot be read.
    """
    record = read_record(folder, row.name)
    if record is None:
        return Checked(row.name, 0, ())
    recipe = recipe_of(row, folder, data=data)
    found = [*_of_settings(row, record, folder, recipe)]
    references, unread = _references(row, recipe)
    finished = [run for run in record.runs if run.status == "finished"]
    for run in finished:
        found += [f"seed {run.seed}: {what}" for what in _of_run(row, run, recipe, folder, references)]
    # Without the draws, too: a run of the other row that was recorded later is missing from the comparison.
    is_same = [(one.baseline, one.seed) for one in record.comparisons] == expected(row, record, folder)
    if is_same and draws and references is not None and references.targets and not found:
        beside = comparisons(row, record, folder, references.targets, scorings_of(row, recipe)[0])
        is_same = all_close(record.comparisons, beside)
    if not is_same:
        found.append(f"the comparison with {row.compared_with} is not the one recorded: record a run of it again")
    return Checked(row.name, len(finished), tuple(found), unread)


def scorings_of(row: Row, recipe: Recipe) -> list[Scoring]:
    """The ways in which a translator's outputs are scored, that of the recipe first."""
    if not isinstance(recipe, TranslationRecipe):
        return []
    return [Scoring(tokenize=recipe.evaluate.tokenize, lowercase=recipe.evaluate.lowercase), *row.also]


@dataclass(frozen=True)
class References:
    """The text that a row is scored on: its fingerprint, and of pairs the targets."""

    fingerprint: str
    targets: list[str]


def references_of(recipe: Recipe) -> References:
    """Raises InputError where the text is not there, or is no file of its own."""
    if isinstance(recipe, TranslationRecipe):
        from plainformer.data.pairs import fingerprint
        from plainformer.runs.pairs import read_pairs_of

        if not recipe.data.test:
            raise InputError("a row's test set is named", where="data.test", fix="add it to the row's set")
        pairs = read_pairs_of(recipe, recipe.data.test)
        return References(fingerprint(pairs), pairs.target)
    from plainformer.runs.text import test_text, text_of

    assert isinstance(recipe, LanguageRecipe)
    text = test_text(recipe.data) or text_of(recipe.data)
    return References(text.fingerprint, [])


def _references(row: Row, recipe: Recipe) -> tuple[References | None, str]:
    try:
        return references_of(recipe), ""
    except InputError as error:
        fetched = f"plainformer data fetch {row.corpus}, or " if row.corpus else ""
        return None, f"{error.where}: {error.what} ({fetched}name the folder with --data)"


def _of_settings(row: Row, record: Record, folder: Path, recipe: Recipe) -> Iterator[str]:
    """Whether the record is of this row and its recipe."""
    if record.name != row.name:
        yield f"the record is of {record.name}"
    if record.sha256 != settings_hash(row, folder):
        yield f"{row.recipe}, or what the row sets in it, changed since it was recorded"
    if record.task != recipe.task:
        yield f"the record is of a {record.task}, and the recipe of a {recipe.task}"


def _of_run(row: Row, run: Run, recipe: Recipe, folder: Path, references: References | None) -> Iterator[str]:
    """How a finished run differs from what was recorded of it."""
    if run.outputs is None or run.score(row.metric) is None:
        yield f"no outputs, or no {row.metric}, are recorded"
        return
    try:
        lines = read_outputs(folder / outputs_name(row.name, run.seed))
    except InputError as error:
        yield error.what
        return
    if digest(lines) != run.outputs.sha256 or len(lines) != run.outputs.lines:
        yield f"{run.outputs.file} is not what was recorded"
    if references is not None and references.fingerprint != run.data.get("test"):
        yield "the text that is here is not the one that was scored"
        return
    if isinstance(recipe, TranslationRecipe):
        yield from without_references(run, lines)
        if references is not None and len(lines) == len(references.targets):
            yield from differences(run.scores, of_translations(lines, references.targets, scorings_of(row, recipe)))
        elif references is not None:
            yield f"{len(lines)} outputs, and {len(references.targets)} references"
        return
    likelihood: dict[str, Any] = run.likelihood
    tokens = likelihood.get("tokens", 0.0)
    if not tokens:
        yield "no tokens are recorded"
        return
    yield from differences(
        run.scores, of_blocks(lines, tokens, likelihood.get("tokens_a_byte", 1.0)), len(lines) * ROUNDED / tokens
    )
