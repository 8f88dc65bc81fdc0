"""Attention to texts and its gradient as a CPU kernel: all heads of all texts, shared between threads.

One head is in `attention_head`; which texts there are in packed rows, in `attention_packed`.
"""

from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.attention_head import (
    COUNT,
    D_K,
    D_QUERY,
    D_V,
    FIRST_KEY,
    FIRST_QUERY,
    HEADS,
    KEYS,
    MASK,
    MOST_KEYS,
    MOST_QUERIES,
    NUMBERS,
    OF_TEXT,
    QUERIES,
    STRIP,
    TEXTS,
    TOGETHER,
    one_head,
    prefetch_head,
    whole,
)
from plainformer.kernels.cpu.code.llvm import LANES, numba
from plainformer.kernels.cpu.code.softmax import steps_of_mask
from plainformer.kernels.cpu.code.threads import in_each_part, in_parts

SHARE = 1 << 20  # products of queries with keys for which it pays to wake another thread


@code.inner()
@no_type_check
def _place(array: np.ndarray) -> int:
    return np.int64(array.ctypes.data)


@code.inner("int32[::1](int64, int64)")
@no_type_check
def whole_numbers_at(address: int, count: int) -> Any:
    """Memory as int32."""
    return numba.carray(code.pointer((address,)), (count,), np.int32)


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_heads(work: int, part: int) -> int:
    """Heads that come one after the other, in the same room: queries and dO turned round, Pᵀ, dPᵀ, what queries see."""
    numbers = code.words(work, NUMBERS)
    keys, gives_gradient = numbers[MOST_KEYS], numbers[D_QUERY] != 0
    wide = whole(numbers[MOST_QUERIES]) + LANES if gives_gradient else STRIP
    turned = np.empty(numbers[D_K] * STRIP, np.float32)
    turned_out = np.empty(numbers[D_V] * STRIP if gives_gradient else 1, np.float32)
    weights = np.empty(keys * wide, np.float32)
    scores = np.empty(keys * wide if gives_gradient else 1, np.float32)
    shown = np.ones(keys * STRIP, np.uint8)  # as it is where no text of the call has a mask
    room = _place(turned), _place(turned_out), _place(weights), _place(scores), _place(shown)
    stop = min((part + 1) * numbers[TOGETHER], numbers[COUNT])
    for index in range(part * numbers[TOGETHER], stop):
        text = numbers[TEXTS] + 8 * OF_TEXT * (index // numbers[HEADS])
        if index + 1 < stop:
            following = numbers[TEXTS] + 8 * OF_TEXT * ((index + 1) // numbers[HEADS])
            prefetch_head(work, following, (index + 1) % numbers[HEADS])
        one_head(work, text, index % numbers[HEADS], room)
    # Numba frees an array after its last use, and does not know that its address was one.
    turned[0], turned_out[0], weights[0], scores[0], shown[0] = 0, 0, 0, 0, 0
    return 0


code.define("plainformer_heads", _some_heads.address)
_heads = code.symbol("plainformer_heads")


@code.inner("void(int64, int64, int64, int64[:, :], int64, int64, int64)")
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
    together = in_each_part(count)
    sizes = heads, d_k, d_v, by_head, by_query, causal, most_queries, most_keys, together, count
    addresses = query, key, value, heads_out, d_query, d_key, d_value, np.int64(texts.ctypes.data)
    in_parts(frame, _heads(()), -(-count // together), scores * heads * d_k // SHARE, (*addresses, *sizes))


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def text_attention(frame: int) -> int:
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
