"""What this process waits for before it can begin, such as a program that is being compiled, so that it can be said."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import RLock, Thread

EVERY = 0.25  # seconds between two looks

_under_way: list[tuple[str, float]] = []  # what, and since when
_lock = RLock()
_is_shown = False
_clear: Callable[[], None] | None = None


@contextmanager
def waiting_for(what: str) -> Iterator[None]:
    """While this lasts, somebody waits for `what`."""
    global _is_shown
    entry = what, time.monotonic()
    with _lock:
        _under_way.append(entry)
    try:
        yield
    finally:
        with _lock:
            _under_way.remove(entry)
            if not _under_way and _is_shown and _clear:  # before whoever waited goes on, and writes
                _clear()
                _is_shown = False


def under_way() -> dict[str, float]:
    """What is waited for, in the order in which it began, and for how many seconds."""
    with _lock:
        now, found = time.monotonic(), dict[str, float]()
        for what, since in _under_way:
            found.setdefault(what, now - since)
        return found


def watch(show: Callable[[dict[str, float]], None], clear: Callable[[], None]) -> None:
    """Have a thread show what is waited for again and again, as long as there is anything, and take it away then."""
    global _clear
    _clear = clear

    def look() -> None:
        global _is_shown
        while True:
            time.sleep(EVERY)
            with _lock:
                if found := under_way():
                    show(found)
                    _is_shown = True

    Thread(target=look, name="waiting", daemon=True).start()
