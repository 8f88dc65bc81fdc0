"""What the package has JAX compile, before and after it was re-arranged: equal text is the proof that nothing moved.

    python dev/lowered.py dump --package src before
    python dev/lowered.py dump --package src after       # of another tree
    python dev/lowered.py compare before after

`dump` trains tiny models of every task and works with them, by the commands of the shell alone (`lowered_cases`), on
one device and on eight, with and without CPU kernels, and writes down every program that JAX lowers (`stablehlo`): a
list for each command, `RUN/N-VERB.json`, and the texts, `programs/HASH.mlir`. `compare` holds two such folders side by
side. Nothing here knows how the package is arranged, or what anything in it is called.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import lowered_cases
import lowered_table
import stablehlo
from lowered_cases import Run

# Compiled quickly and not well: what is lowered does not depend on it.
QUICK = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
)
# Several commands in one process, each with a folder for its programs; what a later one has in common with an earlier
# is lowered once. Without Numba there are no CPU kernels, as without the extra.
RUNNER = """\
import json, runpy, sys
from pathlib import Path
package, kernels, commands = json.loads(sys.argv[1])
if not kernels:
    sys.modules["numba"] = None
import jax
import plainformer
assert Path(plainformer.__file__).is_relative_to(package), f"{plainformer.__file__} is not in {package}"
for folder, words in commands:
    jax.config.update("jax_dump_ir_to", folder)
    sys.argv = ["plainformer", *words]
    try:
        runpy.run_module("plainformer", run_name="__main__", alter_sys=True)
        code = 0
    except SystemExit as end:
        code = end.code or 0
    Path(folder, "code").write_text(str(code))
    if code:
        sys.exit(1)
"""


class Dump:
    """The runs of one package, each in a process of its own, and what they lowered."""

    def __init__(self, package: Path, out: Path, work: Path) -> None:
        self._package, self._out, self._work = package.resolve(), out, work
        self._done: dict[str, Future[list[str]]] = {}
        (out / "programs").mkdir(parents=True, exist_ok=True)
        lowered_cases.write_data(work / "data")

    def all(self, runs: Sequence[Run], jobs: int) -> None:
        """Every run, so many at a time. Says what failed, and ends with code 1 where anything did."""
        self._make_kernels(runs)
        with ThreadPoolExecutor(jobs) as threads:
            for run in runs:
                self._done[run.name] = threads.submit(self._run, run)
            failed = []
            for number, (name, done) in enumerate(self._done.items(), 1):
                problems = done.result()
                failed += problems
                print(f"{number} of {len(runs)}: {name}{''.join(f' FAILED: {one}' for one in problems)}", flush=True)
        if failed:
            sys.exit(f"{len(failed)} of {len(runs)} runs failed")

    def _run(self, run: Run) -> list[str]:
        """Train, use, write down; what went wrong."""
        if run.start is not None:
            self._done[run.start].result()  # which was begun before
        folder = self._folder(run.name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        commands = self._commands(run, folder)
        # Training has measured already: what measures again would find its programs, in the same process or its cache.
        alone = [command for command in commands if command[1][0] in ("score", "evaluate")]
        errors = ""
        for group in ([command for command in commands if command not in alone], *([command] for command in alone)):
            errors = errors or self._process(run, group, folder, self._fresh_cache(folder))
        for (dumped, words), label in zip(commands, self._labels(run), strict=True):
            self._write_down(run, Path(dumped), words, label)
        codes = [Path(dumped, "code") for dumped, _ in commands]
        if all(code.exists() and code.read_text() == "0" for code in codes):
            return []
        return [(errors.strip().splitlines() or ["without a word"])[-1][:300]]

    def _commands(self, run: Run, folder: Path) -> list[tuple[str, list[str]]]:
        """Folders of programs, and the words of commands."""
        recipe, model, data = folder / "recipe.toml", folder / "run", self._work / "data"
        lowered_cases.write_recipe(run, data, recipe)
        train = ["train", str(recipe), "--run", str(model)]
        if run.start is not None:
            train += ["--from", str(self._folder(run.start) / "run")]
        for setting in run.settings:
            train += ["--set", setting]
        uses = [[verb, str(model), *(word.format(data=data) for word in words)] for verb, *words in run.verbs]
        found = []
        for number, words in enumerate([train, *uses]):
            (dumped := folder / f"dumped{number}").mkdir()
            found.append((str(dumped), words))
        return found

    def _labels(self, run: Run) -> list[str]:
        """What each command is called in the table: the verb, and the options that say what is computed."""
        options = (
            " ".join(word for word in verb if word != "--file" and "{data}" not in word and " " not in word)
            for verb in run.verbs
        )
        return ["train", *options]

    def _process(self, run: Run, commands: Sequence[tuple[str, list[str]]], folder: Path, cache: Path) -> str:
        """Run commands in a process of their own; what was said of an error, if there was one."""
        flags = f"{QUICK} --xla_force_host_platform_device_count={run.devices}"
        settings = {
            **{name: value for name, value in os.environ.items() if not name.startswith(("JAX_", "PLAINFORMER_"))},
            "PYTHONPATH": str(self._package),
            "PLAINFORMER_CACHE": str(cache),
            "XLA_FLAGS": flags,
            "JAX_PLATFORMS": "cpu",
            "JAX_DUMP_IR_MODES": "stablehlo",
            "JAX_INCLUDE_DEBUG_INFO_IN_DUMPS": "0",
        }
        told = json.dumps([str(self._package), run.kernels, commands])
        with (folder / "said").open("a", encoding="utf-8") as said:
            done = subprocess.run(
                [sys.executable, "-P", "-c", RUNNER, told],
                env=settings,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=subprocess.PIPE,
                cwd=folder,
                text=True,
                check=False,
            )
            said.write(done.stderr)
        return (done.stderr or f"it ended with code {done.returncode}") if done.returncode else ""

    def _write_down(self, run: Run, dumped: Path, words: Sequence[str], label: str) -> None:
        """The list of the programs of a command, and the texts of those that are new."""
        texts = Counter(stablehlo.normalised(path.read_text(encoding="utf-8")) for path in dumped.glob("*.mlir"))
        programs = {}
        for text, count in texts.items():
            name = hashlib.sha256(text.encode()).hexdigest()[:16]
            (self._out / "programs" / f"{name}.mlir").write_text(text, encoding="utf-8")
            size, called = stablehlo.operations(text), stablehlo.foreign_functions(text)
            programs[name] = {"count": count, "operations": size, "foreign": called}
        code = dumped / "code"
        record = {
            "task": run.task,
            "devices": run.devices,
            "kernels": run.kernels,
            "label": label,
            "command": [word.replace(str(self._work), "WORK") for word in words],
            "code": int(code.read_text()) if code.exists() else None,
            "programs": dict(sorted(programs.items())),
        }
        path = self._out / run.name / f"{dumped.name.removeprefix('dumped')}-{words[0]}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")

    def _folder(self, name: str) -> Path:
        return self._work / name.replace(", ", "-").replace(" ", "-")

    def _fresh_cache(self, folder: Path) -> Path:
        """A cache that has the CPU kernels, which take a minute to make, and no program."""
        cache = Path(tempfile.mkdtemp(prefix="cache", dir=folder))
        for made in (self._work / "kernels").glob("*"):
            if any(made.rglob("*.nbi")):  # Numba's
                (cache / made.name).symlink_to(made)
        return cache

    def _make_kernels(self, runs: Sequence[Run]) -> None:
        """Have the kernels made, tried and kept: by a run that trains and decodes, and what it begins."""
        cache = self._work / "kernels"
        cache.mkdir(mode=0o700)
        if not any(run.kernels for run in runs):
            return
        w8a8 = next(verb for verb in lowered_cases.VERBS["translation"] if "w8a8" in verb)
        folder = self._folder("kernels of all")
        folder.mkdir()
        run = Run("kernels", "translation", 1, True, ("model.heads=2",), (w8a8,))  # heads of 16, which they serve
        if errors := self._process(run, self._commands(run, folder), folder, cache):
            sys.exit(f"the CPU kernels could not be made: {errors[-500:]}")
        before: set[Path] = set()
        while (there := {path for path in cache.rglob("*") if "programs" not in path.parts}) != before:
            before = there  # processes that began are at it
            time.sleep(5)


def main() -> None:
    """`dump` or `compare`."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    verbs = parser.add_subparsers(dest="verb", required=True)
    dump = verbs.add_parser("dump", help="write down the programs of a package")
    dump.add_argument("out", type=Path, help="a folder; runs that are in it already are left")
    dump.add_argument("--package", type=Path, required=True, help="the folder that `plainformer` is in")
    dump.add_argument("--only", default="", help="runs whose name has this in it, and those they start from")
    dump.add_argument("--jobs", type=int, default=2, help="processes at a time")
    dump.add_argument("--work", type=Path, help="keep models and what was said in this new folder")
    compare = verbs.add_parser("compare", help="hold two folders of programs side by side")
    compare.add_argument("before", type=Path)
    compare.add_argument("after", type=Path)
    compare.add_argument(
        "--renamed", action="append", default=[], metavar="OLD=NEW", help="a CPU kernel that has another name"
    )
    compare.add_argument("--only", default="", help="runs whose name has this in it")
    compare.add_argument("--inlined", action="store_true", help="compare what differs without its functions' borders")
    compare.add_argument("--lines", type=int, default=40, help="of the difference of two programs")
    given = parser.parse_args()
    if given.verb == "compare":
        renamed = dict(one.split("=", 1) for one in given.renamed)
        how = {"only": given.only, "inlined": given.inlined, "lines": given.lines}
        sys.exit(lowered_table.compare(given.before, given.after, renamed, **how))
    _dump(given)


def _dump(given: Any) -> None:
    every = lowered_cases.runs()
    wanted = [run for run in every if given.only in run.name and not _is_there(run, given.out)]
    starts = {run.start for run in wanted}
    runs = [run for run in every if run in wanted or run.name in starts]
    print(f"{len(runs)} of {len(every)} runs", flush=True)
    if given.work is not None:
        given.work.mkdir(parents=True)
        Dump(given.package, given.out, given.work.resolve()).all(runs, given.jobs)
        return
    with tempfile.TemporaryDirectory(prefix="lowered-") as work:
        Dump(given.package, given.out, Path(work).resolve()).all(runs, given.jobs)


def _is_there(run: Run, out: Path) -> bool:
    """Whether all commands of a run were written down, and ended well."""
    records = [json.loads(path.read_text(encoding="utf-8")) for path in (out / run.name).glob("*.json")]
    return len(records) == 1 + len(run.verbs) and all(record["code"] == 0 for record in records)


if __name__ == "__main__":
    main()
