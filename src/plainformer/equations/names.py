"""What configurations and recipes call the variants of an equation. No JAX is imported here."""

from typing import Literal

ActivationName = Literal["relu", "gelu", "gelu_tanh", "silu"]
SinusoidalOrder = Literal["interleaved", "half"]
