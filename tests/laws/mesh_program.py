"""Three steps on one device and on eight: prints how far the parameters are apart, as JSON. Run by a test."""

import json

import equinox as eqx
import jax
import numpy as np
from tiny_run import DROPPING, OBJECTIVE, fresh_state, make_loader

from plainformer.train.mesh import data_mesh, replicate, split_batch
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.step import StepSettings, make_step


def main() -> None:
    # Adam divides by the size of a gradient, and the gradient of a key's bias is rounding noise around 0: eps keeps it
    # from becoming a step.
    optimizer = make_optimizer(constant(peak=0.01), eps=1e-3, clip=1.0)
    step = make_step(OBJECTIVE, optimizer, StepSettings(), jax.random.key(23))
    found, spread = {}, {}
    for devices in (1, 8):
        mesh = data_mesh(devices)
        state = replicate(fresh_state(DROPPING, optimizer), mesh)
        before = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter(state.model, eqx.is_array))]
        for number in (1, 2, 3):
            batch = split_batch(make_loader().batch(number), mesh)
            state = step(state, batch)
        spread[devices] = [len(leaf.sharding.device_set) for leaf in (batch.source, state.model.encoder.layers[0].residuals[0].norm.scale)]
        spread[devices].append(batch.source.addressable_shards[0].data.shape[0])
        found[devices] = [np.asarray(leaf) for leaf in jax.tree.leaves(eqx.filter((state.model, state.since_log), eqx.is_array))]
    apart = max(float(np.abs(one - other).max()) for one, other in zip(found[1], found[8], strict=True))
    moved = min(float(np.abs(one - other).max()) for one, other in zip(before, found[8], strict=False))
    print(json.dumps({"apart": apart, "moved": moved, "spread": spread, "loss": float(found[8][-4])}))


main()
