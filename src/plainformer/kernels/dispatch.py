"""Which twin computes an operation: the first one in the device's row of its table that serves what it is given.

`serves` is false for whatever a twin does not know, so that a new variant (a score bias, another mask) is right at
once, by a twin that XLA compiles, and may become fast later.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from plainformer import devices


class Twin(NamedTuple):
    """One way to compute an operation.

    name: its module, as the path below `kernels/`, or of the equation itself.
    serves: whether it computes the operation of these arguments, given their shapes, dtypes and devices.
    run: the same arguments to the result, differentiable where `serves` was asked about arguments that may need it.
    """

    name: str
    serves: Callable[..., bool]
    run: Callable[..., Any]


Twins = Mapping[str, Sequence[Twin]]
"""Twins by the platform of the default device, the preferred ones first; `other` is every platform not named."""


def always(*_: Any) -> bool:
    """What the last twin of every row serves."""
    return True


def choose(twins: Twins, *arguments: Any) -> Callable[..., Any]:
    """The function of the first twin that serves. It is asked while a program is traced."""
    row = twins.get(devices.platform(), twins["other"])
    return next(twin.run for twin in row if twin.serves(*arguments))
