"""A line of JSON for every request, and its numbers for the metrics: who, what, how it ended, how long; no texts."""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from plainformer.serve.metrics import Metrics

MOST_PATH = 200  # characters

ASKED = "plainformer.asked"
"""Where in ASGI's scope the body is left, for a log that is to have it."""


class Watched:
    """An ASGI application whose requests are noted."""

    def __init__(
        self, app: Any, metrics: Metrics, log: Callable[[str], None] | None = None, with_texts: bool = False
    ) -> None:
        self._app, self._metrics, self._log, self._with_texts = app, metrics, log, with_texts

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        began, said = time.perf_counter(), {"status": 499, "bytes": 0}  # the client has gone, where nothing is sent

        async def noted(message: Any) -> None:
            if message["type"] == "http.response.start":
                said["status"] = message["status"]
            said["bytes"] += len(message.get("body", b""))
            await send(message)

        try:
            return await self._app(scope, receive, noted)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.answered(_pattern(scope), said["status"], seconds)
            if self._log is not None:
                self._log(json.dumps(self._record(scope, said, seconds), ensure_ascii=True))

    def _record(self, scope: Any, said: dict[str, int], seconds: float) -> dict[str, Any]:
        record = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"),
            "client": (scope.get("client") or ("",))[0],
            "method": scope["method"],
            "path": scope["path"][:MOST_PATH],
            "status": said["status"],
            "bytes": said["bytes"],
            "seconds": round(seconds, 4),
        }
        return record | ({"asked": scope.get(ASKED)} if self._with_texts else {})


def _pattern(scope: Any) -> str:
    """The path as the endpoint has it: what stands for its braces, and what is nothing here, is not told apart."""
    return scope.get("plainformer.path", "other")
