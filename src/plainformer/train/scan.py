"""Whether the layers of a model are written out in its training step, or run in a loop over one of them.

A loop compiles in the time of one layer, whatever their number. It copies each layer's weights and what its gradient
needs: on a CPU a step takes 1.1 to 1.3 times as long (docs/decisions/0011-layers-in-a-loop-or-recomputed.md).
"""

from collections.abc import Collection

import jax

from plainformer.errors import InputError

MANY = 16  # layers of a stack, from which on it runs in a loop on accelerators, where compiling takes longest


def least_in_loop(scan: str, *, optimizer: str, frozen: Collection[str]) -> int | None:
    """How many layers a stack has at least whose training runs in a loop (`nn.stack.scanned`); None: none does.

    Args:
        scan: "on", "off", or "auto": on accelerators, from `MANY` layers on.
        optimizer: its name; Muon takes matrices one by one.
        frozen: parameters that do not train, by `parameter_names`, which may be parameters of some layers alone.

    Raises:
        InputError: loops are asked for where they cannot be.
    """
    obstacle = (
        "with Muon" if optimizer == "muon" else "while parameters are frozen (tune.freeze, LoRA)" if frozen else ""
    )
    if scan == "on" and obstacle:
        raise InputError(f"layers cannot train in a loop {obstacle}", where="train.scan", fix='set it to "auto"')
    if scan == "off" or obstacle or (scan == "auto" and jax.default_backend() == "cpu"):
        return None
    return 2 if scan == "on" else MANY
