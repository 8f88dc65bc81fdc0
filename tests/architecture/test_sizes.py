"""Sizes that keep a file one idea and a function on one screen."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))

OTHERS = sorted(
    path.relative_to(ROOT) for room in ("tests", "dev", "benchmarks") for path in (ROOT / room).rglob("*.py")
)

LONGEST_FILE = 400
LONGEST_FUNCTION = 60
# Names that say nothing of what is inside.
VAGUE = {"utils", "util", "helpers", "helper", "misc", "common"}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_is_short_and_named_after_its_idea(path: Path) -> None:
    lines = SOURCE.joinpath(path).read_text(encoding="utf-8").splitlines()
    assert len(lines) <= LONGEST_FILE
    assert not set(path.with_suffix("").parts) & VAGUE


@pytest.mark.parametrize("path", OTHERS, ids=str)
def test_what_is_around_the_source_is_in_short_files_too(path: Path) -> None:
    assert len(ROOT.joinpath(path).read_text(encoding="utf-8").splitlines()) <= LONGEST_FILE


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_function_fits_on_a_screen(path: Path) -> None:
    tree = ast.parse(SOURCE.joinpath(path).read_text(encoding="utf-8"))
    lengths = {
        node.name: (node.end_lineno or 0) - node.lineno + 1
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }
    assert {name: length for name, length in lengths.items() if length > LONGEST_FUNCTION} == {}


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_file_says_what_it_is_for(path: Path) -> None:
    text = SOURCE.joinpath(path).read_text(encoding="utf-8")
    # An empty __init__.py is a mark, not a file to read.
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def test_no_two_test_files_share_a_name() -> None:
    """pytest takes the second of two for the first, and collects neither."""
    names = [path.name for path in Path(__file__).parents[1].rglob("test_*.py")]
    assert sorted(names) == sorted(set(names))
