"""docs/tutorials.md: every test that it names is there, every fault has its proof, every preset is one."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from plainformer.models import PRESETS

ROOT = Path(__file__).parents[2]
TEXT = ROOT.joinpath("docs", "tutorials.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w./-]+\.py)::([\w:]+)`", TEXT)))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in TEXT.splitlines() if line.startswith("| ")]
MODELS = [cells for cells in ROWS if len(cells) == 3 and cells[0].startswith("`")]
FAULTS = [cells for cells in ROWS if len(cells) == 4 and "::" in cells[3]]
PROOFS = "tests/laws/test_deliberate_bugs.py"


@cache
def names_of_tests(path: Path) -> set[str]:
    """`test_name`, and `Class::test_name` for what stands in a class."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    inside = [(f"{node.name}::", node.body) for node in body if isinstance(node, ast.ClassDef)]
    return {
        prefix + node.name
        for prefix, nodes in [("", body), *inside]
        for node in nodes
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    }


@pytest.mark.parametrize(("file", "name"), NAMED)
def test_a_test_that_is_named_exists(file: str, name: str) -> None:
    assert name in names_of_tests(ROOT / file)


def test_every_mention_of_a_test_is_checked() -> None:
    mentioned = {tuple(place.split("::", 1)) for place in re.findall(r"`([^`\n]*::[^`\n]*)`", TEXT)}
    assert mentioned == set(NAMED)
    assert len(FAULTS) == 12


@pytest.mark.parametrize("cells", FAULTS, ids=lambda cells: cells[0])
def test_a_fault_is_caught_by_a_test_and_proved_to_be(cells: list[str]) -> None:
    fault, effect, caught, proof = cells
    assert fault
    assert effect
    assert re.search(r"`tests/[\w./-]+\.py::[\w:]+`", caught)
    assert PROOFS not in caught
    assert f"`{PROOFS}::test_" in proof


def test_every_proof_but_those_of_rotation_and_packing_is_on_the_page() -> None:
    """Tutorials have neither."""
    named = {name for file, name in NAMED if file == PROOFS}
    assert names_of_tests(ROOT / PROOFS) - named == {
        "test_a_rotation_that_forgets_where_the_cache_ends_is_caught",
        "test_positions_counted_along_a_packed_row_are_caught",
    }


def test_the_models_are_the_presets_of_tutorials() -> None:
    names = [cells[0].strip("`") for cells in MODELS]
    assert names == [name for name, preset in PRESETS.items() if preset.about.startswith("a tutorial's")]
    assert len(names) == 5


def test_the_test_sees_tests_in_classes_too() -> None:
    found = names_of_tests(ROOT / "tests" / "unit" / "nn" / "test_norm.py")
    assert {"test_layer_norm_by_hand", "TestEveryNorm::test_each_token_is_normalised_by_itself"} <= found
    assert "TestEveryNorm" not in found
