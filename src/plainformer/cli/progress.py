"""How far a long preparation or a search is: a bar on a terminal, a line now and then in a log."""

import sys
import time

EVERY = 30.0  # seconds between lines where there is no terminal
WIDTH = 24  # cells of a bar

_began: dict[str, float] = {}
_last: dict[str, float] = {}


def show_progress(what: str, done: int, total: int) -> None:
    """Say how much is done, as in "translated: 64 of 1,000". On a terminal the bar goes in the end."""
    text, now = f"{what}: {done:,} of {total:,}", time.monotonic()
    began = _began.setdefault(what, now)
    if done and now - began > 1.0:
        left = (now - began) * (total - done) / done
        text += f", {int(left // 60)}:{int(left % 60):02} left"
    if sys.stderr.isatty():
        filled = WIDTH * done // max(total, 1)
        sys.stderr.write("\r\x1b[2K" + (f"[{'#' * filled}{'-' * (WIDTH - filled)}] {text}" if done < total else ""))
    elif now - _last.setdefault(what, now) > EVERY:
        sys.stderr.write(text + "\n")
        _last[what] = now
    if done >= total:
        _began.pop(what, None)
        _last.pop(what, None)
    sys.stderr.flush()


def show_waiting(what: dict[str, float]) -> None:
    """Say on a terminal what is waited for, and since when, in the line that changes."""
    parts = [f"{name} {seconds:.0f} s" for name, seconds in what.items()]
    sys.stderr.write(f"\r\x1b[2K{', '.join(parts)} (for the first time; kept for the next)")
    sys.stderr.flush()


def clear_line() -> None:
    """Take away what stands in the line that changes."""
    sys.stderr.write("\r\x1b[2K")
    sys.stderr.flush()
