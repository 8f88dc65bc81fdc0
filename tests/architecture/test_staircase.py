"""The house is a staircase: a room imports from lower floors only, and neighbours are strangers."""

import ast
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "src"
PACKAGE = "plainformer"

# From the ground up. The ground floor is one room of single files; everywhere else a name is a room of its own.
FLOORS = (
    {
        "devices",
        "errors",
        "extras",
        "files",
        "given",
        "lazy",
        "mesh_shape",
        "named",
        "renamed",
        "runtime",
        "shapes",
        "shipped",
        "spelling",
        "table",
    }
    | {"waiting"},
    {"equations"},
    {"kernels"},
    {"nn", "tokenizer"},
    {"programs"},
    {"data", "models"},
    {"quantize"},
    {"adapter", "interop", "kinds"},
    {"objective", "folder"},
    {"locate", "inspect"},
    {"train", "decode"},
    {"evaluate", "figures"},
    {"recipe"},
    {"runs"},
    {"page", "plan", "reproduce"},
    {"serve"},
    {"cli"},
    {"__main__"},
)

# What an extra installs: found by `extras.require`, never by an import statement.
OPTIONAL = {
    "altair",
    "vl_convert",
    "starlette",
    "uvicorn",
    "prometheus_client",
    "py3langid",
    "tensorboardX",
    "tiktoken",
    "sentencepiece",
} | {
    "huggingface_hub",
    "numba",
    "llvmlite",
}


@cache
def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in SOURCE.joinpath(PACKAGE).rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(statement: ast.AST) -> Iterator[str]:
    """The modules that an import statement names: `from a import b` is `a.b` where that is a module, else `a`."""
    if isinstance(statement, ast.Import):
        yield from (alias.name for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom):
        assert statement.level == 0, "imports are absolute here, so that they can be searched for"
        for alias in statement.names:
            whole = f"{statement.module}.{alias.name}"
            yield whole if whole in modules() else str(statement.module)


@cache
def imports(module: str) -> frozenset[str]:
    """All that `module` imports, at its top, in its functions or for the type checker alone."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    return frozenset(name for node in ast.walk(tree) for name in imported(node))


def floor(room: str) -> int:
    return next(number for number, rooms in enumerate(FLOORS) if room in rooms)


def room(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("module", sorted(set(modules()) - {PACKAGE}))
def test_a_module_imports_its_own_room_and_lower_floors_only(module: str) -> None:
    assert any(room(module) in rooms for rooms in FLOORS), f"{room(module)} is on no floor: give it one in FLOORS"
    # The package itself is the shop window: it re-exports everything, and imports nothing until it is asked.
    for other in imports(module) - {PACKAGE}:
        if other.split(".")[0] != PACKAGE or room(other) == room(module):
            continue
        both_on_the_ground = floor(room(other)) == floor(room(module)) == 0
        assert floor(room(other)) < floor(room(module)) or both_on_the_ground, f"{module} imports {other}"


def test_no_module_imports_itself_through_others() -> None:
    inside = {module: imports(module) & set(modules()) - {PACKAGE} for module in set(modules()) - {PACKAGE}}
    try:
        TopologicalSorter(inside).prepare()
    except CycleError as cycle:
        pytest.fail(" -> ".join(cycle.args[1]))


@pytest.mark.parametrize("quiet", ["tokenizer", "data", "files", "recipe", "errors", "devices", "runtime", "extras"])
def test_text_and_data_and_recipes_know_no_jax(quiet: str) -> None:
    # They ask JAX for its devices and set its cache, in functions; that is their job.
    permitted = {"jax"} if quiet in ("devices", "runtime") else set()
    for module in modules():
        if module != PACKAGE and room(module) == quiet:
            outside = {name.split(".")[0] for name in imports(module)}
            assert not outside & {"jax", "jaxlib", "equinox", "optax", "orbax"} - permitted, module


@pytest.mark.parametrize("module", sorted(modules()))
def test_no_optional_package_is_imported_by_name(module: str) -> None:
    assert not {name.split(".")[0] for name in imports(module)} & (OPTIONAL | {"torch", "transformers"})


def test_the_rules_see_a_wrong_import() -> None:
    wrong = ast.parse("def late():\n    from plainformer.decode.beam import beam_search\n    import jax.numpy as jnp\n")
    found = {name for node in ast.walk(wrong) for name in imported(node)}
    assert found == {"plainformer.decode.beam", "jax.numpy"}
    assert (
        floor("decode")
        == floor("train")
        > floor("models")
        > floor("nn")
        > floor("kernels")
        > floor("equations")
        > floor("shapes")
    )
