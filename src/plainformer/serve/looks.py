"""What the page of `look` is given of a model: the model itself, packed once, when it is first asked for."""

from collections.abc import Callable
from functools import cached_property
from threading import Lock
from typing import Any

from plainformer.page.save import carried_by


class Looks:
    """Of one model; from any thread."""

    def __init__(self, load: Callable[[], Any]) -> None:
        """`load` gives the model with its weights as they were trained."""
        self._load, self._lock = load, Lock()

    def carried(self) -> bytes:
        """The model as a page carries it (`page.bundle`). Raises InputError where it does not travel."""
        with self._lock:
            return self._carried

    @cached_property
    def _carried(self) -> bytes:
        return carried_by(self._load()).to_json().encode()
