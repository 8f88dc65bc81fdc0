"""ES modules as one classic script: what a page from a file, and a worker that it starts, can run.

A browser loads no module from `file://`, and a worker from a blob can import none beside it. So each module becomes a
function that is called once and gives what the module exports. That needs no parser, since the modules here are written
in one form: imports by name from relative paths, at the beginning of a line; exports before what is declared.
"""

import re
from pathlib import Path

ENGINE = Path(__file__).parent / "engine"
"""Where the modules are that run a model."""

_IMPORT = re.compile(r'^import \{([^}]*)\} from "(\.[^"]+)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\*? (\w+))", re.MULTILINE)
_LEFT = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


def as_script(entry: Path) -> str:
    """The module `entry` and all that it imports, in the order in which they run, as a script that may stand in a page.

    Raises:
        ValueError: a module is not written in the form above, or holds the end of a `<script>`; modules import each
            other in a circle.
    """
    order: list[Path] = []
    _visit(entry.resolve(), order, ())
    names = {path: f"module_{number}" for number, path in enumerate(order)}
    parts = [_as_function(path, names) for path in order]
    text = '(() => {\n"use strict";\n' + "\n".join(parts) + "\n})();\n"
    if "</script" in text.lower():
        raise ValueError(f"{entry} holds the end of a script element")
    return text


def _visit(path: Path, order: list[Path], open_modules: tuple[Path, ...]) -> None:
    """Put a module behind those that it imports."""
    if path in open_modules:
        raise ValueError(f"{path.name} imports itself through others")
    if path not in order:
        for _, target in _IMPORT.findall(path.read_text(encoding="utf-8")):
            _visit((path.parent / target).resolve(), order, (*open_modules, path))
        order.append(path)


def _as_function(path: Path, names: dict[Path, str]) -> str:
    text = path.read_text(encoding="utf-8")

    def imported(found: re.Match[str]) -> str:
        bindings = re.sub(r"(\w+)\s+as\s+(\w+)", r"\1: \2", found[1])
        return f"const {{{bindings}}} = {names[(path.parent / found[2]).resolve()]};\n"

    exported = _EXPORT.findall(text)
    text = _EXPORT.sub("", _IMPORT.sub(imported, text))
    if left := _LEFT.search(text):
        raise ValueError(f"{path.name}: {left[0]} is not written as modules are here")
    given = f"return {{ {', '.join(exported)} }};" if exported else ""
    return f"const {names[path]} = (() => {{\n{text}{given}\n}})();"
