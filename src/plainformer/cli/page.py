"""The page that a text is written on as it comes: standard output, be it a terminal or not."""

import os
import sys
import time
from dataclasses import dataclass, field

BOLD, PLAIN = "\x1b[1m", "\x1b[0m"
# A model may write anything; a terminal that reads an escape sequence obeys it.
HARMLESS = {code: "\ufffd" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}


def put(text: str, *, bold: bool = False) -> None:
    """Write the text, to be seen at once; on a terminal perhaps bold, and without control characters."""
    if sys.stdout.isatty():
        text = text.translate(HARMLESS)
        if bold and text and not os.environ.get("NO_COLOR"):
            text = f"{BOLD}{text}{PLAIN}"
    sys.stdout.write(text)
    sys.stdout.flush()


@dataclass
class Pace:
    """How many tokens have come, and how fast: the time runs from the first, so that getting ready does not count."""

    tokens: int = 0
    first: int = 0
    began: float = field(default=0.0, repr=False)

    def count(self, tokens: int) -> None:
        if not self.tokens and tokens:
            self.first, self.began = tokens, time.perf_counter()
        self.tokens += tokens

    def __str__(self) -> str:
        said = "1 token" if self.tokens == 1 else f"{self.tokens:,} tokens"
        later, seconds = self.tokens - self.first, time.perf_counter() - self.began
        return f"{said}, {later / seconds:,.0f} tokens/s" if later and seconds > 0 else said
