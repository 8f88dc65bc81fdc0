"""The decision records and what-failed.md are short, complete and listed, and what they name is there."""

import re
from pathlib import Path

import pytest

from pages import names_of_tests

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
FOLDER = DOCS / "decisions"
INDEX = FOLDER / "README.md"
RECORDS = sorted(path for path in FOLDER.glob("*.md") if path != INDEX)
PAGES = sorted(DOCS.rglob("*.md"))
LINKED = [*RECORDS, INDEX, DOCS / "what-failed.md", DOCS / "architecture.md"]

PARTS = ["Context", "Decision", "Consequence", "Law"]
MOST_RECORDS, LONGEST_RECORD, LONGEST_WHAT_FAILED, LONGEST_PAGE = 30, 25, 150, 400
# Pages that are gone: their subjects are records now, or in the diary.
GONE = ["docs/decisions.md", "(decisions.md", "speed-rows.md", "speed-history.md"]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def parts(text: str) -> dict[str, str]:
    """The parts of a record by their names, in their order."""
    found = re.split(r"^\*\*([A-Z]\w+)\.\*\* ", text, flags=re.MULTILINE)
    return dict(zip(found[1::2], found[2::2], strict=True))


def test_records_are_numbered_from_one_without_a_gap() -> None:
    assert 0 < len(RECORDS) <= MOST_RECORDS
    assert [path.name[:5] for path in RECORDS] == [f"{number:04}-" for number in range(1, len(RECORDS) + 1)]


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_a_record_has_its_four_parts_in_few_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert text.startswith(f"# {path.name[:4]}. ")
    assert list(parts(text)) == PARTS
    assert all(part.strip() for part in parts(text).values())
    assert len(lines(path)) <= LONGEST_RECORD
    assert max(map(len, lines(path))) <= 120


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_tests_that_a_record_names_exist(path: Path) -> None:
    law = parts(path.read_text(encoding="utf-8"))["Law"]
    named = re.findall(r"\btest_\w+", law)
    assert named
    assert set(named) <= names_of_tests()


def test_the_index_lists_every_record_once_with_its_title() -> None:
    listed = re.findall(r"^- \[([^\]]+)\]\(([^)]+)\): \S", INDEX.read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted(listed, key=lambda entry: entry[1]) == [
        (lines(path)[0].removeprefix("# "), path.name) for path in RECORDS
    ]


def test_what_failed_is_one_row_an_experiment() -> None:
    text = lines(DOCS / "what-failed.md")
    assert len(text) <= LONGEST_WHAT_FAILED
    rows = [line for line in text if line.startswith("| ") and not line.startswith("| idea |")]
    assert rows
    for row in rows:
        idea, measured, *_ = cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert len(cells) == 4, row
        assert re.search(r"\(\d+(, \d+)*\)$", idea), f"on which day? {idea}"
        assert measured, f"what was measured? {idea}"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_a_page_is_no_longer_than_a_file_of_code(path: Path) -> None:
    assert len(lines(path)) <= LONGEST_PAGE


@pytest.mark.parametrize("path", LINKED, ids=lambda path: path.relative_to(DOCS).as_posix())
def test_links_lead_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8")):
        assert target.startswith("https://") or (path.parent / target).exists(), target


def test_nothing_speaks_of_pages_that_are_gone() -> None:
    places = [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), *PAGES]
    for folder in ("src", "tests", "recipes", "examples", "benchmarks"):
        places += [path for path in ROOT.joinpath(folder).rglob("*") if path.suffix in {".py", ".md", ".toml"}]
    for path in places:
        if path != Path(__file__):
            text = path.read_text(encoding="utf-8")
            assert not [name for name in GONE if name in text], path


def test_the_diary_is_called_one_and_is_left_out_of_the_package() -> None:
    assert "It is no documentation" in "\n".join(lines(ROOT / "dev" / "LOG.md")[:4])
    assert 'exclude = ["/dev/LOG.md"]' in ROOT.joinpath("pyproject.toml").read_text(encoding="utf-8")
