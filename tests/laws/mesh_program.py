"""Three steps on one device, on a mesh of eight, and begun on one of them and ended on the other or itself: prints
how far apart, as JSON.

Run by a test, with a folder for checkpoints, the name of what makes the batches, and the mesh.
"""

import json
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import numpy as np
import tiny_run
from tiny_run import DROPPING, OBJECTIVE, fresh_state

from plainformer.runtime import compute_where_called
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.mesh import first_state, make_mesh, split_batch
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import TrainState
from plainformer.train.step import StepSettings, make_step


def main() -> None:
    compute_where_called()  # as the command line has it
    # Adam divides by the size of a gradient: where that is nearly 0, eps keeps rounding noise from becoming a step.
    optimizer = make_optimizer(constant(peak=0.01), eps=1e-3, clip=1.0)
    loader, ends, resumed, parts = getattr(tiny_run, sys.argv[2])(), {}, {}, {}
    meshes = {name: make_mesh(name) for name in ("data=1", sys.argv[3])}
    steps = {
        name: make_step(OBJECTIVE, optimizer, StepSettings(), jax.random.key(23), mesh=mesh)
        for name, mesh in meshes.items()
    }
    for name, mesh in meshes.items():
        state = fresh(optimizer, mesh)
        for number in (1, 2, 3):
            batch = split_batch(loader.batch(number), mesh)
            state = steps[name](state, batch)
            if number == 2:
                with saved_on(name) as checkpoints:
                    checkpoints.save(state, {})
        ends[name] = state
        model: Any = state.model
        leaves = batch.source, model.encoder.layers[0].feed_forward.inner.weight
        parts[name] = [leaf.addressable_shards[0].data.shape for leaf in leaves]
        assert pinned_alike(state, fresh(optimizer, mesh)), "a step moved what it was given"
    for before in meshes:
        for after, mesh in meshes.items():
            with saved_on(before) as checkpoints:
                restored = checkpoints.restore(fresh(optimizer, mesh))
            assert restored
            resumed[f"{before} to {after}"] = steps[after](restored.state, split_batch(loader.batch(3), mesh))
    start, one = parameters(fresh_state(DROPPING, optimizer)), parameters(ends["data=1"])
    result = {
        "apart": {name: furthest(one, parameters(state)) for name, state in (ends | resumed).items()},
        "moved": float(np.median([np.abs(a - b).max() for a, b in zip(start, one, strict=True)])),
        "losses": {name: float(state.since_log.loss) for name, state in (ends | resumed).items()},
        "steps": {name: int(state.step) for name, state in (ends | resumed).items()},
        "devices": {name: len(state.step.sharding.device_set) for name, state in resumed.items()},
        "same": {name: tiny_run.same(resumed[f"{name} to {name}"], ends[name]) for name in meshes},
        "parts": parts,
    }
    print(json.dumps(result))


def fresh(optimizer: Any, mesh: Any) -> TrainState:
    """The state before the first step, made where it belongs."""
    return first_state(fresh_state(DROPPING, optimizer).model, optimizer, (), mesh)


def pinned_alike(one: TrainState, other: TrainState) -> bool:
    """Whether arrays are spread alike."""
    return all(
        a.sharding.is_equivalent_to(b.sharding, a.ndim)
        for a, b in zip(*(jax.tree.leaves(eqx.filter(tree, eqx.is_array)) for tree in (one, other)), strict=True)
    )


def saved_on(name: str) -> Checkpoints:
    return Checkpoints(Path(sys.argv[1]) / name, keep=1, say=sys.exit)


def furthest(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def parameters(state: TrainState) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(state.model, eqx.is_inexact_array))]


main()
