"""Three steps on one device and on eight: prints how far they end apart, as JSON. Run by a test."""

import json

import equinox as eqx
import jax
import numpy as np
from tiny_run import DROPPING, OBJECTIVE, fresh_state, make_loader

from plainformer.train.mesh import data_mesh, replicate, split_batch
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import TrainState
from plainformer.train.step import StepSettings, make_step


def main() -> None:
    # Adam divides by the size of a gradient: where that is nearly 0, eps keeps rounding noise from becoming a step.
    optimizer = make_optimizer(constant(peak=0.01), eps=1e-3, clip=1.0)
    step = make_step(OBJECTIVE, optimizer, StepSettings(), jax.random.key(23))
    ends, spread = {}, {}
    for devices in (1, 8):
        mesh = data_mesh(devices)
        state = replicate(fresh_state(DROPPING, optimizer), mesh)
        for number in (1, 2, 3):
            batch = split_batch(make_loader().batch(number), mesh)
            state = step(state, batch)
        ends[devices] = state
        rows = batch.source.addressable_shards[0].data.shape[0]
        spread[devices] = [len(array.sharding.device_set) for array in (batch.source, state.step)] + [rows]
    start, one, eight = (parameters(state) for state in (fresh_state(DROPPING, optimizer), ends[1], ends[8]))
    result = {
        "apart": max(float(np.abs(a - b).max()) for a, b in zip(one, eight, strict=True)),
        "moved": float(np.median([np.abs(a - b).max() for a, b in zip(start, eight, strict=True)])),
        "losses": {devices: float(state.since_log.loss) for devices, state in ends.items()},
        "spread": spread,
    }
    print(json.dumps(result))


def parameters(state: TrainState) -> list[np.ndarray]:
    return [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(state.model, eqx.is_inexact_array))]


main()
