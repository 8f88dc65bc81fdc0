"""Activations by the fastest twin."""

from plainformer.equations.activations import ActivationName
from plainformer.kernels.cpu import gelu as cpu_gelu
from plainformer.kernels.dispatch import Twin, Twins, always, choose
from plainformer.kernels.xla import activation as xla_activation
from plainformer.shapes import Array, Float

XLA = Twin("xla/activation", always, xla_activation.activate)
TWINS: Twins = {"cpu": (Twin("cpu/gelu", cpu_gelu.serves, cpu_gelu.activate), XLA), "other": (XLA,)}


def activate(name: ActivationName, x: Float[Array, "*axes"]) -> Float[Array, "*axes"]:
    """`equations.activations.ACTIVATIONS[name](x)`, by the first twin that serves."""
    tokens = x.reshape(-1, x.shape[-1])
    result: Array = choose(TWINS, name, tokens)(name, tokens)
    return result.reshape(x.shape)
