"""Connections whose request must come in time: uvicorn's own, which wait for a head as long as it likes to take."""

from typing import Any

from plainformer.extras import require

HEAD_SECONDS = 10.0


def protocol(head_seconds: float = HEAD_SECONDS) -> type:
    """The class of a connection, of which a request line and headers that have begun must be whole within so many
    seconds, and the first must come in them. Raises InputError where the extra is not installed."""
    implementation = require("uvicorn.protocols.http.h11_impl", extra="serve")
    h11 = implementation.h11

    class Connection(implementation.H11Protocol):
        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self.late = self.loop.call_later(head_seconds, transport.abort)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            is_whole = self.conn.their_state is not h11.IDLE
            if is_whole:
                self.late.cancel()
            elif self.late.cancelled():
                self.late = self.loop.call_later(head_seconds, self.transport.abort)

        def connection_lost(self, exc: Exception | None) -> None:
            self.late.cancel()
            super().connection_lost(exc)

    return Connection
