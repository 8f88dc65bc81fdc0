"""Attention to texts in packed rows and its gradient as a CPU kernel: which they are, then as in `attention_rows`."""

from typing import no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.attention_head import FIRST_KEY, FIRST_QUERY, KEYS, MASK, OF_TEXT, QUERIES
from plainformer.kernels.cpu.code.attention_rows import attend, whole_numbers_at
from plainformer.kernels.cpu.code.gemm import numbers_at
from plainformer.kernels.cpu.code.llvm import numba

NO_TEXT = 0x7FFFFFFF  # behind all numbers of texts
Result = tuple[int, int]  # where a result is, or 0, and how many numbers it has for each token


@code.inner()
@no_type_check
def _clear(result: Result, start: int, stop: int) -> None:
    """Zeros for tokens `start` … `stop` - 1."""
    address, width = result
    if address != 0:
        numbers_at(address + 4 * width * start, width * (stop - start))[:] = 0


@code.inner()
@no_type_check
def _find_texts(
    query_text: np.ndarray, key_text: np.ndarray, texts: np.ndarray, by_query: Result, by_key: Result, by_value: Result
) -> int:
    """Where the texts of packed rows are, and how many. Tokens of no text, or with none on the other side, get zeros in
    the results that there are for queries, for keys and for values."""
    (rows, queries), keys, found = query_text.shape, key_text.shape[1], 0
    for row in range(rows):
        query, key = 0, 0
        while query < queries or key < keys:
            first_query, first_key = query, key
            one = query_text[row, query] if query < queries else NO_TEXT
            other = key_text[row, key] if key < keys else NO_TEXT
            while query < queries and query_text[row, query] == min(one, other):
                query += 1
            while key < keys and key_text[row, key] == min(one, other):
                key += 1
            before, before_key = row * queries, row * keys
            if min(one, other) > 0 and query > first_query and key > first_key:
                texts[found, FIRST_QUERY], texts[found, QUERIES] = before + first_query, query - first_query
                texts[found, FIRST_KEY], texts[found, KEYS] = before_key + first_key, key - first_key
                texts[found, MASK] = 0
                found += 1
            else:
                _clear(by_query, before + first_query, before + query)
                _clear(by_key, before_key + first_key, before_key + key)
                _clear(by_value, before_key + first_key, before_key + key)
    return found


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def packed_attention(frame: int) -> int:
    """What XLA calls with Q, K and V of packed rows, the texts of queries and of keys, whether it is causal, and heads.

    It gives what `attention_rows.text_attention` does.
    """
    if code.asks_for_version(frame):
        return 0
    _, shape = code.argument(frame, 0)
    _, of_value = code.argument(frame, 2)
    query_text, of_query = code.argument(frame, 3)
    key_text, of_key = code.argument(frame, 4)
    settings, _ = code.argument(frame, 5)
    is_causal, heads = whole_numbers_at(settings, 2)
    width, value_width = shape[1], of_value[1]
    found_at, _ = code.result(frame, 0)
    by_query, by_key, by_value = (found_at, value_width), (0, width), (0, value_width)
    if code.results(frame) == 3:
        d_key, _ = code.result(frame, 1)
        d_value, _ = code.result(frame, 2)
        by_query, by_key, by_value = (found_at, width), (d_key, width), (d_value, value_width)
    texts = np.empty((of_query[0] * min(of_query[1], of_key[1]), OF_TEXT), np.int64)
    of_queries = numba.carray(code.pointer((query_text,)), (of_query[0], of_query[1]), np.int32)
    of_keys = numba.carray(code.pointer((key_text,)), (of_key[0], of_key[1]), np.int32)
    found = _find_texts(of_queries, of_keys, texts, by_query, by_key, by_value)
    attend(frame, 6, np.int64(heads), texts[:found], 0, 0, np.int64(is_causal))
    # Numba frees an array after its last use, and does not know that its address was one.
    texts[:1] = 0
    return 0
