"""A plan beside this machine: what its devices can do, and how long the step takes on them."""

import resource
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from plainformer.models.parameters import class_of
from plainformer.plan.chips import Chip
from plainformer.plan.meshes import row
from plainformer.plan.plan import Plan
from plainformer.plan.roofline import Times, times
from plainformer.plan.words import seconds, size
from plainformer.train.mesh import batch_sharding, make_mesh, shardings
from plainformer.train.state import TrainState, initial_state

STEPS, TIMES = 3, 5  # of which the quickest counts: of the training, and of what a device is tried with
NUMBERS = 1 << 24  # of the arrays that memory and exchange are tried with


class Measured(NamedTuple):
    """What was found here.

    Attributes:
        chip: one device of this machine, as measured.
        expected: what a plan for such chips expects of the step.
        seconds: what the step took.
        memory: bytes that a device had in use at most, or None where it does not say.
        process: bytes by which the process grew, on a processor that plays the devices, compiling included.
        plan: the plan that it is compared with.
    """

    chip: Chip
    expected: Times
    seconds: float
    memory: int | None
    process: int
    plan: Plan

    def lines(self) -> Iterator[str]:
        """For a reader."""
        chip, expected, devices = self.chip, self.expected, self.plan.mesh.size
        yield ""
        yield (
            f"measured here, {devices} x {chip.name}, each: products {chip.float32 / 1e9:,.0f} GFLOP/s in float32, "
            f"{chip.bfloat16 / 1e9:,.0f} in bfloat16; memory {size(chip.bandwidth)}/s; exchange {size(chip.link)}/s"
        )
        spans = expected.least, expected.most, self.seconds
        shares = [f"{expected.mfu(one):.1%}".replace("%", " %") for one in spans]
        yield (
            f"expected with these {seconds(expected.least)} to {seconds(expected.most)} a step (MFU {shares[0]} to "
            f"{shares[1]}); it took {seconds(self.seconds)} (MFU {shares[2]})"
        )
        if self.memory is not None:
            yield f"a device had {size(self.memory)} in use at most"
        else:
            yield f"the process grew by {size(self.process)}, compiling and what was measured before included"

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        found = {"least": self.expected.least, "most": self.expected.most}
        return {
            "chip": self.chip._asdict(), "expected": found, "seconds": self.seconds, "memory": self.memory,
            "process": self.process,
        }  # fmt: skip


def measured(plan: Plan) -> Measured:
    """Try the devices of this machine, and run the step of a plan on them. Raises InputError where they are fewer."""
    mesh, before = make_mesh(plan.mesh), _process()
    chip = device_here(mesh)
    subject, found = plan.subject, row(plan.subject, plan.whole, plan.mesh, chip).estimate
    exchanged = found.exchanged if plan.compiled is None else plan.compiled.exchanged
    expected = times(
        chip, subject.settings.compute_dtype, operations=found.operations, useful=found.useful, traffic=found.traffic,
        exchanged=exchanged, mesh=plan.mesh,
    )  # fmt: skip
    step, state, batch = subject.step(mesh), _state(plan, mesh), _batch(plan, mesh)
    state = jax.block_until_ready(step(state, batch))  # which compiles
    taken = []
    for _ in range(STEPS):
        began = time.perf_counter()
        state = jax.block_until_ready(step(state, batch))
        taken.append(time.perf_counter() - began)
    statistics = mesh.devices.flat[0].memory_stats() or {}
    return Measured(chip, expected, min(taken), statistics.get("peak_bytes_in_use"), _process() - before, plan)


def device_here(mesh: Mesh) -> Chip:
    """One device of a mesh as it does while all are at work."""
    devices, everywhere = mesh.size, NamedSharding(mesh, PartitionSpec(mesh.axis_names))

    def spread(shape: tuple[int, ...], dtype: Any) -> Any:
        return jax.device_put(jnp.ones((devices, *shape), dtype), everywhere)

    side = 1024 if mesh.devices.flat[0].platform == "cpu" else 8192
    rates = []
    for dtype in (jnp.float32, jnp.bfloat16):
        factor = spread((side, side), dtype)
        rates.append(2.0 * side**3 / _quickest(jax.jit(lambda x: jnp.einsum("dij,djk->dik", x, x)), factor))
    numbers = NUMBERS if devices <= 8 else NUMBERS // devices
    array = spread((numbers,), jnp.float32)
    bandwidth = 8.0 * numbers / _quickest(jax.jit(lambda x: x + 1.0), array)
    link = 0.0
    if devices > 1:
        whole = NamedSharding(mesh, PartitionSpec())
        gather = jax.jit(lambda x: x, out_shardings=whole)
        part = jax.device_put(jnp.ones((devices, numbers // devices), jnp.float32), everywhere)
        link = 4.0 * numbers * (devices - 1) / devices / _quickest(gather, part)
    kind = mesh.devices.flat[0].device_kind
    room = (mesh.devices.flat[0].memory_stats() or {}).get("bytes_limit", 0)
    return Chip(kind, rates[1], rates[0], room, bandwidth, link or bandwidth, 1 << 20, link or bandwidth, False, "here")


def _quickest(function: Callable[..., Any], *arguments: Any) -> float:
    jax.block_until_ready(function(*arguments))
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        jax.block_until_ready(function(*arguments))
        taken.append(time.perf_counter() - began)
    return min(taken)


def _state(plan: Plan, mesh: Mesh) -> TrainState:
    """A new state, made where it is to be."""
    subject, shapes = plan.subject, plan.whole.state
    _, rest = eqx.partition(shapes, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def arrays(key: Any) -> Any:
        kind: Any = class_of(subject.config)
        return eqx.filter(initial_state(kind(subject.config, key=key), subject.optimizer), eqx.is_array)

    made = jax.jit(arrays, out_shardings=shardings(shapes, mesh))(jax.random.key(0))
    return eqx.combine(made, rest)


def _batch(plan: Plan, mesh: Mesh) -> Any:
    """A batch of one token, all of it real."""
    shapes = plan.subject.batch(plan.subject.rows)
    ones = jax.tree.map(lambda leaf: np.ones(leaf.shape, leaf.dtype), shapes)
    return jax.device_put(ones, batch_sharding(mesh))


def _process() -> int:
    """Bytes that the process has had at most."""
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024
