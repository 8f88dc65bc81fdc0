"""The text of a lowered program without what says where it comes from: two that are equal compute the same.

JAX writes a program (StableHLO, a dialect of MLIR) with the names of the Python functions that it was traced from, of
the arguments and results, and, if asked, the lines of their files. None of that is computed. What is left here is every
operation, its operands, shapes, attributes and constants, and the names of foreign functions.
"""

import itertools
import re
from collections.abc import Iterator

# A string, or a symbol, which may be written as one; in this order, since strings may hold what looks like a symbol.
_WORD = re.compile(r'@"(?:[^"\\]|\\.)*"|"(?:[^"\\]|\\.)*"|@[\w$.-]+')
_DEFINED = re.compile(
    r'^\s*(?:module|func\.func(?: (?:public|private|nested))?|sdy\.mesh|\S+\.global)\s+(@"(?:[^"\\]|\\.)*"|@[\w$.-]+)'
)
_NAMES = re.compile(r'(, )?\bjax\.(?:result_info|arg_info) = "(?:[^"\\]|\\.)*"(?(1)|(?:, )?)')
_CALL = re.compile(r"custom_call @([\w$.-]+)")
_DIGEST = re.compile(r"[._-](?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{8,}\b")
_FUNCTION = re.compile(r"  func\.func (?:public |private )?(@\w+)")
_VALUE = re.compile(r"%\w+(?:#\d+)?")
_RESULTS = re.compile(r"\s*(%\w+)(?::\d+)? = ")
_CALLED = re.compile(r"\s*(?:(%\w+)(?::(\d+))? = )?(?:func\.)?call (@\w+)\((.*?)\)")
_POINTER = re.compile(r"\b\d{9,}\b")


def normalised(text: str) -> str:
    """The program without places in source files, its symbols named in the order in which they appear.

    Of custom calls the target stays, without a digest at its end; of those that call Python back, the pointers to the
    functions go.
    """
    lines = [
        _without_pointers(_NAMES.sub("", line).replace(" {}", "") if "jax." in line else line)
        for line in map(str.rstrip, _without_places(text))
        if line
    ]
    names: dict[str, str] = {}
    for line in lines:
        if found := _DEFINED.match(line):
            names.setdefault(found[1], f"@s{len(names)}")
    return "".join(_WORD.sub(lambda found: names.get(found[0], found[0]), line) + "\n" for line in lines)


def operations(text: str) -> int:
    """How many operations a program has, those that only return left out."""
    return sum(1 for line in text.splitlines() if re.match(r'\s*(?:%\S+ = |"?stablehlo\.|call )', line))


def foreign_functions(text: str) -> list[str]:
    """The targets of its custom calls, each once."""
    return sorted(set(_CALL.findall(text)))


def inlined(text: str) -> str:
    """A program, normalised, with each call of one of its functions replaced by what that does."""
    bodies: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.splitlines():
        if found := _FUNCTION.match(line):
            lines = bodies.setdefault(found[1], [])
        lines.append(line)
    if not bodies:
        return text
    numbers = itertools.count()
    header = text[: text.index("  func.func ")]
    main, *_ = bodies
    body = bodies[main][: bodies[main].index("  }")]
    return header + "\n".join(_written_out(body, bodies, numbers)) + "\n  }\n}\n"


def _written_out(body: list[str], bodies: dict[str, list[str]], numbers: "itertools.count[int]") -> Iterator[str]:
    """The lines of a function, those of the ones that it calls in place of the calls."""
    given: dict[str, str] = {}  # what stands for the results of calls
    for line in body:
        if results := _RESULTS.match(line):  # a name of a region that has ended is used again
            given = {name: value for name, value in given.items() if name.partition("#")[0] != results[1]}
        line = _renamed(line, given)
        if (call := _CALLED.match(line)) is None:
            yield line
            continue
        name, count, callee, arguments = call.groups()
        head, *inner = bodies[callee]
        values = dict(zip(_VALUE.findall(head.partition(" -> ")[0]), _VALUE.findall(arguments), strict=True))
        own = f"%f{next(numbers)}_"
        lines = [_renamed(one, values, own) for one in inner[: inner.index("  }")]]
        *kept, last = _written_out(lines, bodies, numbers)
        yield from kept
        names = [name] if count is None else [f"{name}#{index}" for index in range(int(count))]
        given |= dict(zip(names, _VALUE.findall(last), strict=True))


def _renamed(line: str, values: dict[str, str], own: str = "%") -> str:
    """A line with other names for some values, and a beginning of its own for the rest."""
    return _VALUE.sub(lambda found: values.get(found[0], own + found[0][1:]), line)


def _without_places(text: str) -> Iterator[str]:
    """Lines without `loc(…)`, in which brackets and strings may stand inside each other."""
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        while (start := _place(line)) is not None:
            line = line[: start[0]].rstrip() + line[start[1] :]
        yield line


def _place(line: str) -> tuple[int, int] | None:
    """Where in a line the first place in a source file begins and ends."""
    strings = [found.span() for found in _WORD.finditer(line)]
    for found in re.finditer(r"\bloc\(", line):
        if any(first < found.start() < last for first, last in strings):
            continue
        depth = 0
        for index in range(found.end() - 1, len(line)):
            if any(first <= index < last for first, last in strings):
                continue
            depth += {"(": 1, ")": -1}.get(line[index], 0)
            if depth == 0:
                return found.start(), index + 1
    return None


def _without_pointers(line: str) -> str:
    if (found := _CALL.search(line)) is None:
        return line
    line = line.replace(f"@{found[1]}", f"@{_DIGEST.sub('', found[1])}")
    return _POINTER.sub("POINTER", line) if "callback" in found[1] else line
