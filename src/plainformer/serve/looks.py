"""What the page of `look` is given of a model: the model itself, packed once, when it is first asked for."""

import asyncio
from collections.abc import Callable
from typing import Any

from plainformer.page.save import carried_by


class Looks:
    """Of one model."""

    def __init__(self, load: Callable[[], Any]) -> None:
        """`load` gives the model with its weights as they were trained."""
        self._load = load
        self._packed: asyncio.Task[bytes] | None = None

    async def carried(self) -> bytes:
        """The model as a page carries it (`page.bundle`). However many ask at once, and whoever of them goes, one
        thread packs it. Raises InputError where it does not travel."""
        if self._packed is None:
            self._packed = asyncio.create_task(asyncio.to_thread(self._pack))
        return await asyncio.shield(self._packed)

    def _pack(self) -> bytes:
        return carried_by(self._load()).to_json().encode()
