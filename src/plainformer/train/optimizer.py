"""Adam as the paper has it (section 5.3), by Optax."""

import jax
import jax.numpy as jnp
import optax

from plainformer.train.schedule import Schedule


def make_optimizer(
    schedule: Schedule,
    *,
    betas: tuple[float, float] = (0.9, 0.98),
    eps: float = 1e-9,
    weight_decay: float = 0.0,
    clip: float = 0.0,
) -> optax.GradientTransformation:
    """Gradients to updates: clip by global norm, Adam, decoupled weight decay, learning rate.

    Args:
        schedule: the learning rate of each step, counted from 1.
        weight_decay: AdamW's (Loshchilov & Hutter 2019), on matrices only; norms and biases are left alone.
        clip: largest global norm of the gradients; 0 turns clipping off.
    """
    return optax.chain(
        optax.clip_by_global_norm(clip) if clip else optax.identity(),
        optax.scale_by_adam(*betas, eps),
        optax.add_decayed_weights(weight_decay, mask=_matrices) if weight_decay else optax.identity(),
        # Optax counts from 0.
        optax.scale_by_learning_rate(lambda count: schedule(jnp.asarray(count) + 1)),
    )


def _matrices(parameters: optax.Params) -> optax.Params:
    return jax.tree.map(lambda leaf: leaf.ndim >= 2, parameters)
