"""How far a search is, on a terminal."""

import sys


def show_translated(done: int, total: int) -> None:
    """One line on a terminal's stderr that counts up, and goes when all is done; nothing in a log or a pipe."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\x1b[2K" + (f"translated {done:,} of {total:,}" if done < total else ""))
        sys.stderr.flush()
