"""How far a long preparation or a search is: a line that counts up on a terminal, a line now and then in a log."""

import sys
import time

EVERY = 30.0  # seconds between lines where there is no terminal

_last: dict[str, float] = {}


def show_progress(what: str, done: int, total: int) -> None:
    """Say how much is done, as in "translated: 64 of 1,000". On a terminal the line goes in the end."""
    text, now = f"{what}: {done:,} of {total:,}", time.monotonic()
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K" + (text if done < total else ""))
    elif now - _last.setdefault(what, now) > EVERY:
        sys.stderr.write(text + "\n")
        _last[what] = now
    if done >= total:
        _last.pop(what, None)
    sys.stderr.flush()
