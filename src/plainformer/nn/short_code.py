"""Attention to short texts and its gradient in machine code; `short_texts` says what it is.

A head of a text at a time: its scores, weights and their gradients stay in a core's own memory, if the text is short.
Queries, keys and values are read where projections leave them, (batch, token, head, width), so that nothing is turned
round before it. The gradient computes the weights again, which is less work than to bring them back from memory.
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
QUERY, KEY, VALUE, HEADS_OUT, D_QUERY, D_KEY, D_VALUE, TEXTS = range(8)
HEADS, D_K, D_V, BY_HEAD, BY_QUERY, CAUSAL, MOST_QUERIES, MOST_KEYS, TOGETHER, COUNT = range(8, 18)
NUMBERS = 18
# What is known of a text, in words: tokens before it on either side, its own, and where its mask is, or 0.
FIRST_QUERY, QUERIES, FIRST_KEY, KEYS, MASK = range(5)
OF_TEXT = 5


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


@numba.njit(cache=True)
@no_type_check
def _show(numbers: np.ndarray, mask: int, row: int, seen: int, to: int) -> None:
    """What a query sees, as whole vectors of it, where the query before it left them."""
    shown = _bytes(to, _whole(seen))
    if row == 0:
        shown[:] = 0
        if mask == 0 and not numbers[CAUSAL]:
            shown[:seen] = 1
    if mask == 0 and numbers[CAUSAL]:
        if row < seen:
            shown[row] = 1
    elif mask != 0 and (row == 0 or numbers[BY_QUERY] > 0):
        given = _bytes(mask + row * numbers[BY_QUERY], seen)
        for key in range(seen):
            shown[key] = given[key]


@numba.njit(cache=True)
@no_type_check
def _clear(first: int, row_bytes: int, start: int, stop: int, columns: int) -> None:
    """Zeros in rows `start` … `stop` - 1."""
    for row in range(start, stop):
        numbers_at(first + row * row_bytes, columns)[:] = 0


@numba.njit(cache=True)
@no_type_check
def _rows(numbers: np.ndarray) -> tuple[int, int]:
    """Bytes of a token's queries and keys, and of its values and what they find, of all heads."""
    return 4 * numbers[HEADS] * numbers[D_K], 4 * numbers[HEADS] * numbers[D_V]


@numba.njit(cache=True)
@no_type_check
def _weights(numbers: np.ndarray, queries: int, query: int, key: int, mask: int, seen: int, room: Any) -> None:
    """P = softmax(Q Kᵀ / √d_k) of one head, in rows of whole vectors."""
    turned, weights, _, shown = room
    (k_row, _), wide = _rows(numbers), _whole(seen)
    _turn_round(key, k_row, seen, numbers[D_K], turned)
    multiply((query, k_row, 4, turned, 4 * wide, weights, 4 * wide, queries, wide, numbers[D_K]))
    scale = np.float32(1 / math.sqrt(numbers[D_K]))
    for row in range(queries):
        _show(numbers, mask, row, seen, shown)
        softmax(numbers_at(weights + 4 * row * wide, wide), _bytes(shown, wide), scale)


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
def _one_head(numbers: np.ndarray, text: np.ndarray, head: int, room: Any) -> None:
    """O = P V of one head of a text, or the gradient of that: with P computed again

    dV = Pᵀ dO,  dP = dO Vᵀ,  dS = P ∘ (dP - Σ P dP) / √d_k,  dQ = dS K,  dK = dSᵀ Q.
    """
    turned, weights, scores, _ = room
    queries, keys, d_k, d_v = text[QUERIES], text[KEYS], numbers[D_K], numbers[D_V]
    k_row, v_row = _rows(numbers)
    of_query, of_key = text[FIRST_QUERY] * k_row + 4 * head * d_k, text[FIRST_KEY] * k_row + 4 * head * d_k
    of_value, of_out = text[FIRST_KEY] * v_row + 4 * head * d_v, text[FIRST_QUERY] * v_row + 4 * head * d_v
    query, key, value = numbers[QUERY] + of_query, numbers[KEY] + of_key, numbers[VALUE] + of_value
    out, mask = numbers[HEADS_OUT] + of_out, text[MASK] + head * numbers[BY_HEAD] if text[MASK] != 0 else 0
    d_query, d_key, d_value = numbers[D_QUERY] + of_query, numbers[D_KEY] + of_key, numbers[D_VALUE] + of_value
    gives_gradient = numbers[D_QUERY] != 0
    seen = _seen(text, mask, numbers[BY_QUERY])
    wide = _whole(seen)
    if gives_gradient:
        _clear(d_key, k_row, seen, keys, d_k)
        _clear(d_value, v_row, seen, keys, d_v)
    if seen == 0:
        if gives_gradient:
            _clear(d_query, k_row, 0, queries, d_k)
        else:
            _clear(out, v_row, 0, queries, d_v)
        return
    _weights(numbers, queries, query, key, mask, seen, room)
    if not gives_gradient:
        multiply((weights, 4 * wide, 4, value, v_row, out, v_row, queries, d_v, seen))
        return
    _turn_round(value, v_row, seen, d_v, turned)
    multiply((out, v_row, 4, turned, 4 * wide, scores, 4 * wide, queries, wide, d_v))
    scale = np.float32(1 / math.sqrt(d_k))
    for row in range(queries):
        _to_scores(weights + 4 * row * wide, scores + 4 * row * wide, wide, scale)
    multiply((scores, 4 * wide, 4, key, k_row, d_query, k_row, queries, d_k, seen))
    multiply((scores, 4, 4 * wide, query, k_row, d_key, k_row, seen, d_k, queries))
    multiply((weights, 4, 4 * wide, out, v_row, d_value, v_row, seen, d_v, queries))


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    """Heads that come one after the other, in the same room: keys or values turned round, P, dP, what a query sees."""
    numbers = code.words(work, NUMBERS)
    wide = _whole(numbers[MOST_KEYS])
    turned = np.empty(max(numbers[D_K], numbers[D_V]) * wide, np.float32)
    weights, scores = np.empty((2, numbers[MOST_QUERIES] * wide), np.float32)
    shown = np.empty(wide, np.uint8)
    room = turned.ctypes.data, weights.ctypes.data, scores.ctypes.data, shown.ctypes.data
    for index in range(part * numbers[TOGETHER], min((part + 1) * numbers[TOGETHER], numbers[COUNT])):
        text = code.words(numbers[TEXTS] + 8 * OF_TEXT * (index // numbers[HEADS]), OF_TEXT)
        _one_head(numbers, text, index % numbers[HEADS], room)
    # Numba frees an array after its last use, and does not know that its address was one.
    turned[0], weights[0], scores[0], shown[0] = 0, 0, 0, 0
    return 0


code.define("plainformer_short_heads", _some_heads.address)
_heads = code.symbol("plainformer_short_heads")


@numba.njit(cache=True)
@no_type_check
def attend(frame: int, given: int, texts: np.ndarray, by_head: int, by_query: int, causal: int) -> None:
    """All heads of all texts; after `given` arguments comes the gradient of the result, where that is asked for."""
    query, shape = code.argument(frame, 0)
    key, _ = code.argument(frame, 1)
    value, of_value = code.argument(frame, 2)
    heads_out, _ = code.result(frame, 0)
    d_query, d_key, d_value = 0, 0, 0
    if code.results(frame) == 3:
        d_query = heads_out
        heads_out, _ = code.argument(frame, given)
        d_key, _ = code.result(frame, 1)
        d_value, _ = code.result(frame, 2)
    heads, d_k, d_v = shape[2], shape[3], of_value[3]
    scores, most_queries, most_keys = 0, 1, 1
    for text in range(len(texts)):
        scores += texts[text, QUERIES] * texts[text, KEYS]
        most_queries, most_keys = max(most_queries, texts[text, QUERIES]), max(most_keys, texts[text, KEYS])
    count = len(texts) * heads
    together = max(-(-count // MOST_PARTS), 1)
    sizes = heads, d_k, d_v, by_head, by_query, causal, most_queries, most_keys, together, count
    addresses = query, key, value, heads_out, d_query, d_key, d_value, np.int64(texts.ctypes.data)
    in_parts(frame, _heads(()), -(-count // together), scores * heads * d_k // SHARE, (*addresses, *sizes))


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def short_attention(frame: int) -> int:
    """What XLA calls with Q (batch, query, heads, d_k), K, V, and a mask that may be 1 long but along the keys.

    It gives what queries find (batch, query, heads, d_v). Or it is given the gradient of that, too, and gives dQ, dK
    and dV.
    """
    if code.asks_for_version(frame):
        return 0
    _, of_query = code.argument(frame, 0)
    _, of_key = code.argument(frame, 1)
    mask, of_mask = code.argument(frame, 3)
    by_text, by_head, by_query = steps_of_mask(of_mask)
    texts = np.empty((of_query[0], OF_TEXT), np.int64)
    for text in range(len(texts)):
        texts[text, FIRST_QUERY], texts[text, QUERIES] = text * of_query[1], of_query[1]
        texts[text, FIRST_KEY], texts[text, KEYS] = text * of_key[1], of_key[1]
        texts[text, MASK] = mask + text * by_text
    attend(frame, 4, texts, by_head, by_query, 0)
    texts[:1] = 0  # as above
    return 0
