"""docs/presets.md shows what the library counts: its tables are written here and compared with the page."""

from functools import cache
from pathlib import Path

from plainformer.inspect.presets import VARIATIONS, Fit, Row, fit_vocabulary, preset_row
from plainformer.models import PRESETS

TEXT = Path(__file__).parents[2].joinpath("docs", "presets.md").read_text(encoding="utf-8")
STATED = 37_000


@cache
def fitted() -> Fit:
    return fit_vocabulary()


def table(*rows: list[str]) -> str:
    header, *others = rows
    return "\n".join("| " + " | ".join(row) + " |" for row in (header, ["---"] * len(header), *others))


def shape(row: Row) -> list[str]:
    return [
        f"`{row.name}`", row.layers, str(row.d_model), str(row.d_ff), str(row.heads), f"{row.d_k}, {row.d_v}",
    ]  # fmt: skip


def beside_the_paper(name: str) -> list[str]:
    """Of one row of Table 3: shape, the paper's count, ours with either vocabulary, and how far each is off."""
    cells = shape(preset_row(name))
    cells.append("" if PRESETS[name].millions is None else f"{PRESETS[name].millions}")
    for vocab in (STATED, fitted().vocab):
        row = preset_row(name, vocab)
        cells.append(f"{row.parameters:,}")
        cells.append("" if row.departure is None else f"{row.departure:+.2%}".replace("%", " %"))
    return cells


def other(name: str) -> list[str]:
    row = preset_row(name)
    return [*shape(row), row.kind, f"{row.vocab:,}", f"{row.parameters:,}"]


SHAPE = ["preset", "layers", "d_model", "d_ff", "heads", "d_k, d_v"]


def test_the_rows_of_table_3_on_the_page_are_those_counted() -> None:
    counts = [part for vocab in (STATED, fitted().vocab) for part in (f"with {vocab:,} tokens", "off by")]
    rows = [beside_the_paper(name) for name in PRESETS if name.startswith("paper-")]
    expected = table([*SHAPE, "the paper, millions", *counts], *rows)
    assert expected in TEXT, f"docs/presets.md should have\n\n{expected}\n"


def test_the_other_presets_on_the_page_are_those_counted() -> None:
    rows = [other(name) for name in PRESETS if not name.startswith("paper-")]
    expected = table([*SHAPE, "kind", "vocabulary", "parameters"], *rows)
    assert expected in TEXT, f"docs/presets.md should have\n\n{expected}\n"


def test_the_vocabularies_on_the_page_are_those_fitted() -> None:
    big = fit_vocabulary(["paper-big"])
    assert f"{fitted().vocab:,} tokens" in TEXT
    assert f"from {fitted().least:,} to {fitted().most:,}" in TEXT
    assert f"from {big.least:,} to {big.most:,}" in TEXT


def test_only_big_departs_by_more_than_a_hundredth_with_the_fitted_vocabulary() -> None:
    off = {name: preset_row(name, fitted().vocab).departure or 0.0 for name in [*VARIATIONS, "paper-big"]}
    assert {name for name, departure in off.items() if abs(departure) > 0.01} == {"paper-big"}
