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
from plainformer.nn.vector_code import emit_turned
from plainformer.nn.softmax_code import softmax_of_vectors, steps_of_mask, sum_of_products

SHARE = 1 << 20  # products of queries with keys for which it pays to wake another thread
STRIP = 48  # queries that are computed together where none sees later keys: whole tiles, and whole vectors
MOST_PARTS = 32  # of a call: enough for a thread that comes late to find some left
# What the threads of a call share, in words: addresses, sizes, bytes from one mask to the next, and parts.
QUERY, KEY, VALUE, HEADS_OUT, D_QUERY, D_KEY, D_VALUE, TEXTS = range(8)
HEADS, D_K, D_V, BY_HEAD, BY_QUERY, CAUSAL, MOST_QUERIES, MOST_KEYS, TOGETHER, COUNT = range(8, 18)
NUMBERS = 18
# What is known of a text, in words: tokens before it on either side, its own, and where its mask is, or 0.
FIRST_QUERY, QUERIES, FIRST_KEY, KEYS, MASK = range(5)
OF_TEXT = 5

_turn = code.instruction(numba.void, emit_turned)


@numba.njit(cache=True)
@no_type_check
def _whole(count: int) -> int:
    """So many numbers, and what is left of the last vector."""
    return -(-count // LANES) * LANES


@numba.njit(cache=True)
@no_type_check
def _place(array: np.ndarray) -> int:
    return np.int64(array.ctypes.data)


@numba.njit(cache=True)
@no_type_check
def _bytes(address: int, count: int) -> Any:
    return numba.carray(code.pointer((address,)), (count,), np.uint8)


@numba.njit(cache=True)
@no_type_check
def whole_numbers_at(address: int, count: int) -> Any:
    """Memory as int32."""
    return numba.carray(code.pointer((address,)), (count,), np.int32)


@numba.njit(cache=True)
@no_type_check
def _turn_round(x: int, x_row: int, rows: int, columns: int, out: int) -> None:
    """xᵀ at `out`, in rows of whole vectors: what is beyond `rows` is zero. Columns are whole vectors, too."""
    out_row = 4 * _whole(rows)
    for row in range(0, rows, LANES):
        for column in range(0, columns, LANES):
            _turn((x + row * x_row + 4 * column, x_row, rows - row, out + column * out_row + 4 * row, out_row))


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
    if row == 0:
        _bytes(to, _whole(numbers[MOST_KEYS]))[:] = 0
    shown = _bytes(to, _whole(seen))
    if row == 0:
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
def _strip(numbers: np.ndarray, first: int, queries: int, seen: int) -> tuple[int, int]:
    """How many queries from the `first` on are computed together, and up to which key any of them sees some."""
    if not numbers[CAUSAL]:
        return queries, seen
    rows = min(STRIP, queries - first)
    return rows, min(first + rows, seen)


@numba.njit(cache=True)
@no_type_check
def _weights(numbers: np.ndarray, first: int, rows: int, query: int, mask: int, seen: int, of_keys: Any) -> None:
    """P = softmax(Q Kᵀ / √d_k) of so many queries of one head, in rows of whole vectors; `of_keys` are Kᵀ and its row,
    P and its row, and room for what a query sees."""
    turned, turned_row, weights, row_bytes, shown = of_keys
    (k_row, _), wide = _rows(numbers), _whole(seen)
    multiply((query + first * k_row, k_row, 4, turned, turned_row, weights, row_bytes, rows, wide, numbers[D_K]))
    scale = np.float32(1 / math.sqrt(numbers[D_K]))
    for row in range(rows):
        _show(numbers, mask, first + row, seen, shown)
        softmax_of_vectors((weights + row * row_bytes, shown, wide, scale))


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
    turned, turned_value, weights, scores, shown = room
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
    # A vector between rows, so that they do not all lie at the same places of a cache.
    row_bytes, scale, first = 4 * (wide + LANES), np.float32(1 / math.sqrt(d_k)), 0
    _turn_round(key, k_row, seen, d_k, turned)
    if gives_gradient:
        _turn_round(value, v_row, seen, d_v, turned_value)
    while first < queries:
        rows, stop = _strip(numbers, first, queries, seen)
        p = weights + first * row_bytes if gives_gradient else weights
        _weights(numbers, first, rows, query, mask, stop, (turned, 4 * wide, p, row_bytes, shown))
        here = out + first * v_row
        if gives_gradient:
            d_p = scores + first * row_bytes
            multiply((here, v_row, 4, turned_value, 4 * wide, d_p, row_bytes, rows, _whole(stop), d_v))
            for row in range(rows):
                _to_scores(p + row * row_bytes, d_p + row * row_bytes, _whole(stop), scale)
            multiply((d_p, row_bytes, 4, key, k_row, d_query + first * k_row, k_row, rows, d_k, stop))
        else:
            multiply((p, row_bytes, 4, value, v_row, here, v_row, rows, d_v, stop))
        first += rows
    first = 0
    while gives_gradient and first < seen:
        rows, _ = _strip(numbers, first, seen, seen)
        since = first if numbers[CAUSAL] else 0  # queries before it see none of these keys
        at, count = since * row_bytes + 4 * first, queries - since
        to_query, to_out = query + since * k_row, out + since * v_row
        multiply((scores + at, 4, row_bytes, to_query, k_row, d_key + first * k_row, k_row, rows, d_k, count))
        multiply((weights + at, 4, row_bytes, to_out, v_row, d_value + first * v_row, v_row, rows, d_v, count))
        first += rows


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    """Heads that come one after the other, in the same room: keys or values turned round, P, dP, what a query sees."""
    numbers = code.words(work, NUMBERS)
    wide, rows = _whole(numbers[MOST_KEYS]), numbers[MOST_QUERIES]
    gives_gradient = numbers[D_QUERY] != 0
    if numbers[CAUSAL] and not gives_gradient:
        rows = min(rows, STRIP)
    turned = np.empty(numbers[D_K] * wide, np.float32)
    turned_value = np.empty(numbers[D_V] * wide if gives_gradient else 1, np.float32)
    weights = np.empty(rows * (wide + LANES), np.float32)
    scores = np.empty(rows * (wide + LANES) if gives_gradient else 1, np.float32)
    shown = np.empty(wide, np.uint8)
    room = _place(turned), _place(turned_value), _place(weights), _place(scores), _place(shown)
    for index in range(part * numbers[TOGETHER], min((part + 1) * numbers[TOGETHER], numbers[COUNT])):
        text = code.words(numbers[TEXTS] + 8 * OF_TEXT * (index // numbers[HEADS]), OF_TEXT)
        _one_head(numbers, text, index % numbers[HEADS], room)
    # Numba frees an array after its last use, and does not know that its address was one.
    turned[0], turned_value[0], weights[0], scores[0], shown[0] = 0, 0, 0, 0, 0
    return 0


code.define("plainformer_short_heads", _some_heads.address)
_heads = code.symbol("plainformer_short_heads")


@numba.njit(cache=True)
@no_type_check
def attend(frame: int, given: int, heads: int, texts: np.ndarray, by_head: int, by_query: int, causal: int) -> None:
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
    d_k, d_v = shape[1] // heads, of_value[1] // heads
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
    """What XLA calls with Q (token, heads · d_k), K, V, a mask that may be 1 long but along the keys, and the sizes
    batch and heads.

    It gives what queries find (token, heads · d_v). Or it is given the gradient of that, too, and gives dQ, dK and dV.
    """
    if code.asks_for_version(frame):
        return 0
    _, of_query = code.argument(frame, 0)
    _, of_key = code.argument(frame, 1)
    mask, of_mask = code.argument(frame, 3)
    sizes, _ = code.argument(frame, 4)
    batch, heads = whole_numbers_at(sizes, 2)
    queries, keys = of_query[0] // batch, of_key[0] // batch
    by_text, by_head, by_query = steps_of_mask(of_mask)
    texts = np.empty((batch, OF_TEXT), np.int64)
    for text in range(batch):
        texts[text, FIRST_QUERY], texts[text, QUERIES] = text * queries, queries
        texts[text, FIRST_KEY], texts[text, KEYS] = text * keys, keys
        texts[text, MASK] = mask + text * by_text
    attend(frame, 5, np.int64(heads), texts, by_head, by_query, 0)
    texts[:1] = 0  # as above
    return 0
