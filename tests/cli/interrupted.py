"""Ctrl-C while a command reads."""

import io


class Interrupted(io.BytesIO):
    """A standard input at which the user presses Ctrl-C after the last line."""

    def read1(self, size: int | None = -1, /) -> bytes:
        line = self.readline()
        if not line:
            raise KeyboardInterrupt
        return line
