"""Modules, models and decoding never meet a kernel, a device or a library of kernels: the tables of `kernels/` do."""

import ast
from pathlib import Path

import pytest
from test_staircase import imports, modules, room

BEHIND_THE_TABLES = tuple(f"plainformer.kernels.{part}" for part in ("cpu", "gpu", "tpu", "xla"))
# What decoding may ask: of the CPU's kernels only that they are compiled ahead, and how many cores there are.
PERMITTED = {
    "plainformer.decode.load": {"plainformer.kernels.cpu.build", "plainformer.devices.default_device"},
    "plainformer.decode.parallel_search": {"plainformer.devices.cores"},
}
FLOORS = [
    name for name in sorted(modules()) if name.count(".") and room(name) in ("nn", "models", "decode", "objective")
]


@pytest.mark.parametrize("module", FLOORS)
def test_no_kernel_and_no_device_is_imported(module: str) -> None:
    found = {name for name in imports(module) if name.startswith((*BEHIND_THE_TABLES, "numba", "llvmlite"))}
    tree = ast.parse(Path(modules()[module]).read_text(encoding="utf-8"))
    found |= {
        f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "plainformer.devices"
        for alias in node.names
    }
    assert found <= PERMITTED.get(module, set())


@pytest.mark.parametrize("module", [name for name in FLOORS if room(name) in ("nn", "models", "objective")])
def test_no_type_of_eight_or_sixteen_bits_is_named(module: str) -> None:
    """What a model is computed in, it is given; what it is rounded to, `quantize` knows."""
    tree = ast.parse(Path(modules()[module]).read_text(encoding="utf-8"))
    named = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    named |= {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    assert not named & {"int8", "uint8", "float16", "bfloat16", "w8a8"}


@pytest.mark.parametrize("module", [name for name in FLOORS if room(name) != "decode"])
def test_no_module_knows_of_quantised_weights(module: str) -> None:
    assert not {name for name in imports(module) if name.startswith("plainformer.quantize")}
