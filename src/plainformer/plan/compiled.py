"""A training step compiled for devices that need not be there, from shapes, and what XLA says of it.

Of a model of many layers two or three small ones are compiled, of two and of three layers at their whole width on the
whole mesh: what one more layer adds between the first and the last is what each adds, since XLA treats them alike.
`whole` compiles all of it instead.
"""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, NamedTuple

import jax
from jax.sharding import AbstractMesh, Mesh

from plainformer.kernels.cpu import registry
from plainformer.models.parameters import AnyConfig
from plainformer.nn.stack import scanned
from plainformer.plan.hlo import Amount, Collective, collectives
from plainformer.plan.subject import Subject, stacks
from plainformer.train.mesh import batch_sharding, shardings
from plainformer.train.scan import least_in_loop

# What XLA does to a whole program is the same; machine code, which nobody runs, is written in a quarter of the time.
QUICKLY = {
    "cpu": {
        "xla_backend_optimization_level": 0,
        "xla_cpu_use_fusion_emitters": False,
        "xla_cpu_parallel_codegen_split_count": 1,
        "xla_llvm_disable_expensive_passes": True,
    },
    # Without a GPU nothing can be tried out on it. What `runtime.compiler_options` says is for the processor alone.
    "gpu": {"xla_gpu_autotune_level": 0, "xla_gpu_enable_triton_gemm": False, "xla_disable_hlo_passes": ""},
    "tpu": {"xla_disable_hlo_passes": ""},
}


FEW = 2  # layers of a small model: the first and the last are not quite as those between


class Compiled(NamedTuple):
    """What XLA says of a step, on each device.

    Attributes:
        arguments: bytes of the state and the batch.
        temporaries: bytes of all that lives while the step runs.
        results: bytes of what comes out and has not the place of what went in.
        exchanged: what the devices exchange in a step.
        platform: whose compiler it was.
        layers: those of the models that were compiled, one for each stack: the whole, or the small ones.
    """

    arguments: int
    temporaries: int
    results: int
    exchanged: Mapping[Collective, Amount]
    platform: str
    layers: Sequence[tuple[int, ...]]

    @property
    def memory(self) -> int:
        """Bytes that a device needs."""
        return self.arguments + self.temporaries + self.results


def compiled(subject: Subject, mesh: Mesh, rows: int, *, whole: bool = False) -> Compiled:
    """The step of a batch of so many rows; of the `whole` model at once, or of small ones."""
    layers = stacks(subject.config)
    if whole or max(layers.values()) <= FEW + 1 or _loops(subject):
        return _compile(subject, subject.config, mesh, rows)()
    points = small(layers)
    with ThreadPoolExecutor(2) as pool:  # one is traced while another compiles
        begun: list[Future[Compiled]] = [
            pool.submit(_compile(subject, replace(subject.config, **point), mesh, rows)) for point in points
        ]
        found = [one.result() for one in begun]
    return extrapolated(found, points, layers)


def small(layers: Mapping[str, int]) -> list[dict[str, int]]:
    """The layers of the small models: a few in each stack, and then one more in each stack in turn, or in all at once
    where all are as deep."""
    base = {name: min(FEW, count) for name, count in layers.items()}
    if len(set(layers.values())) == 1:
        return [base, {name: count + 1 for name, count in base.items()}]
    return [base, *(base | {name: base[name] + 1} for name in layers if layers[name] > base[name])]


def extrapolated(found: Sequence[Compiled], points: Sequence[Mapping[str, int]], layers: Mapping[str, int]) -> Compiled:
    """The model of so many layers, from what was found of the `small` ones."""
    first, *others = found

    def at_depth(value: Callable[[Compiled], int]) -> int:
        more = 0
        for one, point in zip(others, points[1:], strict=True):
            changed = next(name for name in layers if point[name] > points[0][name])
            more += (layers[changed] - points[0][changed]) * (value(one) - value(first))
        return value(first) + more

    kinds = sorted({kind for one in found for kind in one.exchanged})
    exchanged = {
        kind: Amount(*(at_depth(lambda one, i=i, kind=kind: one.exchanged.get(kind, (0, 0))[i]) for i in range(2)))
        for kind in kinds
    }
    return Compiled(
        at_depth(lambda one: one.arguments),
        at_depth(lambda one: one.temporaries),
        at_depth(lambda one: one.results),
        exchanged,
        first.platform,
        [layer for one in found for layer in one.layers],
    )


def arguments(subject: Subject, config: AnyConfig, mesh: Mesh | AbstractMesh, rows: int) -> tuple[Any, Any]:
    """The state and the batch of a step, as shapes with the places that they have on a mesh."""
    least = least_in_loop("on", optimizer="", frozen=()) if _loops(subject) else None
    state = jax.eval_shape(lambda state: scanned(state, least), subject.state(config))
    batch = subject.batch(rows)
    return _placed(state, shardings(state, mesh)), _placed(batch, jax.tree.map(lambda _: batch_sharding(mesh), batch))


def _placed(tree: Any, places: Any) -> Any:
    def place(leaf: Any, sharding: Any) -> Any:
        return leaf if sharding is None else jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding)

    return jax.tree.map(place, tree, places)


def _loops(subject: Subject) -> bool:
    return subject.scan == "on"


def _compile(subject: Subject, config: AnyConfig, mesh: Mesh, rows: int) -> Callable[[], Compiled]:
    """Trace the step of a model of this configuration; what is returned compiles it."""
    device = mesh.devices.flat[0]
    platform = device.platform
    # Twins are chosen by the default device, which one that is not there cannot be.
    here = jax.default_device(device) if platform == "cpu" else nullcontext()
    with registry.unused(), here:
        lowered = subject.step(mesh).lower(*arguments(subject, config, mesh, rows))

    def finish() -> Compiled:
        program = lowered.compile(QUICKLY.get({"cuda": "gpu"}.get(platform, platform)))
        sizes = program.memory_analysis()
        results = sizes.output_size_in_bytes - sizes.alias_size_in_bytes
        exchanged = collectives(program.as_text(), dict(mesh.shape))
        layers = [tuple(stacks(config).values())]
        return Compiled(sizes.argument_size_in_bytes, sizes.temp_size_in_bytes, results, exchanged, platform, layers)

    return finish
