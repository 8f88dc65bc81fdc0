"""What a run says while it works: a progress line, `metrics.jsonl`, and TensorBoard on request."""

import json
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from plainformer.errors import WorkError
from plainformer.extras import require
from plainformer.files import atomic
from plainformer.spelling import option


def is_timing(name: str) -> bool:
    """Whether a metric is of the moment, not of the run: a run done again has another one."""
    return name in ("seconds", "compiling_seconds") or name.endswith("_per_second")


class Log:
    """The metrics of a run, to every place that wants them.

    Args:
        folder: the run's; `metrics.jsonl` is appended to, one JSON object a line.
        steps: the last step, for the progress line.
        start: the step that the run starts or resumes at; lines of later steps, written before an interruption, are
            taken out, since those steps are done again.
        unit: what the throughput counts.
        tensorboard: also write event files to `tensorboard/` (extra `tensorboard`).
    """

    def __init__(self, folder: Path, *, steps: int, start: int, tensorboard: bool, unit: str = "target tokens") -> None:
        self._path, self._steps = folder / "metrics.jsonl", steps
        self._unit, self._out = unit, sys.stderr
        self._live = self._out.isatty()
        with _told(self._path):
            self._drop_after(start)
            self._file = self._path.open("a", encoding="utf-8")
        self._board = None
        if tensorboard:
            self._board = require("tensorboardX", extra="tensorboard").SummaryWriter(str(folder / "tensorboard"))
        self._began, self._from = time.monotonic(), start
        self._steps_that_compiled, self._seconds_of_those = 0, 0.0
        self._compiling_seconds = 0.0  # since the last line of training
        self._compiling_since = self._began
        self._line = "training"

    @property
    def throughput(self) -> str:
        """What the throughput is called among the metrics."""
        return f"{self._unit.replace(' ', '_')}_per_second"

    def metrics(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """Record a line of `kind` ("train" or "dev") for `step`. Raises WorkError where the disk refuses.

        A line of training also says how many of its seconds were spent compiling, if any.
        """
        if kind == "train" and self._compiling_seconds:
            values = {**values, "compiling_seconds": self._compiling_seconds}
            self._compiling_seconds = 0.0
        with _told(self._path):
            self._file.write(json.dumps({"step": step, "kind": kind, **values}, ensure_ascii=False) + "\n")
            self._file.flush()
        if self._board is not None:
            for name, value in values.items():
                if isinstance(value, int | float):
                    self._board.add_scalar(f"{kind}/{name}", value, step)

    def progress(self, step: int, values: Mapping[str, float]) -> None:
        """The one line that changes on a terminal; in a log, a line of its own."""
        left = self._pace(step) * (self._steps - step)
        text = (
            f"step {step:,}/{self._steps:,}  loss {values['loss']:z.4f}  nll {values['nll']:z.4f}  "
            f"lr {values['learning_rate']:.2e}  {values[self.throughput]:,.0f} {self._unit}/s  "
            f"{clock(left)} left"
        )
        if self._live:
            done = round(20 * step / self._steps)
            text = f"[{'#' * done}{'.' * (20 - done)}] {text}"
        self._line = text
        self.doing(text)

    def compiling(self, number: int, programs: int) -> None:
        """The next step waits for its program, which is the `number`-th."""
        self._compiling_since = time.monotonic()
        self.doing(f"compiling {number} of {programs}")

    def compiled(self) -> None:
        """That step is under way, or done; the time left is judged by the others."""
        self._steps_that_compiled += 1
        spent = time.monotonic() - self._compiling_since
        self._seconds_of_those += spent
        self._compiling_seconds += spent
        if self._live:
            self.doing(self._line)

    def doing(self, text: str) -> None:
        """What goes on until the next line: on a terminal it stands in the place of the progress."""
        self._out.write(f"\r\x1b[2K{text}" if self._live else text + "\n")
        self._out.flush()

    def say(self, text: str) -> None:
        """A line that stays."""
        self._out.write(f"\r\x1b[2K{text}\n" if self._live else text + "\n")
        self._out.flush()

    def close(self) -> None:
        if self._live:
            self._out.write("\n")
        with suppress(OSError):  # `metrics` has told of what could not be written
            self._file.close()
        if self._board is not None:
            self._board.close()

    def _pace(self, step: int) -> float:
        """Seconds of a step, looks at the dev set included; of steps that compiled only where there are no others."""
        spent, done = time.monotonic() - self._began, step - self._from
        if done > self._steps_that_compiled:
            spent, done = spent - self._seconds_of_those, done - self._steps_that_compiled
        return spent / max(done, 1)

    def _drop_after(self, step: int) -> None:
        if not self._path.exists():
            return
        kept = []
        for line in self._path.read_text(encoding="utf-8").split("\n"):
            try:
                if json.loads(line)["step"] <= step:
                    kept.append(line + "\n")
            except (ValueError, KeyError):
                continue  # the line that was being written when the run was killed
        atomic.write_text(self._path, "".join(kept))


class Silent(Log):
    """What a process that is not the first logs: nothing."""

    def __init__(self, *, unit: str) -> None:
        self._unit = unit

    def metrics(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        pass

    def progress(self, step: int, values: Mapping[str, float]) -> None:
        pass

    def compiling(self, number: int, programs: int) -> None:
        pass

    def compiled(self) -> None:
        pass

    def doing(self, text: str) -> None:
        pass

    def say(self, text: str) -> None:
        pass

    def close(self) -> None:
        pass


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Put a disk that refuses into one line."""
    try:
        yield
    except OSError as failure:
        raise WorkError(
            f"the metrics could not be written ({failure.strerror or failure})",
            where=str(path),
            fix=f"make room and go on with {option('resume')}",
        ) from failure


def clock(seconds: float) -> str:
    """Seconds as 0:07, 12:34 or 1:02:03."""
    whole = max(round(seconds), 0)
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"
