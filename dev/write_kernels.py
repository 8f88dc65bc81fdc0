"""Write docs/kernels.md from the tables of twins in `plainformer.kernels`."""

import importlib
import pkgutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from plainformer import kernels
from plainformer.kernels.cpu import registry
from plainformer.kernels.dispatch import Twin, Twins, always

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "kernels.md"
DEVICES = {"cpu": "CPU", "cuda": "NVIDIA GPU (Ampere or newer)", "tpu": "TPU", "other": "every other device"}

HEAD = """\
# Kernels

Every function of the paper is defined once in [`equations/`](../src/plainformer/equations). Beside a definition there
may be faster implementations of the same function, its twins, in [`kernels/`](../src/plainformer/kernels): one file an
operation, with one table of twins for each kind of device. [`choose`](../src/plainformer/kernels/dispatch.py) takes the
first twin of the device's row that serves the shapes, dtypes and masks it is given; the last one serves everything, so
that a new variant is right at once. [`tests/laws/test_kernel_laws.py`](../tests/laws/test_kernel_laws.py) holds every
twin of every table to its equation, in values and gradients.

This page is written by [`dev/write_kernels.py`](../dev/write_kernels.py) from the tables.

"""

CPU = """\
## CPU kernels

With the extra `cpu`, Numba compiles the functions of [`kernels/cpu/code/`](../src/plainformer/kernels/cpu/code) on the
machine that they run on, in processes of their own while a command starts, and keeps them
([`build.py`](../src/plainformer/kernels/cpu/build.py)). XLA calls them by these names
([`registry.py`](../src/plainformer/kernels/cpu/registry.py)), once a self-test of their group has passed
([`selftest.py`](../src/plainformer/kernels/cpu/selftest.py)); where one fails, a warning says so and XLA's twins serve.

| group | kernels, each with its module of `code/` |
|---|---|
"""


def main(target: Path) -> None:
    """Write the page, and print where it is."""
    target.write_text(page(), encoding="utf-8")
    print(target)


def page() -> str:
    """The page as the tables have it."""
    tables = "".join(f"{_of_table(module, name, twins)}\n" for module, name, twins in _tables())
    groups = [
        f"| {group} | {', '.join(f'`{name}` (`{code}.py`)' for name, code in its.items())} |\n"
        for group, its in registry.GROUPS.items()
    ]
    return HEAD + tables + CPU + "".join(groups)


def _tables() -> Iterator[tuple[ModuleType, str, Twins]]:
    for found in sorted(pkgutil.iter_modules(kernels.__path__, f"{kernels.__name__}."), key=lambda one: one.name):
        module = importlib.import_module(found.name)
        yield from ((module, name, value) for name, value in vars(module).items() if "TWINS" in name)


def _of_table(module: ModuleType, name: str, twins: Twins) -> str:
    title = module.__name__.rpartition(".")[2].replace("_", " ")
    title += "" if name == "TWINS" else f", {name.replace('TWINS', '').strip('_').lower().replace('_', ' ')}"
    lines = [f"## {title[0].upper()}{title[1:]}", "", (module.__doc__ or "").strip().split("\n\n")[0], ""]
    lines += ["| device | twin | serves |", "|---|---|---|"]
    for platform, row in twins.items():
        device = DEVICES[platform] if len(twins) > 1 else "every device"
        lines += [f"| {device} | {_link(twin)} | {_serves(twin)} |" for twin in row]
    return "\n".join(lines) + "\n"


def _link(twin: Twin) -> str:
    above = "" if twin.name.startswith("equations/") else "kernels/"
    return f"[`{twin.name}`](../src/plainformer/{above}{twin.name}.py)"


def _serves(twin: Twin) -> str:
    if twin.serves is always:
        return "everything"
    said = " ".join((twin.serves.__doc__ or "").split()).partition(". ")[0].rstrip(".")
    return said.removeprefix("Whether ")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PAGE)
