"""Attention of one head of one text and its gradient as a CPU kernel; `equations.attention` defines it.

Scores, weights and their gradients stay in a core's own memory. Queries, keys and values are read where projections
leave them, (token, head, width), so that nothing is turned round before it. The gradient computes the weights again,
which is less work than to bring them back from memory.

Queries go in strips, and scores lie the other way round, Sᵀ = K Qᵀ: a vector has the scores of `LANES` queries with one
key, so that sums over keys add whole vectors, however few keys there are. Where no query sees later ones, a strip has
the keys up to its own end: nearly half of the scores are never computed.
"""

import math
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.gemm import multiply, numbers_at
from plainformer.kernels.cpu.code.llvm import LANES, numba
from plainformer.kernels.cpu.code.simd import emit_turned
from plainformer.kernels.cpu.code.softmax import softmax_gradient, softmax_of_queries

STRIP = 32  # queries that are computed together, whole vectors
# What the threads of a call share, in words: addresses, sizes, bytes from one mask to the next, and parts.
QUERY, KEY, VALUE, HEADS_OUT, D_QUERY, D_KEY, D_VALUE, TEXTS = range(8)
HEADS, D_K, D_V, BY_HEAD, BY_QUERY, CAUSAL, MOST_QUERIES, MOST_KEYS, TOGETHER, COUNT = range(8, 18)
NUMBERS = 18
# What is known of a text, in words: tokens before it on either side, its own, and where its mask is, or 0.
FIRST_QUERY, QUERIES, FIRST_KEY, KEYS, MASK = range(5)
OF_TEXT = 5
Strip = tuple[int, int, int]  # its first query, how many there are, and up to which key any of them sees some
Rows = tuple[int, int]  # where rows of numbers are, and how many bytes it is from one to the next
Seen = tuple[int, int, int]  # where a mask is, or 0; up to which key any query sees some; where bytes of it go

_turn = code.instruction(numba.void, emit_turned)


@code.inner()
@no_type_check
def whole(count: int) -> int:
    """So many numbers, and what is left of the last vector."""
    return -(-count // LANES) * LANES


@code.inner()
@no_type_check
def _bytes(address: int, count: int) -> Any:
    return numba.carray(code.pointer((address,)), (count,), np.uint8)


@numba.cfunc(numba.int64(*[numba.int64] * 5), cache=True)
@no_type_check
def _transpose_rows(x: int, x_row: int, rows: int, columns: int, out: int) -> int:
    """xᵀ at `out`, in rows of whole vectors: what is beyond `rows` is zero. Columns are whole vectors, too."""
    out_row = 4 * whole(rows)
    for row in range(0, rows, LANES):
        for column in range(0, columns, LANES):
            _turn((x + row * x_row + 4 * column, x_row, rows - row, out + column * out_row + 4 * row, out_row))
    return 0


# What is large is called by its address, so that it is compiled once, not into each of those that call it.
code.define("plainformer_transpose", _transpose_rows.address)
_transpose = code.symbol("plainformer_transpose")


@code.inner()
@no_type_check
def _seen(text: np.ndarray, mask: int, by_query: int) -> int:
    """Up to which key any query sees some."""
    keys, rows = text[KEYS], text[QUERIES] if by_query > 0 else 1
    if mask == 0:
        return keys
    last = 0
    for row in range(rows):
        allowed, stop = _bytes(mask + row * by_query, keys), keys
        while stop > last and allowed[stop - 1] == 0:
            stop -= 1
        last = max(last, stop)
    return last


@code.inner("void(int64, int64, UniTuple(int64, 3), int64)")
@no_type_check
def _show(mask: int, by_query: int, strip: Strip, to: int) -> None:
    """What queries of a strip see: a byte for each, in a row for each key, of `STRIP` places."""
    first, rows, stop = strip
    shown = _bytes(to, stop * STRIP)
    if by_query == 0:
        given = _bytes(mask, stop)
        for key in range(stop):
            shown[key * STRIP : (key + 1) * STRIP] = given[key]
        return
    for row in range(rows):
        given = _bytes(mask + (first + row) * by_query, stop)
        for key in range(stop):
            shown[key * STRIP + row] = given[key]


@code.inner()
@no_type_check
def _clear(first: int, row_bytes: int, start: int, stop: int, columns: int) -> None:
    """Zeros in rows `start` … `stop` - 1."""
    for row in range(start, stop):
        numbers_at(first + row * row_bytes, columns)[:] = 0


@code.inner()
@no_type_check
def _rows(numbers: np.ndarray) -> tuple[int, int]:
    """Bytes of a token's queries and keys, and of its values and what they find, of all heads."""
    return 4 * numbers[HEADS] * numbers[D_K], 4 * numbers[HEADS] * numbers[D_V]


@code.inner()
@no_type_check
def _strip(numbers: np.ndarray, first: int, queries: int, seen: int) -> Strip:
    """The queries from the `first` on that are computed together."""
    rows = min(STRIP, queries - first)
    return first, rows, min(first + rows, seen) if numbers[CAUSAL] else seen


@numba.cfunc(numba.int64(*[numba.int64] * 12), cache=True)
@no_type_check
def _find_weights(
    work: int,
    first: int,
    rows: int,
    stop: int,
    query: int,
    key: int,
    k_row: int,
    turned: int,
    weights: int,
    row_bytes: int,
    mask: int,
    shown: int,
) -> int:
    """`_weights`. What has a mask is not causal besides: the mask says all."""
    numbers = code.words(work, NUMBERS)
    d_k, wide, scale = numbers[D_K], whole(rows), np.float32(1 / math.sqrt(numbers[D_K]))
    code.invoke((_transpose(()), query + first * k_row, k_row, rows, d_k, turned))
    multiply((key, k_row, 4, turned, 4 * wide, weights, row_bytes, stop, wide, d_k))
    shown_row, last = 0, first if numbers[CAUSAL] else stop
    if mask != 0:
        _show(mask, numbers[BY_QUERY], (first, rows, stop), shown)
        shown_row, last = STRIP, stop
    for row in range(0, rows, LANES):
        softmax_of_queries((weights + 4 * row, row_bytes, stop, scale, last + row, shown + row, shown_row))
    return 0


code.define("plainformer_weights", _find_weights.address)
_of_weights = code.symbol("plainformer_weights")


@code.inner()
@no_type_check
def _weights(work: int, strip: Strip, query: int, key: Rows, turned: int, p: Rows, sees: Seen) -> None:
    """Pᵀ = softmax(K Qᵀ / √d_k) of a strip of one head, its columns whole vectors."""
    (mask, _, shown), address = sees, _of_weights(())
    code.invoke((address, work, *strip, query, *key, turned, *p, mask, shown))


@code.inner()
@no_type_check
def _found(work: int, queries: int, of_head: Any, sees: Seen, room: Any) -> None:
    """O = P V."""
    numbers, (query, key, value, out) = code.words(work, NUMBERS), of_head[:4]
    turned, weights = room[0], room[2]
    first, row_bytes = 0, 4 * STRIP
    while first < queries:
        strip = _strip(numbers, first, queries, sees[1])
        _, rows, stop = strip
        _weights(work, strip, query[0], key, turned, (weights, row_bytes), sees)
        here = out[0] + first * out[1]
        multiply((weights, 4, row_bytes, value[0], value[1], here, out[1], rows, numbers[D_V], stop))
        first += rows


@code.inner()
@no_type_check
def _gradient(work: int, queries: int, of_head: Any, sees: Seen, room: Any) -> None:
    """dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - Σ P dP) / √d_k,  dQ = dS K,  dK = dSᵀ Q, with P computed again."""
    numbers, (query, key, value, d_out, d_query, d_key, d_value) = code.words(work, NUMBERS), of_head
    (k_row, v_row), d_k, d_v, seen = (key[1], value[1]), numbers[D_K], numbers[D_V], sees[1]
    turned, turned_out, weights, scores = room
    # A vector between rows, so that they do not all lie at the same places of a cache.
    row_bytes, scale = 4 * (whole(queries) + LANES), np.float32(1 / math.sqrt(d_k))
    first = 0
    while first < queries:
        strip = _strip(numbers, first, queries, seen)
        _, rows, stop = strip
        p, d_s, wide = weights + 4 * first, scores + 4 * first, whole(rows)
        _weights(work, strip, query[0], key, turned, (p, row_bytes), sees)
        code.invoke((_transpose(()), d_out[0] + first * v_row, v_row, rows, d_v, turned_out))
        multiply((value[0], v_row, 4, turned_out, 4 * wide, d_s, row_bytes, stop, wide, d_v))
        for row in range(0, rows, LANES):
            softmax_gradient((p + 4 * row, d_s + 4 * row, row_bytes, stop, scale))
        multiply((d_s, 4, row_bytes, key[0], k_row, d_query + first * k_row, k_row, rows, d_k, stop))
        first += rows
    first = 0
    while first < seen:
        keys = min(STRIP, seen - first)
        since = first if numbers[CAUSAL] else 0  # queries before it see none of these keys
        at, count = first * row_bytes + 4 * since, queries - since
        to_query, to_out = query[0] + since * k_row, d_out[0] + since * v_row
        multiply((scores + at, row_bytes, 4, to_query, k_row, d_key + first * k_row, k_row, keys, d_k, count))
        multiply((weights + at, row_bytes, 4, to_out, v_row, d_value + first * v_row, v_row, keys, d_v, count))
        first += keys


@numba.cfunc(numba.int64(*[numba.int64] * 8), cache=True)
@no_type_check
def _one_head(
    work: int, text_at: int, head: int, turned: int, turned_out: int, weights: int, scores: int, shown: int
) -> int:
    """`one_head`."""
    numbers, text = code.words(work, NUMBERS), code.words(text_at, OF_TEXT)
    room = turned, turned_out, weights, scores
    queries, keys, d_k, d_v = text[QUERIES], text[KEYS], numbers[D_K], numbers[D_V]
    k_row, v_row = _rows(numbers)
    of_query, of_key = text[FIRST_QUERY] * k_row + 4 * head * d_k, text[FIRST_KEY] * k_row + 4 * head * d_k
    of_value, of_out = text[FIRST_KEY] * v_row + 4 * head * d_v, text[FIRST_QUERY] * v_row + 4 * head * d_v
    given = (numbers[QUERY] + of_query, k_row), (numbers[KEY] + of_key, k_row), (numbers[VALUE] + of_value, v_row)
    out, mask = numbers[HEADS_OUT] + of_out, text[MASK] + head * numbers[BY_HEAD] if text[MASK] != 0 else 0
    d_query, d_key, d_value = numbers[D_QUERY] + of_query, numbers[D_KEY] + of_key, numbers[D_VALUE] + of_value
    seen = _seen(text, mask, numbers[BY_QUERY])
    sees = mask, seen, shown
    if numbers[D_QUERY] != 0:
        _clear(d_key, k_row, seen, keys, d_k)
        _clear(d_value, v_row, seen, keys, d_v)
        if seen > 0:
            _gradient(work, queries, (*given, (out, v_row), d_query, d_key, d_value), sees, room)
        else:
            _clear(d_query, k_row, 0, queries, d_k)
    elif seen > 0:
        _found(work, queries, (*given, (out, v_row)), sees, room)
    else:
        _clear(out, v_row, 0, queries, d_v)
    return 0


code.define("plainformer_one_head", _one_head.address)
_of_head = code.symbol("plainformer_one_head")


@code.inner()
@no_type_check
def one_head(work: int, text: int, head: int, room: Any) -> None:
    """What one head of the text whose words are there finds, or the gradient of that.

    The room is for queries and dO turned round, Pᵀ, dPᵀ and what queries see.
    """
    code.invoke((_of_head(()), work, text, head, *room))


@code.inner()
@no_type_check
def prefetch_head(work: int, text_at: int, head: int) -> None:
    """Ask for what `one_head` will read."""
    numbers, text = code.words(work, NUMBERS), code.words(text_at, OF_TEXT)
    k_row, v_row = _rows(numbers)
    k_bytes, v_bytes = 4 * numbers[D_K], 4 * numbers[D_V]
    first_query, first_key = text[FIRST_QUERY], text[FIRST_KEY]
    last_query, last_key = first_query + text[QUERIES], first_key + text[KEYS]
    code.prefetch_rows(numbers[QUERY] + head * k_bytes, k_row, first_query, last_query, k_bytes)
    code.prefetch_rows(numbers[KEY] + head * k_bytes, k_row, first_key, last_key, k_bytes)
    code.prefetch_rows(numbers[VALUE] + head * v_bytes, v_row, first_key, last_key, v_bytes)
    if numbers[D_QUERY] != 0:
        code.prefetch_rows(numbers[HEADS_OUT] + head * v_bytes, v_row, first_query, last_query, v_bytes)
