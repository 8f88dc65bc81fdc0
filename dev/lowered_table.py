"""Two folders of lowered programs, side by side: which commands have the same programs, and where others differ."""

import difflib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

COLUMNS = {
    (1, True): "1 device, kernels",
    (1, False): "1 device, no kernels",
    (8, True): "8 devices, kernels",
    (8, False): "8 devices, no kernels",
}
SMALL = 12  # operations: what a single call of a function of JAX outside a program is lowered to
MOST_PAIRS = 4  # of programs whose difference is shown, of a command

Programs = Mapping[str, Mapping[str, Any]]


class Outcome(NamedTuple):
    """What became of the programs of one command.

    same: how many are in both.
    inlined: pairs of names whose programs are the same without the borders of their functions.
    gone, come: names of those that only one side has.
    counts: how many are compiled another number of times.
    fault: what is wrong otherwise, in a word.
    """

    same: int
    inlined: Sequence[tuple[str, str]]
    gone: Sequence[str]
    come: Sequence[str]
    counts: int
    fault: str = ""

    @property
    def is_equal(self) -> bool:
        return not (self.gone or self.come or self.fault)


class Side:
    """One folder of programs; kernels that have another name by now are called by that."""

    def __init__(self, folder: Path, renamed: Mapping[str, str]) -> None:
        self.folder, self._renamed = folder, renamed
        self._names: dict[str, str] = {}
        self.commands = {
            f"{path.parent.name}/{path.stem}": json.loads(path.read_text(encoding="utf-8"))
            for path in sorted(folder.glob("*/*.json"))
        }

    def text(self, name: str) -> str:
        text = (self.folder / "programs" / f"{name}.mlir").read_text(encoding="utf-8")
        return re.sub(r"@plainformer_(\w+)", lambda found: f"@plainformer_{self._of(found[1])}", text)

    def programs(self, command: str) -> dict[str, tuple[str, Mapping[str, Any]]]:
        """By what they are compared by: their text, if kernels are renamed, or else its hash."""
        programs = self.commands[command]["programs"]
        return {self._key(name, facts): (name, facts) for name, facts in programs.items()}

    def _key(self, name: str, facts: Mapping[str, Any]) -> str:
        called = [one.removeprefix("plainformer_") for one in facts["foreign"]]
        return self.text(name) if any(one in self._renamed for one in called) else name

    def _of(self, kernel: str) -> str:
        return self._renamed.get(kernel, kernel)


def compare(before: Path, after: Path, renamed: Mapping[str, str], *, only: str = "", inlined: bool, lines: int) -> int:
    """Print the table and the differences; 0 where there are none, else 1.

    Args:
        renamed: CPU kernels, by their old names, without `plainformer_`.
        only: what the names of the runs that are compared have in them.
        inlined: whether programs that differ are compared once more, with all their functions written out in one.
        lines: of each difference that is shown.
    """
    one = Side(before, renamed)
    other = Side(after, {new: new for new in renamed.values()})
    if empty := [str(side.folder) for side in (one, other) if not side.commands]:
        raise SystemExit(f"{' and '.join(empty)}: no dump is there")
    without_borders = _inlining() if inlined else None
    names = sorted(name for name in {*one.commands, *other.commands} if only in name.partition("/")[0])
    outcomes = {name: _outcome(one, other, name, without_borders) for name in names}
    _print_table({**one.commands, **other.commands}, outcomes)
    for old, new in renamed.items():
        print(f"the CPU kernel {old} is called {new} after it")
    for name, outcome in outcomes.items():
        for line in _told(one, other, name, outcome, lines):
            print(line)
    return 0 if all(outcome.is_equal for outcome in outcomes.values()) else 1


def _outcome(one: Side, other: Side, name: str, without_borders: Callable[[str], str] | None) -> Outcome:
    if name not in one.commands or name not in other.commands:
        return Outcome(0, (), (), (), 0, "only before" if name in one.commands else "only after")
    if codes := [side.commands[name]["code"] for side in (one, other) if side.commands[name]["code"] != 0]:
        return Outcome(0, (), (), (), 0, f"failed with code {codes[0]}")
    was, now = one.programs(name), other.programs(name)
    if not was and not now:
        return Outcome(0, (), (), (), 0, "no program")
    same = was.keys() & now.keys()
    gone = [was[key][0] for key in was if key not in same]
    come = [now[key][0] for key in now if key not in same]
    alike = []
    if without_borders is not None and gone and come:
        plain = {without_borders(other.text(new)): new for new in come}
        alike = [(old, plain[text]) for old in gone if (text := without_borders(one.text(old))) in plain]
        gone = [old for old in gone if old not in {pair[0] for pair in alike}]
        come = [new for new in come if new not in {pair[1] for pair in alike}]
    counts = sum(was[key][1]["count"] != now[key][1]["count"] for key in same)
    return Outcome(len(same), alike, gone, come, counts)


def _print_table(commands: Mapping[str, Any], outcomes: Mapping[str, Outcome]) -> None:
    """A row for each task and verb, a column for each place to compute; a cell has all such commands."""
    cells: dict[tuple[str, str], dict[tuple[int, bool], list[Outcome]]] = defaultdict(lambda: defaultdict(list))
    for name, outcome in outcomes.items():
        facts = commands[name]
        cells[facts["task"], facts["label"]][facts["devices"], facts["kernels"]].append(outcome)
    rows = [["task", "command", *COLUMNS.values()]]
    for (task, label), row in sorted(cells.items(), key=lambda one: (one[0][0], one[0][1] != "train", one[0][1])):
        rows.append([task, label, *(_cell(row[where]) if where in row else "" for where in COLUMNS)])
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rows.insert(1, ["-" * width for width in widths])
    for row in rows:
        print(f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |")
    same, pairs = sum(one.same for one in outcomes.values()), sum(len(one.inlined) for one in outcomes.values())
    equal = sum(one.is_equal for one in outcomes.values())
    print(f"\n{equal} of {len(outcomes)} commands have equal programs: {same} the same text", end="")
    print(f", {pairs} the same once their functions are written out" if pairs else "")


def _cell(outcomes: Sequence[Outcome]) -> str:
    """How many programs of how many runs are equal, or what is not."""
    if faults := [outcome.fault for outcome in outcomes if outcome.fault]:
        return faults[0]
    runs, same = f" of {len(outcomes)} runs" * (len(outcomes) > 1), sum(one.same for one in outcomes)
    if differing := [one for one in outcomes if not one.is_equal]:
        gone, come = sum(len(one.gone) for one in differing), sum(len(one.come) for one in differing)
        return f"DIFFERS: {same} equal, {gone} gone, {come} new"
    words = f"equal: {same + sum(len(one.inlined) for one in outcomes)}{runs}"
    if any(one.inlined for one in outcomes):
        words += f", {sum(len(one.inlined) for one in outcomes)} inlined"
    return words + ", other counts" * any(one.counts for one in outcomes)


def _told(one: Side, other: Side, name: str, outcome: Outcome, lines: int) -> Iterator[str]:
    """Of a command whose programs differ, what does: the programs that are nearest to each other in pairs."""
    if outcome.is_equal:
        return
    yield f"\n== {name}: {outcome.fault or f'{len(outcome.gone)} programs gone, {len(outcome.come)} new'}"
    if outcome.fault:
        return
    facts = {**one.commands[name]["programs"], **other.commands[name]["programs"]}

    def size(program: str) -> int:
        return facts[program]["operations"]

    left = sorted(outcome.come, key=size, reverse=True)
    for shown, old in enumerate(sorted(outcome.gone, key=size, reverse=True)):
        if not left:
            yield f"  - {old}: {size(old)} operations"
            continue
        text = one.text(old)
        new = max(left, key=lambda program: _likeness(text, other.text(program)))
        left.remove(new)
        yield f"  {old} ({size(old)} operations) -> {new} ({size(new)} operations)"
        if shown < MOST_PAIRS:
            difference = difflib.unified_diff(text.splitlines(), other.text(new).splitlines(), n=1, lineterm="")
            told = [line[:200] for line in difference][2:]
            yield from (f"    {line}" for line in told[:lines])
            if len(told) > lines:
                yield f"    … {len(told) - lines} lines more"
    for new in left:
        yield f"  + {new}: {size(new)} operations{' (a single call)' if size(new) <= SMALL else ''}"


def _likeness(text: str, other: str) -> float:
    """How much two programs have in common: the share of kinds of operations, which takes no time to find."""
    kinds = [Counter(re.findall(r"(?:stablehlo|chlo|sdy)\.\w+|tensor<[^>]*>", one)) for one in (text, other)]
    return (kinds[0] & kinds[1]).total() / max((kinds[0] | kinds[1]).total(), 1)


def _inlining() -> Callable[[str], str]:
    """A function that writes all functions of a program out in its main one, and drops what is said twice."""
    from jax._src.interpreters import mlir
    from jaxlib.mlir import ir
    from jaxlib.mlir.passmanager import PassManager

    import stablehlo

    def written_out(text: str) -> str:
        with mlir.make_ir_context():
            module = ir.Module.parse(stablehlo.inlined(text))
            PassManager.parse("builtin.module(canonicalize,cse)").run(module.operation)
            return stablehlo.normalised(str(module))

    return written_out
