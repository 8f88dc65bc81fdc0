"""The activations of feed-forward networks (section 3.3 has ReLU)."""

from collections.abc import Callable
from typing import Literal

import jax

from plainformer.shapes import Array

ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,  # max(0, x), equation 2
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),  # x Φ(x), Hendrycks & Gimpel 2016
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),  # its tanh form, as GPT-2 has it
    "silu": jax.nn.silu,  # x σ(x), Elfwing et al. 2017
}
