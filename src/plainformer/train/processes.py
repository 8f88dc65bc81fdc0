"""One run in several processes, each with devices of its own: how they find each other, and what one does for all.

Which computes what is JAX's business (one program over all devices); here is the rest. The first process alone writes
and says; the others are told what it found. A process that is lost ends them all.
"""

import ast
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from threading import Event, Thread
from typing import Any

import jax

from plainformer.errors import InputError, WorkError, shown
from plainformer.spelling import option
from plainformer.train.launcher import launched

BEAT, LOST = 2.0, 30.0  # seconds between signs of life, and after which one without any is lost
LAST_RESORT = 50  # seconds after which JAX ends a process by itself
LONG = 24 * 3600 * 1000  # milliseconds that others wait for the first, which may be scoring translations

SIGNS = "Gloo", "gloo", "NCCL", "coordination", "heartbeat", "Connection reset", "Connection closed", "Socket closed"
"""Of another process's end, in what JAX says of a failure."""

_turns = count()
_over = Event()  # the end of what is done together


def join(coordinator: str | None = None, processes: int | None = None, process: int | None = None) -> bool:
    """Become one of the processes of a run, before JAX is asked for devices; whether there are several.

    Args:
        coordinator: HOST:PORT of the first process, where it listens.
        processes: how many there are.
        process: which of them this is, from 0. Without all three, what a launcher says, as JAX finds it (`launcher`).

    Raises:
        InputError: only some of the three are given, or they are no place and numbers.
        WorkError: the others do not come.
    """
    given = (coordinator, processes, process)
    if given == (None, None, None):
        if not launched():
            return False
    elif coordinator is None or processes is None or process is None:
        names = [option(name) for name in ("coordinator", "processes", "process")]
        raise InputError(f"{', '.join(names[:2])} and {names[2]} go together", fix="give all three, or none")
    else:
        _check(coordinator, processes, process)
    try:
        jax.distributed.initialize(
            coordinator, processes, process, heartbeat_timeout_seconds=LAST_RESORT, initialization_timeout=120
        )
    except Exception as failure:
        where = coordinator or "jax.distributed"
        what = f"the processes of this run did not find each other ({_first_line(failure)})"
        raise WorkError(what, where=where, fix="see that the first is there, and its port can be reached") from failure
    if jax.process_count() > 1:
        Thread(target=_watch, name="signs of life", daemon=True).start()
    return jax.process_count() > 1


def _check(coordinator: str, processes: int, process: int) -> None:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise InputError(f"{shown(coordinator)} is no HOST:PORT", where=option("coordinator"), fix="such as node0:1234")
    if not 0 <= process < processes:
        what = f"there is no process {process} of {processes}"
        raise InputError(what, where=option("process"), fix="they are counted from 0")


def is_first() -> bool:
    """Whether this process is the one that writes and says."""
    return jax.process_index() == 0


def several() -> bool:
    """Whether there are others."""
    return jax.process_count() > 1


def from_first(find: Callable[[], Any]) -> Any:
    """What `find` gives in the first process, to all of them: a number, a text or None. They wait for it.

    Raises:
        InputError: `find` does, and then in all of them.
    """
    if not several():
        return find()
    key = f"plainformer/said/{next(_turns)}"
    if not is_first():
        found, refused = ast.literal_eval(_client().blocking_key_value_get(key, LONG))
        if refused:
            raise InputError(refused["what"], where=refused["where"], fix=refused["fix"])
        return found
    try:
        found = find()
    except InputError as error:
        _client().key_value_set(key, repr((None, vars(error))))
        raise
    _client().key_value_set(key, repr((found, None)))
    return found


def of_first(tell: Callable[..., None]) -> Callable[..., None]:
    """`tell` in the first process, and nothing in the others."""
    return tell if is_first() else lambda *_: None


def meet() -> None:
    """Wait until all processes are here."""
    if several():
        _client().wait_at_barrier(f"plainformer/meet/{next(_turns)}", LONG)


def whole(tree: Any) -> Any:
    """`tree` with each array whole, on this process's own device: to be written, or to decode by. All take part."""
    from jax.experimental.multihost_utils import process_allgather

    def of(leaf: Any) -> Any:
        if not isinstance(leaf, jax.Array) or len(leaf.devices()) == 1:
            return leaf
        there = leaf.is_fully_addressable or leaf.is_fully_replicated
        return jax.numpy.asarray(jax.device_get(leaf) if there else process_allgather(leaf, tiled=True))

    return jax.tree.map(of, tree)


@contextmanager
def asked_to_stop() -> Iterator[Callable[[int], bool]]:
    """Whether one of the processes was asked to stop, by SIGTERM or SIGINT, and all are to after a step.

    JAX listens to SIGTERM and has the processes agree on a step; each must ask after every one.
    """
    from jax.experimental.multihost_utils import reached_preemption_sync_point

    before = signal.signal(signal.SIGINT, lambda number, frame: os.kill(os.getpid(), signal.SIGTERM))
    try:
        yield reached_preemption_sync_point
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)  # nobody asks JAX any more


def lost(failure: BaseException) -> WorkError | None:
    """What to say of a failure that comes of another process's end; None of all others."""
    if isinstance(failure, WorkError | InputError) or not any(sign in str(failure) for sign in SIGNS):
        return None
    return _of_another(f"({_first_line(failure)})")


def part() -> None:
    """The end of what is done together: each waits until all are here."""
    meet()
    _over.set()
    jax.distributed.shutdown()


def leave(status: int) -> None:
    """End this process now: in order, it would wait for others, which may be gone."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def _of_another(which: str) -> WorkError:
    fix = f"start all of them again with {option('resume')}"
    return WorkError(f"another process of this run was lost {which}", where=f"process {jax.process_index()}", fix=fix)


def _client() -> Any:
    from jax._src.distributed import global_state  # Orbax asks it, too: JAX has no public name for it

    return global_state.client


def _watch() -> None:
    """Give signs of life, and end this process when another gives none."""
    client, mine, alive, lost = _client(), jax.process_index(), "plainformer/alive/", "plainformer/lost/"
    seen: dict[str, tuple[str, float]] = {}
    for beat in count():
        if _over.wait(BEAT):
            return
        try:
            client.key_value_set(f"{alive}{mine}", str(beat), allow_overwrite=True)
            now = time.monotonic()
            for name, said in client.key_value_dir_get(alive) if mine == 0 else ():
                if seen.get(name, ("", 0.0))[0] != said:
                    seen[name] = said, now
            gone = [name for name, (_, since) in seen.items() if now - since > LOST]
            if gone:
                client.key_value_set(f"{lost}first", gone[0], allow_overwrite=True)
            told = gone or [name for _, name in client.key_value_dir_get(lost)]
        except Exception:
            if _over.is_set():
                return
            told = ["0"]
        if told:
            _end(f"(process {told[0].rpartition('/')[2]})")


def _end(which: str) -> None:
    print(f"plainformer: {_of_another(which)}", file=sys.stderr, flush=True)
    time.sleep(2 * BEAT if is_first() else 0.0)  # until the others know
    os._exit(WorkError.exit_code)


def _first_line(failure: BaseException) -> str:
    return (str(failure).strip().splitlines() or [type(failure).__name__])[0][:160]
