"""A text that grows token by token, and where it ends: what is said of it is never taken back."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from plainformer.tokenizer.stream import TextStream


@dataclass
class GrowingText:
    """One text as it grows. What could be the beginning of a stop string is held back until that is known."""

    stream: TextStream
    stop: Sequence[str]
    said: str = ""
    held: str = ""
    ids: list[int] = field(default_factory=list)  # those that came before it ended
    ended: bool = False
    stopped: bool = False  # by a stop string

    @property
    def tokens(self) -> int:
        return len(self.ids)

    def push(self, ids: Sequence[int]) -> str:
        if not self.ended:
            self.ids += ids
        return self._give(self.stream.push(ids), last=False)

    def finish(self) -> str:
        return self._give(self.stream.flush(), last=True)

    def _give(self, text: str, *, last: bool) -> str:
        if self.ended:
            return ""
        held = self.held + text
        # The stop string that is complete first counts, however much text came at once; of several, the longest.
        found = [(at + len(stop), at) for stop in self.stop if (at := held.find(stop)) >= 0]
        self.stopped = bool(found)
        self.ended = last or self.stopped
        sure = min(found)[1] if found else len(held) if last else len(held) - self._beginning(held)
        self.said, self.held = self.said + held[:sure], held[sure:]
        return held[:sure]

    def _beginning(self, text: str) -> int:
        """How many characters at the end of `text` could begin a stop string."""
        lengths = (n for stop in self.stop for n in range(1, len(stop)) if text.endswith(stop[:n]))
        return max(lengths, default=0)
