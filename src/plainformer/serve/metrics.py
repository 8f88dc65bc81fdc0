"""What a server counts, in Prometheus's format."""

from collections.abc import Iterator
from typing import Any

from plainformer.extras import require
from plainformer.serve.house import House

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0)
GAUGES = {"waiting": "Texts that wait for a place.", "running": "Texts that have a place."}
COUNTERS = {
    "done": "Texts that were answered.",
    "cancelled": "Texts whose callers went.",
    "refused": "Texts for which there was no room.",
    "turns": "Turns of all batches: a step, or a few of a sentence alone.",
}


class Metrics:
    """Of one server."""

    def __init__(self, house: House) -> None:
        client = require("prometheus_client", extra="serve")
        self._client, self.registry = client, client.CollectorRegistry()
        given: dict[str, Any] = {"registry": self.registry, "namespace": "plainformer"}
        self._requests = client.Counter("requests", "Requests that were answered.", ["path", "status"], **given)
        self._latency = client.Histogram(
            "request_seconds", "Seconds from a request to the end of its answer.", ["path"], buckets=SECONDS, **given
        )
        self._first = client.Histogram(
            "first_token_seconds", "Seconds from a request to its first token.", buckets=SECONDS, **given
        )
        self._amounts = {
            "tokens": client.Counter("written_tokens", "Tokens that language models wrote.", **given),
            "translated_sentences": client.Counter("translated_sentences", "Sentences that were translated.", **given),
        }
        self.registry.register(_Engines(house, require("prometheus_client.core", extra="serve")))

    def answered(self, path: str, status: int, seconds: float) -> None:
        self._requests.labels(path, str(status)).inc()
        self._latency.labels(path).observe(seconds)

    def note(self, name: str, amount: int) -> None:
        self._amounts[name].inc(amount)

    def first_token(self, seconds: float) -> None:
        self._first.observe(seconds)

    def text(self) -> tuple[bytes, str]:
        """All of it, and its type."""
        return self._client.generate_latest(self.registry), self._client.CONTENT_TYPE_LATEST


class _Engines:
    """The engines' own counts, read when they are asked for."""

    def __init__(self, house: House, core: Any) -> None:
        self._house, self._core = house, core

    def collect(self) -> Iterator[Any]:
        for kind, named in ((self._core.GaugeMetricFamily, GAUGES), (self._core.CounterMetricFamily, COUNTERS)):
            for name, said in named.items():
                family = kind(f"plainformer_engine_{name}", said, labels=["model"])
                for one in self._house.models:
                    family.add_metric([one.name], getattr(one.engine.counts, name))
                yield family
