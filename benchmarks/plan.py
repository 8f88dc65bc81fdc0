"""Whether a plan says what XLA does: small programs extended to the whole, beside the whole program compiled.

    python benchmarks/plan.py exact          # collectives and memory, six shapes on six meshes of 8 devices
    python benchmarks/plan.py cost           # seconds and memory of plans for 1 to 512 devices of three models

Nothing is allocated: the devices are played by the processor, and programs are compiled from shapes alone.
"""

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence

CASES = (
    ("gpt2", "data=8", "model.layers=5"), ("gpt2", "fsdp=8", "model.layers=5"),
    ("gpt2", "data=2,fsdp=4", "model.layers=5", "train.compute_dtype=float32", "train.remat=true"),
    ("gpt-scratch", "fsdp=4,tensor=2", "model.layers=5", "train.compute_dtype=float32"),
    ("paper-base", "data=4,tensor=2", "model.encoder_layers=4", "model.decoder_layers=4"),
    ("gpt2", "data=2,fsdp=2,tensor=2", "model.layers=5"),
)  # fmt: skip
MODELS = ("paper-big", "gpt2", "llama-7b")
DEVICES = (1, 8, 512)


def exact(only: int | None) -> None:
    """One line for each case, in a process of its own."""
    for number in range(len(CASES)) if only is None else (only,):
        subprocess.run([sys.executable, __file__, "case", str(number)], check=False)


def case(preset: str, mesh: str, *changes: str) -> None:
    from plainformer.mesh_shape import MeshShape
    from plainformer.plan.place import play, played

    shape = MeshShape.parse(mesh)
    play(shape.size)
    from plainformer.plan.compiled import compiled
    from plainformer.plan.subject import preset_recipe, subject_of
    from plainformer.recipe import parse_recipe
    from plainformer.train.mesh import make_mesh

    there = make_mesh(shape, played(shape.size))
    subject = subject_of(parse_recipe(preset_recipe(preset, shape.size), changes), shape.rows)
    began = time.perf_counter()
    small = compiled(subject, there, subject.rows)
    between = time.perf_counter()
    whole = compiled(subject, there, subject.rows, whole=True)
    ended = time.perf_counter()
    equal = dict(small.exchanged) == dict(whole.exchanged)
    off = {
        f"{kind.kind} {kind.axis}": (tuple(small.exchanged.get(kind, ())), tuple(whole.exchanged.get(kind, ())))
        for kind in {**small.exchanged, **whole.exchanged}
        if small.exchanged.get(kind) != whole.exchanged.get(kind)
    }
    count, size = (sum(one[at] for one in whole.exchanged.values()) for at in range(2))
    print(
        f"{preset} {mesh} {' '.join(changes)}: {len(whole.exchanged)} kinds, {count:,} collectives, {size:,} bytes: "
        f"{'equal' if equal else f'not equal {off}'}; memory {small.memory:,} for {whole.memory:,} bytes "
        f"({small.memory / whole.memory - 1:+.3%}); {between - began:.1f} s for {ended - between:.1f}",
        flush=True,
    )


def cost(compilers: Sequence[str]) -> None:
    for model in MODELS:
        for devices in DEVICES:
            for compiler in compilers:
                began = time.perf_counter()
                script = (
                    "import sys, resource; sys.argv = ['plainformer', 'plan', *sys.argv[1:]]\n"
                    "from plainformer.cli.main import main\n"
                    "try: main()\n"
                    "finally:\n"
                    "    used = resource.getrusage(resource.RUSAGE_SELF)\n"
                    "    print(used.ru_utime + used.ru_stime, used.ru_maxrss, file=sys.stderr)"
                )
                done = subprocess.run(
                    [sys.executable, "-c", script, model, "--devices", str(devices), "--compiler", compiler],
                    capture_output=True, text=True, check=False,
                )  # fmt: skip
                assert done.returncode == 0, done.stderr
                busy, most = map(float, done.stderr.splitlines()[-1].split())
                print(
                    f"{model} on {devices}, compiler {compiler}: {time.perf_counter() - began:.1f} s, "
                    f"of CPU {busy:.1f}, {most / 1e6:.2f} GB; {done.stdout.splitlines()[0].partition('; ')[2]}",
                    flush=True,
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("exact", "cost", "case"))
    parser.add_argument("number", nargs="?", type=int)
    parser.add_argument("--compilers", default="none,cpu", help="Of cost: by rule (none), compiled (cpu), or both.")
    given = parser.parse_args()
    if given.what == "case":
        case(*CASES[given.number])
    else:
        cost(given.compilers.split(",")) if given.what == "cost" else exact(given.number)
