"""Attention of one head of one text and its gradient in machine code; `fused_attention` says what it is.

Scores, weights and their gradients stay in a core's own memory. Queries, keys and values are read where projections
leave them, (token, head, width), so that nothing is turned round before it. The gradient computes the weights again,
which is less work than to bring them back from memory. Where no query sees later ones, queries go in strips, each with
the keys up to its own end: nearly half of the scores are never computed.
"""

import math
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.machine_code import LANES, numba
from plainformer.nn.multiply_code import multiply, numbers_at
from plainformer.nn.softmax_code import softmax_of_vectors, sum_of_products
from plainformer.nn.vector_code import emit_turned

STRIP = 48  # queries that are computed together where none sees later keys: whole tiles, and whole vectors
# What the threads of a call share, in words: addresses, sizes, bytes from one mask to the next, and parts.
QUERY, KEY, VALUE, HEADS_OUT, D_QUERY, D_KEY, D_VALUE, TEXTS = range(8)
HEADS, D_K, D_V, BY_HEAD, BY_QUERY, CAUSAL, MOST_QUERIES, MOST_KEYS, TOGETHER, COUNT = range(8, 18)
NUMBERS = 18
# What is known of a text, in words: tokens before it on either side, its own, and where its mask is, or 0.
FIRST_QUERY, QUERIES, FIRST_KEY, KEYS, MASK = range(5)
OF_TEXT = 5
Strip = tuple[int, int, int]  # its first query, how many there are, and up to which key any of them sees some
Rows = tuple[int, int]  # where rows of numbers are, and how many bytes it is from one to the next

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


@code.inner()
@no_type_check
def _turn_round(x: int, x_row: int, rows: int, columns: int, out: int) -> None:
    """xᵀ at `out`, in rows of whole vectors: what is beyond `rows` is zero. Columns are whole vectors, too."""
    out_row = 4 * whole(rows)
    for row in range(0, rows, LANES):
        for column in range(0, columns, LANES):
            _turn((x + row * x_row + 4 * column, x_row, rows - row, out + column * out_row + 4 * row, out_row))


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


@code.inner()
@no_type_check
def _show(numbers: np.ndarray, mask: int, row: int, seen: int, to: int) -> None:
    """What a query sees, as whole vectors of it, where the query before it left them."""
    if row == 0:
        _bytes(to, whole(numbers[MOST_KEYS]))[:] = 0
    shown = _bytes(to, whole(seen))
    if row == 0 and mask == 0 and not numbers[CAUSAL]:
        shown[:seen] = 1
    if mask == 0 and numbers[CAUSAL]:
        if row < seen:
            shown[row] = 1
    elif mask != 0 and (row == 0 or numbers[BY_QUERY] > 0):
        given = _bytes(mask + row * numbers[BY_QUERY], seen)
        for key in range(seen):
            shown[key] = given[key]


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
    if not numbers[CAUSAL]:
        return first, queries, seen
    rows = min(STRIP, queries - first)
    return first, rows, min(first + rows, seen)


@code.inner()
@no_type_check
def _weights(
    numbers: np.ndarray, strip: tuple[int, int, int], query: Rows, turned: Rows, p: Rows, mask: int, shown: int
) -> None:
    """P = softmax(Q Kᵀ / √d_k) of a strip of one head, in rows of whole vectors."""
    (first, rows, seen), (of_query, k_row), (keys, keys_row), (weights, row_bytes) = strip, query, turned, p
    wide, scale = whole(seen), np.float32(1 / math.sqrt(numbers[D_K]))
    multiply((of_query + first * k_row, k_row, 4, keys, keys_row, weights, row_bytes, rows, wide, numbers[D_K]))
    for row in range(rows):
        _show(numbers, mask, first + row, seen, shown)
        softmax_of_vectors((weights + row * row_bytes, shown, wide, scale))


@code.inner()
@no_type_check
def _to_scores(weights: int, gradient: int, count: int, scale: float) -> None:
    """A row of dP becomes one of dS = P ∘ (dP - Σ P dP), times `scale`."""
    mean = sum_of_products((weights, gradient, count))
    p, d_p = numbers_at(weights, count), numbers_at(gradient, count)
    for key in range(count):
        d_p[key] = p[key] * (d_p[key] - mean) * scale


@code.inner()
@no_type_check
def _found(numbers: np.ndarray, queries: int, seen: int, of_head: Any, mask: int, room: Any) -> None:
    """O = P V."""
    query, key, value, out = of_head[:4]
    turned, _, weights, _, shown = room
    first, row_bytes = 0, 4 * (whole(seen) + LANES)
    _turn_round(key[0], key[1], seen, numbers[D_K], turned)
    while first < queries:
        strip = _strip(numbers, first, queries, seen)
        _weights(numbers, strip, query, (turned, 4 * whole(seen)), (weights, row_bytes), mask, shown)
        here = out[0] + first * out[1]
        multiply((weights, row_bytes, 4, value[0], value[1], here, out[1], strip[1], numbers[D_V], strip[2]))
        first += strip[1]


@code.inner()
@no_type_check
def _gradient(numbers: np.ndarray, queries: int, seen: int, of_head: Any, mask: int, room: Any) -> None:
    """dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - Σ P dP) / √d_k,  dQ = dS K,  dK = dSᵀ Q, with P computed again."""
    query, key, value, d_out, d_query, d_key, d_value = of_head
    (k_row, v_row), d_k, d_v = (key[1], value[1]), numbers[D_K], numbers[D_V]
    turned, turned_value, weights, scores, shown = room
    # A vector between rows, so that they do not all lie at the same places of a cache.
    row_bytes, turned_row, scale = 4 * (whole(seen) + LANES), 4 * whole(seen), np.float32(1 / math.sqrt(d_k))
    _turn_round(key[0], k_row, seen, d_k, turned)
    _turn_round(value[0], v_row, seen, d_v, turned_value)
    first = 0
    while first < queries:
        strip = _strip(numbers, first, queries, seen)
        _, rows, stop = strip
        p, d_s = weights + first * row_bytes, scores + first * row_bytes
        _weights(numbers, strip, query, (turned, turned_row), (p, row_bytes), mask, shown)
        here = d_out[0] + first * v_row
        multiply((here, v_row, 4, turned_value, turned_row, d_s, row_bytes, rows, whole(stop), d_v))
        for row in range(rows):
            _to_scores(p + row * row_bytes, d_s + row * row_bytes, whole(stop), scale)
        multiply((d_s, row_bytes, 4, key[0], k_row, d_query + first * k_row, k_row, rows, d_k, stop))
        first += rows
    first = 0
    while first < seen:
        _, keys, _ = _strip(numbers, first, seen, seen)
        since = first if numbers[CAUSAL] else 0  # queries before it see none of these keys
        at, count = since * row_bytes + 4 * first, queries - since
        to_query, to_out = query[0] + since * k_row, d_out[0] + since * v_row
        multiply((scores + at, 4, row_bytes, to_query, k_row, d_key + first * k_row, k_row, keys, d_k, count))
        multiply((weights + at, 4, row_bytes, to_out, v_row, d_value + first * v_row, v_row, keys, d_v, count))
        first += keys


@code.inner()
@no_type_check
def one_head(numbers: np.ndarray, text: np.ndarray, head: int, room: Any) -> None:
    """What one head of a text finds, or the gradient of that."""
    queries, keys, d_k, d_v = text[QUERIES], text[KEYS], numbers[D_K], numbers[D_V]
    k_row, v_row = _rows(numbers)
    of_query, of_key = text[FIRST_QUERY] * k_row + 4 * head * d_k, text[FIRST_KEY] * k_row + 4 * head * d_k
    of_value, of_out = text[FIRST_KEY] * v_row + 4 * head * d_v, text[FIRST_QUERY] * v_row + 4 * head * d_v
    given = (numbers[QUERY] + of_query, k_row), (numbers[KEY] + of_key, k_row), (numbers[VALUE] + of_value, v_row)
    out, mask = numbers[HEADS_OUT] + of_out, text[MASK] + head * numbers[BY_HEAD] if text[MASK] != 0 else 0
    d_query, d_key, d_value = numbers[D_QUERY] + of_query, numbers[D_KEY] + of_key, numbers[D_VALUE] + of_value
    seen = _seen(text, mask, numbers[BY_QUERY])
    if numbers[D_QUERY] != 0:
        _clear(d_key, k_row, seen, keys, d_k)
        _clear(d_value, v_row, seen, keys, d_v)
        if seen > 0:
            _gradient(numbers, queries, seen, (*given, (out, v_row), d_query, d_key, d_value), mask, room)
        else:
            _clear(d_query, k_row, 0, queries, d_k)
    elif seen > 0:
        _found(numbers, queries, seen, (*given, (out, v_row)), mask, room)
    else:
        _clear(out, v_row, 0, queries, d_v)
