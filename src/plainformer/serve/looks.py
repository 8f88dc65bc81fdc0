"""What the page of `look` is given of a model: the model itself, packed once, when it is first asked for; or, of one
that is too large to travel, what it makes of each text."""

import asyncio
import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

from plainformer.decode.mask_filler import MaskFiller
from plainformer.errors import InputError
from plainformer.page.save import LARGEST, carried_by, recorded_by
from plainformer.serve.refusals import Overloaded

MOST_WAITING = 8  # for a text to be looked at
SECONDS = 5.0  # that one may take


class Looks:
    """Of one model."""

    def __init__(self, load: Callable[[], Any], max_size: float = LARGEST) -> None:
        """`load` gives the model with its weights as they were trained; `max_size`: of what travels, in megabytes."""
        self._load, self._max_size = load, max_size
        self._packed: asyncio.Task[bytes] | None = None
        self._why = ""
        self._turn, self._waiting = asyncio.Lock(), 0

    async def carried(self) -> bytes:
        """The model as a page carries it (`page.bundle`), or why it does not travel. However many ask at once, and
        whoever of them goes, one thread packs it."""
        if self._packed is None:
            self._packed = asyncio.create_task(asyncio.to_thread(self._pack))
        return await asyncio.shield(self._packed)

    async def recorded(self, text: str) -> bytes:
        """What the model makes of a text (`page.recorded`), one text at a time.

        Raises:
            InputError: the text is none that it reads. Overloaded: too many wait.
        """
        if self._waiting >= MOST_WAITING:
            raise Overloaded(self._waiting, SECONDS)
        self._waiting += 1
        return await asyncio.shield(asyncio.create_task(self._look(text)))

    async def _look(self, text: str) -> bytes:
        try:
            async with self._turn:
                await self.carried()  # which tells why it is not that
                return await asyncio.to_thread(self._record, text)
        finally:
            self._waiting -= 1

    @cached_property
    def _user(self) -> Any:
        return self._load()

    def _pack(self) -> bytes:
        try:
            return carried_by(self._user, max_size=self._max_size).to_json().encode()
        except InputError as error:
            self._why = f"{error.what}."
            mask = self._user.mask if isinstance(self._user, MaskFiller) else None
            return json.dumps({"why": self._why, "mask": mask}).encode()

    def _record(self, text: str) -> bytes:
        recording = recorded_by(self._user, text, self._why)
        whole = {**recording.told, "blocks": recording.blocks.layout, "data": recording.blocks.data}
        return json.dumps(whole, ensure_ascii=False, allow_nan=False).encode()
