"""Checkpoints of a run, by Orbax: written in the background, whole or not at all, the newest few kept."""

import errno
import logging
import os
import re
import shutil
import sys
import zlib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import numpy as np

from plainformer.errors import WorkError
from plainformer.files import checksums
from plainformer.named import named_leaves
from plainformer.nn.stack import layer_of, unstack_layers
from plainformer.spelling import option
from plainformer.train.processes import is_first, several
from plainformer.train.state import TrainState


def orbax() -> Any:
    """`orbax.checkpoint`, imported when it is first asked for."""
    return import_module("orbax.checkpoint")


MARGIN = 1 << 17  # bytes of a checkpoint beside its arrays
LAST_WRITTEN = "_CHECKPOINT_METADATA"  # which Orbax writes again when a checkpoint has its name


class Restored(NamedTuple):
    """A checkpoint read back: the state, and the notes that were saved with it."""

    state: TrainState
    notes: dict[str, Any]


@dataclass(frozen=True)
class RetentionPolicy:
    """Which checkpoints are kept: the newest, and before it the last `count - 1` that are due `every` steps.

    One that a signal asked for in between goes with the next, so that it has no part in an average: what is kept at a
    step does not depend on how often the run was interrupted before. One that was due when it was saved stays so,
    though others are due by now: `due` has what is known of steps.
    """

    count: int
    every: int
    due: dict[int, bool] = field(default_factory=dict)

    def is_due(self, step: int) -> bool:
        return step % self.every == 0

    def of(self, steps: Sequence[int]) -> list[int]:
        """The steps of `steps`, oldest first, whose checkpoints are kept."""
        regular = [step for step in steps[:-1] if self.due.get(step, self.is_due(step))]
        return [*regular[len(regular) - min(self.count - 1, len(regular)) :], *steps[-1:]]

    def should_preserve(self, checkpoints: Sequence[Any], *, context: Any) -> Sequence[bool]:
        """Orbax's question, checkpoint by checkpoint, oldest first."""
        kept = self.of([checkpoint.step for checkpoint in checkpoints])
        return [checkpoint.step in kept for checkpoint in checkpoints]


class Checkpoints:
    """The folder `checkpoints/` of a run, one numbered folder a step.

    Used as `with Checkpoints(...) as checkpoints`, what is being written is whole in the end, after an error too.

    Args:
        folder: where they are; made if need be.
        keep: how many of the newest are kept.
        every: the steps between them from now on; see `RetentionPolicy`.
        frozen: parameters that never change, by `parameter_names`: not saved, and as they are in what is restored.
        say: told of a checkpoint that could not be read.
    """

    def __init__(
        self,
        folder: Path,
        *,
        keep: int,
        every: int = 1,
        frozen: Collection[str] = (),
        say: Callable[[str], None],
    ) -> None:
        self._folder, self._say, self._kept = folder, say, RetentionPolicy(keep, every)
        self._saving: int | None = None  # the step that is being written
        self._left_out = {f"model.{name}" for name in frozen}
        folder.mkdir(parents=True, exist_ok=True)
        # Several processes set up Orbax together, whatever one of them has found.
        for step in self.steps() if several() or any(folder.iterdir()) else ():
            with suppress(Exception):  # of what cannot be read, `restore` tells
                self._kept.due[step] = bool(self._metadata(step)["due"])

    @cached_property
    def _manager(self) -> Any:
        """Orbax, which takes as long to import as all else of a start: a new run needs it when it first saves."""
        signed = orbax().AsyncOptions(post_finalization_callback=self._sign)
        options = orbax().CheckpointManagerOptions(
            preservation_policy=self._kept, create=True, enable_async_checkpointing=True, async_options=signed
        )
        return orbax().CheckpointManager(self._folder.absolute(), options=options)

    def __enter__(self) -> "Checkpoints":
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None:
            self.close()
        elif isinstance(error, Exception):  # which is the one to tell; a KeyboardInterrupt does not wait
            with suppress(Exception):
                self.close()

    def steps(self) -> list[int]:
        """The steps there is a checkpoint of, oldest first."""
        return sorted(self._manager.all_steps())

    def save(self, state: TrainState, notes: dict[str, Any]) -> None:
        """Start writing `state` and JSON `notes`; the arrays are copied before this returns.

        Raises:
            WorkError: this or the one before could not be written (a full disk, say). Earlier ones are untouched.
        """
        step, there = int(state.step), []
        self._guarded(lambda: there.extend(self._manager.all_steps()))
        if step in there:
            return
        arrays = self._saved(state)
        self._guarded(lambda: self._check_room(arrays))
        due = self._kept.due[step] = self._kept.is_due(step)
        metadata = {"notes": notes, "checksum": _checksum(arrays), "due": due}
        self._guarded(self._finish)
        self._saving, args = step, orbax().args
        arguments = args.Composite(state=args.StandardSave(arrays), beside=args.JsonSave(metadata))
        self._guarded(lambda: self._manager.save(step, args=arguments))

    def wait(self) -> None:
        """Return when everything is on disk. Raises WorkError as `save` does."""
        self._guarded(self._finish)

    def close(self) -> None:
        if "_manager" in vars(self):
            self.wait()
            self._manager.close()

    def restore(self, like: TrainState) -> Restored | None:
        """The newest checkpoint that can be read, in the shape and on the devices of `like`; None if there is none.

        Its layers are written out, whether or not the layers of `like` are in a loop.

        One that cannot be read is reported and, where an older one can, put aside as `STEP.unreadable`, so that its
        step can be saved again.

        Raises:
            WorkError: there are checkpoints, and none can be read. They are left as they are: the reason may pass.
        """
        broken: list[Path] = []
        steps = self.steps()
        for step in reversed(steps):
            path = self._folder / str(step)
            try:
                found = self._read(step, like)
            except Exception as failure:  # whatever Orbax or TensorStore raises on damage
                more = "; falling back to the one before" if step > steps[0] else ""
                self._say(f"checkpoint {path} cannot be read ({_reason(failure)}){more}")
                broken.append(path)
                continue
            for path in broken:
                if is_first():
                    path.rename(_free_name(path))
            if broken:
                self._manager.reload()
            return found
        if broken:
            raise WorkError(
                "none of the checkpoints can be read",
                where=str(self._folder),
                fix=f"try again, start another run, or give this one up with {option('overwrite')}",
            )
        return None

    def newest(self, like: TrainState) -> TrainState | None:
        """The state of the newest checkpoint, as `restore` gives it; one that cannot be read is passed over."""
        with suppress(WorkError):  # of one that is being written
            self.wait()
        for step in reversed(self.steps()):
            with suppress(Exception):  # as in `restore`
                return self._read(step, like).state
        return None

    def models(self, like: TrainState) -> list[eqx.Module]:
        """The models of all checkpoints that are kept, oldest first: what an average is made of.

        One that cannot be read is reported and left out.

        Raises:
            WorkError: none can be read.
        """
        # Asked again, since a process may have been killed between a save and the removal of the oldest.
        found = []
        for step in self._kept.of(self.steps()):
            try:
                found.append(self._read(step, like).state.model)
            except Exception as broken:  # as in `restore`
                reason = _reason(broken)
                self._say(f"checkpoint {self._folder / str(step)} cannot be read ({reason}); it is left out")
        if not found:
            raise WorkError("none of the checkpoints can be read", where=str(self._folder))
        return found

    def _sign(self) -> None:
        """List the files of a checkpoint with their checksums: it has all of them now, and Orbax is to name it next."""
        for unnamed in self._folder.glob(f"{self._saving}.orbax-checkpoint-tmp*") if jax.process_index() == 0 else ():
            checksums.write(unnamed, but=[LAST_WRITTEN])

    def _finish(self) -> None:
        """Wait for what is being written, and list its last files, too."""
        self._manager.wait_until_finished()
        step, self._saving = self._saving, None
        if step is not None and jax.process_index() == 0 and (self._folder / str(step)).is_dir():
            checksums.add(self._folder / str(step))

    def _metadata(self, step: int) -> dict[str, Any]:
        read: Any = self._manager.restore(step, args=orbax().args.Composite(beside=orbax().args.JsonRestore()))
        return read.beside

    def _read(self, step: int, like: TrainState) -> Restored:
        like = unstack_layers(like)
        args, shapes = orbax().args, jax.tree.map(orbax().utils.to_shape_dtype_struct, self._saved(like))
        arguments = args.Composite(state=args.StandardRestore(shapes), beside=args.JsonRestore())
        checksums.check(self._folder / str(step))
        read: Any = self._manager.restore(step, args=arguments)
        if None not in (now := _checksum(read.state), then := read.beside["checksum"]) and now != then:
            raise ValueError("its arrays are not those that were saved")
        structure = jax.tree.structure(eqx.filter(like, eqx.is_array))
        arrays = jax.tree.unflatten(structure, (named_arrays(like) | read.state).values())
        return Restored(eqx.combine(arrays, eqx.filter(like, eqx.is_array, inverse=True)), read.beside["notes"])

    def _saved(self, state: TrainState) -> dict[str, Any]:
        return {name: array for name, array in named_arrays(state).items() if name not in self._left_out}

    def _check_room(self, arrays: dict[str, Any]) -> None:
        """A disk that is too full is found before a checkpoint is begun, not in its middle."""
        if shutil.disk_usage(self._folder).free < sum(array.nbytes for array in arrays.values()) + MARGIN:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _guarded(self, work: Callable[[], object]) -> None:
        try:
            work()
        except Exception as failure:
            raise WorkError(
                f"a checkpoint could not be written ({_reason(failure)})",
                where=str(self._folder),
                fix=f"earlier ones are whole; make room and go on with {option('resume')}",
            ) from failure


def named_arrays(state: TrainState) -> dict[str, Any]:
    """The arrays of a state by name, so that a checkpoint does not depend on how our classes are nested, nor on whether
    layers are in a loop: those are taken apart in the host's memory, not on a device that may be full, unless several
    devices share them."""

    def take(leaf: Any, index: int) -> Any:
        is_spread = isinstance(leaf, jax.Array) and len(leaf.sharding.device_set) > 1
        return layer_of(leaf, index) if is_spread else np.array(np.asarray(leaf)[index])

    return named_leaves(unstack_layers(eqx.filter(state, eqx.is_array), take=take))


def bad_arrays(tree: Any) -> list[str]:
    """The arrays of a tree that hold numbers that are not finite, by name. Looked for on the host, where nothing has to
    be compiled; of arrays that other processes have parts of, on the devices."""

    def is_good(array: Any) -> bool:
        if isinstance(array, jax.Array) and not array.is_fully_addressable:
            return bool(jax.numpy.isfinite(array).all())
        return bool(np.isfinite(np.asarray(array)).all())

    arrays = named_leaves(eqx.filter(tree, eqx.is_inexact_array))
    return [name for name, array in arrays.items() if not is_good(array)]


def _checksum(arrays: Mapping[str, Any]) -> int | None:
    """CRC-32 of all arrays in the order of their names: Orbax checks its index, but not what the arrays hold.

    None where other processes have parts of them.
    """
    if not all(getattr(array, "is_fully_addressable", True) for array in arrays.values()):
        return None
    total = 0
    for name in sorted(arrays):
        total = zlib.crc32(np.asarray(arrays[name]).tobytes(), total)
    return total


def _free_name(path: Path) -> Path:
    candidates = (path.with_name(f"{path.name}.unreadable{n or ''}") for n in range(10_000))
    return next(name for name in candidates if not name.exists())


def _reason(failure: Exception) -> str:
    """A failure in a few words: the system's own where there are any, which TensorStore puts last of many."""
    if isinstance(failure, OSError) and failure.strerror:
        return failure.strerror
    if code := re.search(r"os_error_code='(\d+)'", str(failure)):
        return os.strerror(int(code[1]))
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0][:160]


@cache
def silence_orbax() -> None:
    """Have this process say a failure once, in our words: after one, Orbax's threads and event loops go on for hundreds
    of lines of traceback, long after the call that failed. For a program of our own; a library leaves loggers alone."""
    for name in ("absl", "asyncio"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    usual = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        # A read or write that was still under way when another failed, and finds that nobody waits for it.
        if str(unraisable.exc_value) != "Event loop is closed":
            usual(unraisable)

    sys.unraisablehook = hook
