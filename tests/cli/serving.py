"""`plainformer serve` in a process of its own."""

import re
import subprocess
import sys
import threading
from typing import Any


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "plainformer", "serve", "--port", "0", *arguments]


class Process:
    """Of a server that is ready, or has ended."""

    def __init__(self, *arguments: str) -> None:
        pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        self.process = subprocess.Popen(command(*arguments), **pipes)
        assert self.process.stderr is not None
        assert self.process.stdout is not None
        self.said: list[str] = []
        self.logged: list[str] = []
        self.url = ""
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r"ready at (http\S+)", line):
                self.url = found[1]
                break
        self.threads = [
            threading.Thread(target=kept.extend, args=(stream,), daemon=True)
            for kept, stream in ((self.said, self.process.stderr), (self.logged, self.process.stdout))
        ]
        for thread in self.threads:
            thread.start()

    def end(self, number: int | None = None) -> int:
        """Its exit code, once it has ended; by this signal, if there is one."""
        if number is not None:
            self.process.send_signal(number)
        code = self.process.wait(60)
        for thread in self.threads:
            thread.join(10)
        for pipe in (self.process.stdout, self.process.stderr):
            assert pipe is not None
            pipe.close()
        return code
