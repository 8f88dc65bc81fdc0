"""Whether a run is the same on any mesh: 50 steps of the three stacks on 12 meshes of 8 devices that one CPU plays.

    python benchmarks/meshes.py [--stacks decoder,encoder] [--steps 50] [--resume]

Prints, for each stack and mesh, how far losses (relative) and final weights (largest difference, biases of keys left
out) are from those of one device; and, to measure that by, how far one device is from itself where it sums in another
order (layers in a loop).
"""

import argparse
import os
import time
from pathlib import Path
from tempfile import TemporaryDirectory

os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=8"
os.environ["JAX_PLATFORMS"] = "cpu"

import equinox as eqx
import jax
import numpy as np

from plainformer.data.block import Blocks
from plainformer.data.loader import Batch
from plainformer.data.masking import MaskedBatch
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.encoder import MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.named import named_leaves
from plainformer.nn.stack import scanned, unstack_layers
from plainformer.objective import LanguageObjective, MaskedObjective, TranslationObjective
from plainformer.train.checkpoint import Checkpoints
from plainformer.train.mesh import check_mesh, make_mesh, split_batch, spread
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import inverse_sqrt
from plainformer.train.state import initial_state, no_loss
from plainformer.train.step import StepSettings, make_step

MESHES = {
    "data=8": {}, "fsdp=8": {}, "tensor=8": {}, "data=4,fsdp=2": {}, "data=2,fsdp=4": {}, "data=4,tensor=2": {},
    "data=2,tensor=4": {}, "fsdp=4,tensor=2": {}, "fsdp=2,tensor=4": {}, "data=2,fsdp=2,tensor=2": {},
    "data=2,fsdp=4 ": {"loops": True}, "fsdp=4,tensor=2 ": {"accumulate": 2, "remat": True},
}  # fmt: skip
PAIRS = (
    ("data=8", "fsdp=8"), ("fsdp=8", "data=2,fsdp=2,tensor=2"), ("data=2,fsdp=2,tensor=2", "data=1"),
    ("data=1", "fsdp=4,tensor=2"), ("fsdp=4,tensor=2", "data=4"), ("tensor=8", "data=2,fsdp=4"),
)  # fmt: skip
ROWS, TOKENS, VOCAB, BATCHES = 16, 13, 61, 5
SIZES = {"d_model": 32, "d_ff": 64, "heads": 8, "dropout": 0.1, "pad_vocab_to": 8}


def stacks():
    """By name the model, its configuration, its objective and what makes a batch of random ids."""
    random = np.random.default_rng(3)

    def ids(width):
        return random.integers(5, VOCAB, (ROWS, width)).astype(np.int32)

    def valid(width):
        return np.arange(width) < random.integers(width // 2, width + 1, ROWS)[:, None]

    def pairs():
        return Batch(ids(TOKENS), valid(TOKENS), ids(TOKENS - 2), ids(TOKENS - 2), valid(TOKENS - 2))

    def blocks():
        return Blocks(ids(TOKENS), ids(TOKENS), valid(TOKENS))

    def masked():
        places = np.sort(random.permuted(np.tile(np.arange(TOKENS, dtype=np.int32), (ROWS, 1)), axis=1)[:, :3], axis=1)
        return MaskedBatch(ids(TOKENS), np.ones((ROWS, TOKENS), bool), places, ids(3), valid(3))

    of_pairs = TransformerConfig(
        source_vocab=VOCAB, target_vocab=VOCAB, encoder_layers=2, decoder_layers=2, tie="three-way", **SIZES
    )
    of_text = LanguageModelConfig(
        vocab=VOCAB, layers=2, position="rotary", norm="rms", norm_position="pre", gated=True, kv_heads=4,
        activation="silu", context=TOKENS, **SIZES,
    )  # fmt: skip
    of_masked = EncoderConfig(vocab=VOCAB, layers=2, position="learned", context=TOKENS, activation="gelu", **SIZES)
    return {
        "encoder-decoder": (Transformer, of_pairs, TranslationObjective(0.1), pairs),
        "decoder": (LanguageModel, of_text, LanguageObjective(0.0), blocks),
        "encoder": (MaskedLanguageModel, of_masked, MaskedObjective(0.0), masked),
    }


def trained(stack, batches, mesh_text, steps, *, loops=False, saves=None, resumes=None, **settings):
    """The loss of every step, and the last weights, one after the other.

    Half of the steps if it `saves` a checkpoint, in a folder; the other half if it `resumes`.
    """
    model, config, objective, _ = stack
    mesh = make_mesh(mesh_text.strip())
    check_mesh(config, mesh)
    optimizer = make_optimizer(inverse_sqrt(peak=3e-3, warmup=10), clip=1.0)
    state = initial_state(model(config, key=jax.random.key(1)), optimizer)
    state = spread(scanned(state, 2 if loops else None), mesh)
    before = shards(state)
    step = make_step(objective, optimizer, StepSettings(**settings), jax.random.key(2), mesh=mesh)
    losses, first = np.zeros(steps), 0
    if resumes:
        with Checkpoints(Path(resumes), keep=1, say=print) as checkpoints:
            state, first = checkpoints.restore(state).state, steps // 2
    for number in range(first, steps // 2 if saves else steps):
        state = step(state, split_batch(batches[number % len(batches)], mesh))
        losses[number] = float(state.since_log.loss)
        fresh = jax.device_put(no_loss(), state.step.sharding)  # a sum of many steps would be rounded itself
        state = eqx.tree_at(lambda state: state.since_log, state, fresh)
    assert shards(state) == before, "a step moved what it was given"
    if saves:
        with Checkpoints(Path(saves), keep=1, say=print) as checkpoints:
            checkpoints.save(state, {})
    # Attention does not depend on what is added to all keys alike: there Adam makes steps of the rounding of a zero.
    leaves = named_leaves(eqx.filter(unstack_layers(state.model), eqx.is_array)).items()
    return losses, np.concatenate([np.asarray(leaf).ravel() for name, leaf in leaves if not name.endswith("key.bias")])


def resumed(stack, batches, steps, one):
    """Begun on one mesh and ended on another, beside one device; and on the same mesh, beside itself."""
    for before, after in PAIRS:
        with TemporaryDirectory() as folder:
            begun, _ = trained(stack, batches, before, steps, saves=folder)
            losses, weights = trained(stack, batches, after, steps, resumes=folder)
        apart = np.abs(begun + losses - one[0]) / one[0]
        far = np.abs(weights - one[1]).max()
        print(f"  {before} to {after:30} losses {apart.max():.1e}  weights {far:.1e}", flush=True)
    after = PAIRS[-1][1]
    with TemporaryDirectory() as folder:
        trained(stack, batches, after, steps, saves=folder)
        again = trained(stack, batches, after, steps, resumes=folder)
    whole = trained(stack, batches, after, steps)
    half = steps // 2
    same = np.array_equal(again[0][half:], whole[0][half:]) and np.array_equal(again[1], whole[1])
    print(f"  {after} to itself: {'the same to the bit' if same else 'NOT the same'}", flush=True)


def compare(stack, batches, steps, one, mesh, **settings):
    """A line of how far a mesh is from `one` device."""
    began = time.monotonic()
    other, moved = trained(stack, batches, mesh, steps, **settings)
    if "accumulate" in settings:  # whose dropout is another
        one = trained(stack, batches, "data=1", steps, **settings)
    apart = np.abs(other - one[0]) / one[0]
    how = "".join(f", {key}" if value is True else f", {key}={value}" for key, value in settings.items())
    print(
        f"  {mesh.strip() + how:44} losses {apart.max():.1e}  weights {np.abs(moved - one[1]).max():.1e}"
        f"  ({time.monotonic() - began:.0f} s)",
        flush=True,
    )


def shards(state):
    """Of each array the shape of what one device has."""
    return [leaf.addressable_shards[0].data.shape for leaf in jax.tree.leaves(eqx.filter(state, eqx.is_array))]


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stacks", default="encoder-decoder,decoder,encoder")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--meshes", default=";".join(MESHES))
    parser.add_argument("--resume", action="store_true", help="Begin on one mesh and end on another, for six pairs.")
    options = parser.parse_args()
    jax.config.update("jax_cpu_enable_async_dispatch", False)
    for name in options.stacks.split(","):
        stack = stacks()[name]
        batches = [stack[3]() for _ in range(BATCHES)]
        losses, weights = trained(stack, batches, "data=1", options.steps)
        print(f"{name}: {weights.size:,} parameters, loss {losses[0]:.4f} -> {losses[-1]:.4f}", flush=True)

        if options.resume:
            resumed(stack, batches, options.steps, (losses, weights))
            continue
        if options.meshes == ";".join(MESHES):
            compare(stack, batches, options.steps, (losses, weights), "data=1", loops=True)
        for mesh in options.meshes.split(";"):
            compare(stack, batches, options.steps, (losses, weights), mesh, **MESHES.get(mesh, {}))


main()
