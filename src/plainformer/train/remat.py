"""Memory for time: every layer keeps its input alone, and is computed again when its gradient is (Chen et al. 2016)."""

from typing import Any

import equinox as eqx
import jax

from plainformer.nn.layer import DecoderLayer, EncoderLayer


def rematerialised(model: Any) -> Any:
    """`model` with each layer in a wrapper of the same signature, for one forward and its gradient.

    What is inside a layer is then in memory for one layer at a time: for N layers, what they keep falls from N times
    all that a layer computes to N inputs, and a step computes every layer's forward twice. The results are the same.
    """
    return jax.tree.map(lambda part: eqx.filter_checkpoint(part) if _is_layer(part) else part, model, is_leaf=_is_layer)


def _is_layer(part: Any) -> bool:
    return isinstance(part, EncoderLayer | DecoderLayer)
