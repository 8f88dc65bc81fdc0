"""Who may ask, and how often: keys, rates, and names of this server."""

import hashlib
import hmac
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from plainformer.serve.call import Refused

MOST_CLIENTS = 10_000  # whose rates are remembered
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


@dataclass(frozen=True)
class Keys:
    """The keys of which one must be given; none are needed where there are none."""

    hashes: Sequence[bytes] = ()

    @classmethod
    def of(cls, keys: Sequence[str]) -> "Keys":
        return cls([_hash(key) for key in keys])

    def __bool__(self) -> bool:
        return bool(self.hashes)

    def check(self, headers: Mapping[str, str], body: Mapping[str, Any], status: int) -> None:
        """Raises Refused unless one is in the header, as `Authorization: Bearer KEY`, or in the body, as `api_key`.

        However it is wrong, all keys are compared whole: how long that takes tells nothing of them.
        """
        if not self.hashes:
            return
        kind, _, said = headers.get("authorization", "").partition(" ")
        given = said.strip() if kind.lower() == "bearer" else body.get("api_key", "")
        found = _hash(given if isinstance(given, str) else "")
        if not sum(hmac.compare_digest(found, one) for one in self.hashes):
            said = "the key is missing or wrong; give it as Authorization: Bearer KEY"
            raise Refused(status, said, code="invalid_api_key")


def _hash(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


class Rates:
    """So many requests a minute of each client; up to a minute's worth at once."""

    def __init__(self, a_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        """`a_minute`: 0 is no bound."""
        self._a_minute, self._now = a_minute, now
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()  # of each client, and when it was so

    def check(self, client: str) -> None:
        """Count one. Raises Refused where it is too many."""
        if not self._a_minute:
            return
        now, pace = self._now(), self._a_minute / 60.0
        left, since = self._left.pop(client, (float(self._a_minute), now))
        left = min(float(self._a_minute), left + (now - since) * pace)
        self._left[client] = (left - 1.0 if left >= 1.0 else left, now)
        if len(self._left) > MOST_CLIENTS:
            self._left.popitem(last=False)
        if left < 1.0:
            said = f"more than {self._a_minute:,} requests a minute; wait a little"
            raise Refused(429, said, code="rate_limit_exceeded", retry_after=(1.0 - left) / pace)


def check_host(headers: Mapping[str, str], names: frozenset[str]) -> None:
    """Raises Refused for a request to another name than the server's: a page of another site, whose name was made to
    lead here, must not be able to read its answers. Without `names` any will do."""
    host = headers.get("host", "")
    name = host[1 : host.find("]")] if host.startswith("[") else host.partition(":")[0]
    if names and name.lower() not in names:
        raise Refused(421, "this server has another name; it can be given one with --allow-host", code="wrong_host")
