"""The activations of feed-forward networks (section 3.3 has ReLU)."""

from collections.abc import Callable

import jax

from plainformer.equations.names import ActivationName as ActivationName
from plainformer.shapes import Array

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,  # max(0, x), equation 2
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),  # x Φ(x), Hendrycks & Gimpel 2016
    "gelu_tanh": lambda x: jax.nn.gelu(x, approximate=True),  # its tanh form, as GPT-2 has it
    "silu": jax.nn.silu,  # x σ(x), Elfwing et al. 2017
}
