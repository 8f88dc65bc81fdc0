"""Connections whose request must come in time, and whose answer must be taken: uvicorn's own wait for both as long as
the other side likes."""

from typing import Any

from plainformer.extras import require

HEAD_SECONDS, TAKING_SECONDS = 10.0, 30.0


def protocol(head_seconds: float = HEAD_SECONDS, taking_seconds: float = TAKING_SECONDS) -> type:
    """The class of a connection.

    Args:
        head_seconds: a request line and headers that have begun must be whole within so many seconds, and the first
            must come in them.
        taking_seconds: a client that lets an answer lie for so long, as much as is kept for it, is gone.

    Raises:
        InputError: the extra is not installed.
    """
    implementation = require("uvicorn.protocols.http.h11_impl", extra="serve")
    h11 = implementation.h11

    class Connection(implementation.H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.late = self.loop.call_later(head_seconds, transport.abort)
            self.lies: Any = None

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            is_whole = self.conn.their_state is not h11.IDLE
            if is_whole:
                self.late.cancel()
            elif self.late.cancelled():
                self.late = self.loop.call_later(head_seconds, self.transport.abort)

        def pause_writing(self) -> None:
            super().pause_writing()
            self.lies = self.loop.call_later(taking_seconds, self.transport.abort)

        def resume_writing(self) -> None:
            self.lies.cancel()
            super().resume_writing()

        def connection_lost(self, exc: Exception | None) -> None:
            self.late.cancel()
            if self.lies is not None:
                self.lies.cancel()
            super().connection_lost(exc)

    return Connection
