"""What several rooms need is defined once: the choices of a setting, and the names of parameters."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "plainformer"


def choices(tree: ast.AST) -> Iterator[frozenset[str]]:
    """The strings of every `Literal` that has several."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id == "Literal":
            values = [one.value for one in ast.walk(node.slice) if isinstance(one, ast.Constant)]
            names = frozenset(value for value in values if isinstance(value, str))
            if len(names) > 1:
                yield names


def test_no_choice_is_written_twice() -> None:
    places: dict[frozenset[str], list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        for choice in choices(ast.parse(path.read_text(encoding="utf-8"))):
            places[choice].append(str(path.relative_to(SOURCE)))
    assert len(places) > 10
    assert not {tuple(sorted(choice)): where for choice, where in places.items() if len(where) > 1}


def test_leaves_are_named_in_one_place() -> None:
    """What files of weights, checkpoints, adapters and messages call a parameter is one name."""
    naming = {path.name for path in SOURCE.rglob("*.py") if "keystr" in path.read_text(encoding="utf-8")}
    assert naming == {"named.py"}
