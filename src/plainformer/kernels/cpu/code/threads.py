"""Threads of XLA that take parts of a call of a CPU kernel."""

import ctypes
from typing import no_type_check

import numpy as np

from plainformer.kernels.cpu.code.llvm import (
    CONTEXT,
    FUNCTIONS,
    SCHEDULE,
    THREADS,
    add,
    define,
    inner,
    invoke,
    numba,
    swap,
    symbol,
    words,
)

# What the threads of one call share. None of it is ever freed: a thread that comes late finds that its call is over,
# or another one in its place, by the number, and leaves.
# Words 0 (the claim) and `DONE`, which are written at every part, are alone on their lines of a cache, of eight words.
DONE, BUSY, CALLS, PARTS, PART, COUNT, REQUEST, WORK, WORDS = 8, 16, 17, 18, 19, 20, 24, 32, 56
CLOSED = 0xFFFFFFFF  # in the place of the next part, of which a claim has the number in its lower half
MANY = 64
SLOT = 8 * WORDS
SLOTS = np.zeros(MANY * WORDS + 8, np.int64)
MOST_PARTS = 32  # of a call: enough for a thread that comes late to find some left
PATIENCE = 1000  # looks at whether others are done, before they are let run
FIRST_SLOT = -(-SLOTS.ctypes.data // 64) * 64  # where a line begins
define("plainformer_slots", FIRST_SLOT)
define("plainformer_yield", ctypes.cast(ctypes.CDLL(None).sched_yield, ctypes.c_void_p).value or 0)
_slots, _yield = symbol("plainformer_slots"), symbol("plainformer_yield")


@inner()
@no_type_check
def _take_slot() -> int:
    while True:
        for index in range(MANY):
            if swap((_slots(()) + index * SLOT + 8 * BUSY, 0, 1)):
                return index
        invoke((_yield(()), 0))


@inner()
@no_type_check
def _take_part(slot: int, call: int) -> None:
    shared = words(slot, WORDS)
    while True:
        claim = add((slot, 0))
        index = claim & CLOSED
        if claim >> 32 != call or index >= shared[PARTS]:
            return
        if swap((slot, claim, claim + 1)):
            invoke((shared[PART], slot + 8 * WORK, index))
            add((slot + 8 * DONE, 1))


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def _help(ticket: int) -> int:
    _take_part(_slots(()) + (ticket & 0xFF) * SLOT, ticket >> 8)
    return 0


define("plainformer_help", _help.address)
_helper = symbol("plainformer_help")


@inner()
@no_type_check
def _ask_for_help(frame: int, slot: int, ticket: int, helpers: int, others: int) -> None:
    """Threads of XLA: as many as wanted, if it has so many beside this one and those that run `others` calls."""
    call, shared = words(frame, 15), words(slot, WORDS)
    table, request = words(call[FUNCTIONS], 19), slot + 8 * REQUEST
    shared[REQUEST], shared[REQUEST + 1], shared[REQUEST + 2] = 32, 0, call[CONTEXT]
    shared[REQUEST + 3], shared[COUNT] = slot + 8 * COUNT, 1
    invoke((table[THREADS], request))
    shared[REQUEST], shared[REQUEST + 3], shared[REQUEST + 4] = 40, _helper(()), ticket
    for _ in range(min(shared[COUNT] - 1 - others, helpers)):
        invoke((table[SCHEDULE], request))


@inner("int64(int64)")
@no_type_check
def in_each_part(count: int) -> int:
    """How many of so many equal things are a part of a call."""
    return max(-(-count // MOST_PARTS), 1)


@inner("int64(int64, int64)")
@no_type_check
def _open(part: int, parts: int) -> int:
    """A slot for a call that is not begun."""
    index = _take_slot()
    slot = _slots(()) + index * SLOT
    shared = words(slot, WORDS)
    call = (shared[CALLS] + 1) & 0x3FFFFFFF
    # Closed first, under the new number: who comes late for the call before must not see its parts grow.
    add((slot, (call << 32) + CLOSED - add((slot, 0))))
    shared[CALLS], shared[PART], shared[PARTS], shared[DONE] = call, part, parts, 0
    return index


@inner("void(int64, int64, int64)")
@no_type_check
def _run(frame: int, index: int, helpers: int) -> None:
    """Begin a call, take parts of it, and wait for those that others took."""
    slot = _slots(()) + index * SLOT
    shared = words(slot, WORDS)
    call, parts = shared[CALLS], shared[PARTS]
    add((slot, -CLOSED))  # from here on it may be helped with
    if helpers > 0:
        others = index  # as many slots before it are taken
        _ask_for_help(frame, slot, call << 8 | index, min(helpers, parts - 1), others)
    _take_part(slot, call)
    looks = 0
    while add((slot + 8 * DONE, 0)) < parts:
        looks += 1
        if looks > PATIENCE:
            invoke((_yield(()), 0))
    add((slot + 8 * BUSY, -1))


@inner()
@no_type_check
def in_parts(frame: int, part: int, parts: int, helpers: int, work: tuple[int, ...]) -> None:
    """Call the function at the address `part` with (work, index) for every index below `parts`.

    `work` is a tuple of WORDS - WORK numbers at most, which it finds again as words. As many threads of XLA as there
    are `helpers` take parts too, if they have nothing else to do: what one has begun is waited for, and nothing else.
    """
    index = _open(part, parts)
    shared = words(_slots(()) + index * SLOT, WORDS)
    for place, number in enumerate(work):
        shared[WORK + place] = number
    _run(frame, index, helpers)
