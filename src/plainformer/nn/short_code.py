"""Attention to short texts and its gradient in machine code; `short_texts` says what it is.

A head of a text at a time: its scores, weights and their gradients stay in a core's own memory, and queries, keys and
values are read where projections leave them, (batch, token, head, width), so that nothing is turned round before it.
"""

import math
from typing import Any, no_type_check

import numpy as np

from plainformer.nn import machine_code as code
from plainformer.nn.machine_code import LANES, numba
from plainformer.nn.machine_threads import in_parts
from plainformer.nn.multiply_code import multiply, numbers_at
from plainformer.nn.softmax_code import softmax, steps_of_mask, sum_of_products

SHARE = 1 << 20  # products of queries with keys for which it pays to wake another thread
MOST_PARTS = 32  # of a call: enough for a thread that comes late to find some left
# What the threads of a call share, in words: addresses, sizes, bytes from one mask to the next, and parts.
QUERY, KEY, VALUE, MASK, WEIGHTS, HEADS_OUT, D_QUERY, D_KEY, D_VALUE = range(9)
HEADS, QUERIES, KEYS, D_K, D_V, BY_BATCH, BY_HEAD, BY_QUERY, TOGETHER, COUNT = range(9, 19)
NUMBERS = 19


@numba.njit(cache=True)
@no_type_check
def _whole(count: int) -> int:
    """So many numbers, and what is left of the last vector."""
    return -(-count // LANES) * LANES


@numba.njit(cache=True)
@no_type_check
def _bytes(address: int, count: int) -> Any:
    return numba.carray(code.pointer((address,)), (count,), np.uint8)


@numba.njit(cache=True)
@no_type_check
def _turn_round(x: int, x_row: int, rows: int, columns: int, out: int) -> None:
    """xᵀ at `out`, in rows of whole vectors: what is beyond `rows` is zero."""
    wide = _whole(rows)
    turned = numbers_at(out, columns * wide)
    turned[:] = 0
    for row in range(rows):
        numbers = numbers_at(x + row * x_row, columns)
        for column in range(columns):
            turned[column * wide + row] = numbers[column]


@numba.njit(cache=True)
@no_type_check
def _seen(numbers: np.ndarray, mask: int) -> int:
    """Up to which key any query sees some."""
    keys, rows = numbers[KEYS], numbers[QUERIES] if numbers[BY_QUERY] > 0 else 1
    last = 0
    for row in range(rows):
        allowed, stop = _bytes(mask + row * numbers[BY_QUERY], keys), keys
        while stop > last and allowed[stop - 1] == 0:
            stop -= 1
        last = max(last, stop)
    return last


@numba.njit(cache=True)
@no_type_check
def _widen(allowed: int, keys: int, to: int) -> None:
    """A row of a mask as whole vectors of it."""
    given, kept = _bytes(allowed, keys), _bytes(to, _whole(keys))
    kept[keys:] = 0
    for key in range(keys):
        kept[key] = given[key]


@numba.njit(cache=True)
@no_type_check
def _clear(first: int, row_bytes: int, start: int, stop: int, columns: int) -> None:
    """Zeros in rows `start` … `stop` - 1."""
    for row in range(start, stop):
        numbers_at(first + row * row_bytes, columns)[:] = 0


@numba.njit(cache=True)
@no_type_check
def _of_head(numbers: np.ndarray, part: int) -> tuple[int, int, int, int, int, int]:
    """How many bytes further a head of a text begins: in queries, keys, values, what they find, weights and masks."""
    text, head = part // numbers[HEADS], part % numbers[HEADS]
    by_key, by_value = 4 * numbers[D_K], 4 * numbers[D_V]
    first_query, first_key = text * numbers[QUERIES] * numbers[HEADS], text * numbers[KEYS] * numbers[HEADS]
    return (
        (first_query + head) * by_key,
        (first_key + head) * by_key,
        (first_key + head) * by_value,
        (first_query + head) * by_value,
        4 * part * numbers[QUERIES] * _whole(numbers[KEYS]),
        text * numbers[BY_BATCH] + head * numbers[BY_HEAD],
    )


@numba.njit(cache=True)
@no_type_check
def _rows(numbers: np.ndarray) -> tuple[int, int, int]:
    """Bytes of a row of queries and keys, of values and what they find, and of weights."""
    heads = numbers[HEADS]
    return 4 * heads * numbers[D_K], 4 * heads * numbers[D_V], 4 * _whole(numbers[KEYS])


@numba.njit(cache=True)
@no_type_check
def _forward(numbers: np.ndarray, part: int, turned: int, allowed: int) -> None:
    """P = softmax(Q Kᵀ / √d_k) and P V of one head."""
    queries, keys, d_k, d_v = numbers[QUERIES], numbers[KEYS], numbers[D_K], numbers[D_V]
    to_query, to_key, to_value, to_out, to_weights, to_mask = _of_head(numbers, part)
    weights, out, mask = numbers[WEIGHTS] + to_weights, numbers[HEADS_OUT] + to_out, numbers[MASK] + to_mask
    k_row, v_row, p_row = _rows(numbers)
    seen = _seen(numbers, mask)
    wide = _whole(seen)
    _clear(weights + 4 * wide, p_row, 0, queries, p_row // 4 - wide)
    if seen == 0:
        _clear(out, v_row, 0, queries, d_v)
        return
    _turn_round(numbers[KEY] + to_key, k_row, seen, d_k, turned)
    multiply((numbers[QUERY] + to_query, k_row, 4, turned, 4 * wide, weights, p_row, queries, wide, d_k))
    scale = np.float32(1 / math.sqrt(d_k))
    for row in range(queries):
        if row == 0 or numbers[BY_QUERY] > 0:
            _widen(mask + row * numbers[BY_QUERY], keys, allowed)
        softmax(numbers_at(weights + row * p_row, wide), _bytes(allowed, wide), scale)
    multiply((weights, p_row, 4, numbers[VALUE] + to_value, v_row, out, v_row, queries, d_v, seen))


@numba.njit(cache=True)
@no_type_check
def _to_scores(weights: int, gradient: int, count: int, scale: float) -> None:
    """A row of dP becomes one of dS = P ∘ (dP - Σ P dP), times `scale`."""
    mean = sum_of_products((weights, gradient, count))
    p, d_p = numbers_at(weights, count), numbers_at(gradient, count)
    for key in range(count):
        d_p[key] = p[key] * (d_p[key] - mean) * scale


@numba.njit(cache=True)
@no_type_check
def _backward(numbers: np.ndarray, part: int, turned: int, scores: int) -> None:
    """dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - Σ P dP) / √d_k,  dQ = dS K,  dK = dSᵀ Q of one head."""
    queries, keys, d_k, d_v = numbers[QUERIES], numbers[KEYS], numbers[D_K], numbers[D_V]
    to_query, to_key, to_value, to_out, to_weights, to_mask = _of_head(numbers, part)
    weights, d_out = numbers[WEIGHTS] + to_weights, numbers[HEADS_OUT] + to_out
    k_row, v_row, p_row = _rows(numbers)
    query, key, value = numbers[QUERY] + to_query, numbers[KEY] + to_key, numbers[VALUE] + to_value
    d_query, d_key, d_value = numbers[D_QUERY] + to_query, numbers[D_KEY] + to_key, numbers[D_VALUE] + to_value
    seen = _seen(numbers, numbers[MASK] + to_mask)
    wide = _whole(seen)
    _clear(d_key, k_row, seen, keys, d_k)
    _clear(d_value, v_row, seen, keys, d_v)
    if seen == 0:
        _clear(d_query, k_row, 0, queries, d_k)
        return
    _turn_round(value, v_row, seen, d_v, turned)
    multiply((d_out, v_row, 4, turned, 4 * wide, scores, 4 * wide, queries, wide, d_v))
    scale = np.float32(1 / math.sqrt(d_k))
    for row in range(queries):
        _to_scores(weights + row * p_row, scores + 4 * row * wide, wide, scale)
    multiply((scores, 4 * wide, 4, key, k_row, d_query, k_row, queries, d_k, seen))
    multiply((scores, 4, 4 * wide, query, k_row, d_key, k_row, seen, d_k, queries))
    multiply((weights, 4, p_row, d_out, v_row, d_value, v_row, seen, d_v, queries))


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    """Heads that come one after the other, in the same room: keys or values turned round, scores, a row of a mask."""
    numbers = code.words(work, NUMBERS)
    wide, queries = _whole(numbers[KEYS]), numbers[QUERIES]
    turned, scores = np.empty(max(numbers[D_K], numbers[D_V]) * wide, np.float32), np.empty(queries * wide, np.float32)
    allowed = np.empty(wide, np.uint8)
    turned_at, scores_at, allowed_at = turned.ctypes.data, scores.ctypes.data, allowed.ctypes.data
    for head in range(part * numbers[TOGETHER], min((part + 1) * numbers[TOGETHER], numbers[COUNT])):
        if numbers[D_QUERY] == 0:
            _forward(numbers, head, np.int64(turned_at), np.int64(allowed_at))
        else:
            _backward(numbers, head, np.int64(turned_at), np.int64(scores_at))
    # Numba frees an array after its last use, and does not know that its address was one.
    turned[0], scores[0], allowed[0] = 0, 0, 0
    return 0


code.define("plainformer_short_heads", _some_heads.address)
_heads = code.symbol("plainformer_short_heads")


@numba.njit(cache=True)
@no_type_check
def _addresses(frame: int) -> tuple[int, int, int, int, int]:
    """P, what queries find, and dQ, dK and dV, by what is asked for; those of the gradient are 0 where it is not."""
    if code.results(frame) == 2:
        heads_out, _ = code.result(frame, 0)
        weights, _ = code.result(frame, 1)
        return weights, heads_out, 0, 0, 0
    weights, _ = code.argument(frame, 4)
    heads_out, _ = code.argument(frame, 5)
    d_query, _ = code.result(frame, 0)
    d_key, _ = code.result(frame, 1)
    d_value, _ = code.result(frame, 2)
    return weights, heads_out, d_query, d_key, d_value


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def short_attention(frame: int) -> int:
    """What XLA calls with Q (batch, query, heads, d_k), K, V, and a mask that may be 1 long but along the keys.

    It gives what queries find (batch, query, heads, d_v), and P in rows of whole vectors. Or it is given P and its
    result's gradient, too, and gives dQ, dK and dV.
    """
    if code.asks_for_version(frame):
        return 0
    query, of_query = code.argument(frame, 0)
    key, _ = code.argument(frame, 1)
    value, of_value = code.argument(frame, 2)
    mask, of_mask = code.argument(frame, 3)
    batch, queries, heads, d_k = of_query[0], of_query[1], of_query[2], of_query[3]
    keys, d_v = of_value[1], of_value[3]
    count = batch * heads
    together = -(-count // MOST_PARTS)
    sizes = (heads, queries, keys, d_k, d_v, *steps_of_mask(of_mask), together, count)
    helpers = count * queries * keys * d_k // SHARE
    in_parts(frame, _heads(()), -(-count // together), helpers, (query, key, value, mask, *_addresses(frame), *sizes))
    return 0
