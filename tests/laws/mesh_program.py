"""Three steps on one device, on eight, and begun on the one and ended on the other: prints how far apart, as JSON.

Run by a test, with a folder for checkpoints, and the name of what makes the batches.
"""

import json
import sys
from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import tiny_run
from tiny_run import DROPPING, OBJECTIVE, fresh_state

from plainformer.runtime import compute_where_called
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.mesh import make_mesh, split_batch, spread
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import TrainState
from plainformer.train.step import StepSettings, make_step


def main() -> None:
    compute_where_called()  # as the command line has it
    # Adam divides by the size of a gradient: where that is nearly 0, eps keeps rounding noise from becoming a step.
    optimizer = make_optimizer(constant(peak=0.01), eps=1e-3, clip=1.0)
    step = make_step(OBJECTIVE, optimizer, StepSettings(), jax.random.key(23))
    loader, ends, resumed, parts = getattr(tiny_run, sys.argv[2])(), {}, {}, {}
    for devices in (1, 8):
        mesh = make_mesh(devices)
        state = spread(fresh_state(DROPPING, optimizer), mesh)
        for number in (1, 2, 3):
            batch = split_batch(loader.batch(number), mesh)
            state = step(state, batch)
            if number == 2:
                with saved_on(devices) as checkpoints:
                    checkpoints.save(state, {})
        ends[devices] = state
        rows = batch.source.addressable_shards[0].data.shape[0]
        parts[devices] = [len(array.sharding.device_set) for array in (batch.source, state.step)] + [rows]
    for before, devices in ((1, 8), (8, 1)):
        mesh = make_mesh(devices)
        with saved_on(before) as checkpoints:
            restored = checkpoints.restore(spread(fresh_state(DROPPING, optimizer), mesh))
        assert restored
        resumed[f"{before} to {devices}"] = step(restored.state, split_batch(loader.batch(3), mesh))
    start, one = parameters(fresh_state(DROPPING, optimizer)), parameters(ends[1])
    result = {
        "apart": {name: furthest(one, parameters(state)) for name, state in (ends | resumed).items()},
        "moved": float(np.median([np.abs(a - b).max() for a, b in zip(start, parameters(ends[8]), strict=True)])),
        "losses": {name: float(state.since_log.loss) for name, state in (ends | resumed).items()},
        "steps": {name: int(state.step) for name, state in (ends | resumed).items()},
        "devices": {name: len(state.step.sharding.device_set) for name, state in resumed.items()},
        "spread": parts,
    }
    print(json.dumps(result))


def saved_on(devices: int) -> Checkpoints:
    return Checkpoints(Path(sys.argv[1]) / str(devices), keep=1, say=sys.exit)


def furthest(one: list[np.ndarray], other: list[np.ndarray]) -> float:
    return max(float(np.abs(a - b).max()) for a, b in zip(one, other, strict=True))


def parameters(state: TrainState) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(state.model, eqx.is_inexact_array))]


main()
