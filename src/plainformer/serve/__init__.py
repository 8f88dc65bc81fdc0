"""MANY CALLERS -> ONE MODEL: an engine in which they share its batches, and no answer knows of another."""

from typing import TYPE_CHECKING

from plainformer.lazy import lazily

if TYPE_CHECKING:
    from plainformer.serve.engine import Counts, Engine, serving
    from plainformer.serve.limits import Limits
    from plainformer.serve.refusals import DeadlinePassed, Overloaded, Stopped

__all__ = ["Counts", "DeadlinePassed", "Engine", "Limits", "Overloaded", "Stopped", "serving"]

__getattr__ = lazily(
    __name__,
    {
        "Counts": "engine",
        "DeadlinePassed": "refusals",
        "Engine": "engine",
        "Limits": "limits",
        "Overloaded": "refusals",
        "Stopped": "refusals",
        "serving": "engine",
    },
)
