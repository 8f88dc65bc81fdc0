"""Adam as the paper has it (section 5.3), and Muon for short runs; the rules themselves are Optax's."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import optax

from plainformer.nn.stack import map_leaves
from plainformer.train.schedule import Schedule


def make_optimizer(
    schedule: Schedule,
    *,
    name: str = "adam",
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    momentum: float = 0.95,
    weight_decay: float = 0.0,
    clip: float = 0.0,
) -> optax.GradientTransformation:
    """Gradients to updates: clip by global norm, Adam or Muon, decoupled weight decay, learning rate.

    Args:
        schedule: the learning rate of each step, counted from 1.
        name: "adam" and "adamw" are Adam; "muon" is Muon (Jordan et al. 2024) on the matrices of the layers, and Adam
            on all else: embeddings, the output projection, norms and biases.
        betas, eps: Adam's.
        momentum: Muon's.
        weight_decay: of AdamW (Loshchilov & Hutter 2019) and of Muon (Liu et al. 2025, section 2.2), on matrices only;
            norms and biases are left alone.
        clip: largest global norm of the gradients; 0 turns clipping off.
    """
    adam = optax.scale_by_adam(*betas, eps)
    return optax.chain(
        _clip(clip) if clip else optax.identity(),
        optax.partition({"muon": _muon(momentum), "adam": adam}, _rules) if name == "muon" else adam,
        optax.add_decayed_weights(weight_decay, mask=_matrices) if weight_decay else optax.identity(),
        # Optax counts from 0.
        optax.scale_by_learning_rate(lambda count: schedule(jnp.asarray(count) + 1)),
    )


def _clip(most: float) -> optax.GradientTransformationExtraArgs:
    """`optax.clip_by_global_norm`, to which `update` may be told the norm of its gradient: a step has it already."""

    def update(
        updates: Any, state: Any, params: Any = None, *, gradient_norm: jax.Array | None = None, **others: Any
    ) -> Any:
        norm = optax.tree.norm(updates) if gradient_norm is None else gradient_norm
        factor = jnp.minimum(1.0, most / norm)
        return jax.tree.map(lambda leaf: leaf * factor.astype(leaf.dtype), updates), state

    return optax.GradientTransformationExtraArgs(optax.init_empty_state, update)


def _matrices(parameters: Any) -> Any:
    return map_leaves(lambda leaf, axes: leaf.ndim - axes >= 2, parameters)


def _rules(parameters: Any) -> Any:
    """Which rule each array follows. A layer is an item of a sequence; tables and output projections are not."""

    def rule(path: tuple[Any, ...], leaf: jax.Array) -> str:
        in_layer = any(isinstance(key, jax.tree_util.SequenceKey) for key in path)
        return "muon" if leaf.ndim == 2 and in_layer else "adam"

    return jax.tree_util.tree_map_with_path(rule, parameters)


def _muon(momentum: float) -> optax.GradientTransformation:
    """The momentum of each matrix, made orthogonal, at the size that Adam's updates have.

    The factor 0.2 √max(rows, columns) gives both rules one learning rate (Liu et al. 2025, section 2.2). Matrices of
    one shape are made orthogonal together: 48 of them compile 13 times as fast as one by one, and run as fast.
    """

    def batched(stacks: Any) -> Any:
        return [optax.contrib.MuonDimensionNumbers(reduction_axis=1, output_axis=2) for _ in stacks]

    def to_adam_size(stacks: Any, _: Any) -> Any:
        return [stack * (0.2 * math.sqrt(max(stack.shape[1:]))) for stack in stacks]

    inner = optax.chain(
        optax.contrib.scale_by_muon(beta=momentum, weight_dimension_numbers=batched), optax.stateless(to_adam_size)
    )

    def init(params: Any) -> Any:
        return inner.init(_stack(jax.tree.leaves(params)))

    def update(updates: Any, state: Any, params: Any = None) -> Any:
        leaves, structure = jax.tree.flatten(updates)
        stacks, state = inner.update(_stack(leaves), state)
        return jax.tree.unflatten(structure, _unstack(stacks, leaves)), state

    return optax.GradientTransformation(init, update)


def _places(leaves: list[jax.Array]) -> dict[tuple[int, ...], list[int]]:
    """Where the leaves of each shape are."""
    places: dict[tuple[int, ...], list[int]] = {}
    for index, leaf in enumerate(leaves):
        places.setdefault(leaf.shape, []).append(index)
    return places


def _stack(leaves: list[jax.Array]) -> list[jax.Array]:
    return [jnp.stack([leaves[index] for index in indices]) for indices in _places(leaves).values()]


def _unstack(stacks: Any, like: list[jax.Array]) -> list[jax.Array]:
    pieces = [piece for stack in stacks for piece in stack]
    order = [index for indices in _places(like).values() for index in indices]
    return [piece for _, piece in sorted(zip(order, pieces, strict=True), key=lambda pair: pair[0])]
