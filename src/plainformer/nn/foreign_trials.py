"""What machine code is asked once before it is trusted: small cases of all heights and widths, and what is right."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.nn.dropout import cheap_bits
from plainformer.nn.foreign_call import call, result

Trial = tuple[np.ndarray, Any]
"""What was found, and what it should be."""


# Arguments are NumPy's: a program of XLA's for each of them would take longer than all the rest.


def decoding() -> Mapping[str, Trial]:
    """Attention of one query, sums of ones, the best of words that stand in order, and norms of two numbers."""
    found = {f"attention to {kept.__name__}": (_mean_of_three(kept), 3.0) for kept in (np.float32, np.float16)}
    found |= {f"a product of {bits} bits": (_product_of_ones(bits), 1025.0) for bits in (8, 16)}
    found |= {"the best of 512 words": (_best_of_many(), 300.0)}
    two = np.tile(np.asarray([4.0, 2.0], np.float32), (1, 16))
    return found | {
        "a norm": (_norm_of_two(is_centred=False), two),
        "that of a sum": (_norm_of_two(is_centred=True), two),
    }


def attention() -> Mapping[str, Trial]:
    """Attention of eleven queries to eight of nine keys, and its gradient: tiles of all heights and widths.

    The gradient in a packed row, too, and what two tokens find there that see no later ones.
    """
    draw = np.random.default_rng(0)
    q, k, v, d_heads = (draw.normal(size=size).astype(np.float32) for size in ((11, 112), (9, 112), (9, 80), (11, 80)))
    seen = np.arange(9)[None, None, None, :] < 8
    scores = np.where(seen[0, 0], q @ k.T / math.sqrt(112), -np.inf)
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    d_p = d_heads @ v.T
    d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True)) / math.sqrt(112)
    right = {"values": p @ v, "dQ": d_scores @ k, "dK": d_scores.T @ q, "dV": p.T @ d_heads}
    early = np.exp(scores[:2, :2]) * np.tril(np.ones((2, 2)))
    right |= {f"{name} in packed rows": one for name, one in right.items() if name != "values"}
    right |= {"causal values": early / early.sum(axis=1, keepdims=True) @ v[:2]}
    results, one_head = [result(one.shape) for one in (q, k, v)], np.ones(2, np.int32)
    forward = call("text_attention", [result(d_heads.shape)], *map(jnp.asarray, (q, k, v, seen, one_head)))
    backward = call("text_attention", results, *map(jnp.asarray, (q, k, v, seen, one_head, d_heads)))
    text = np.ones((1, 11), np.int32), seen[0, 0].astype(np.int32), np.asarray([0, 1], np.int32), d_heads
    packed = call("packed_attention", results, *map(jnp.asarray, (q, k, v, *text)))
    two = q[:2], k[:2], v[:2], np.ones((1, 2), np.int32), np.ones((1, 2), np.int32), one_head
    packed += call("packed_attention", [result((2, 80))], *map(jnp.asarray, two))
    found = zip(right.items(), forward + backward + packed, strict=True)
    return {f"{name} of attention": (np.asarray(one), wanted) for (name, wanted), one in found}


def layers() -> Mapping[str, Trial]:
    """The norm of three tokens with what dropout keeps, a linear map of 67 tokens: tiles of all heights and widths, its
    gradient once more where there are some already, and the exponentials of as many rows, and their GELU.

    Dropout keeps what it always keeps: its words are those of `dropout.cheap_bits`, of the key (3, 5) and rate 1/2.
    """
    draw = np.random.default_rng(0)
    x, y, d_out = draw.normal(size=(3, 3, 32)).astype(np.float32)
    scale, bias = draw.normal(size=(2, 32)).astype(np.float32)
    key, half = np.asarray([3, 5], np.uint32), np.uint32(2**31)
    kept = 2 * np.asarray(cheap_bits(jnp.asarray(key), y.shape) >= half)
    settings = np.concatenate([np.asarray([1e-5, 1, 2], np.float32).view(np.uint32), key, [half]]).astype(np.uint32)
    total = x + kept * y
    deviation = total - total.mean(axis=1, keepdims=True)
    rate = 1 / np.sqrt(np.square(deviation).mean(axis=1, keepdims=True) + 1e-5)
    normed, d_normed = deviation * rate, d_out * scale
    d_x = d_normed - d_normed.mean(axis=1, keepdims=True) - normed * (d_normed * normed).mean(axis=1, keepdims=True)
    given = map(jnp.asarray, (x, scale, bias, settings, y))
    out, of_token, _ = call("norm", [result((3, 32)), result((3, 2)), result((3, 32))], *given)
    given = map(jnp.asarray, (total, scale, settings, of_token, d_out))
    backward = call("norm_gradient", [result((3, 32)), result((2, 32)), result((3, 32))], *given)
    right = {"a norm": normed * scale + bias, "dx of a norm": d_x * rate}
    right |= {"dscale and dbias": np.stack([(d_out * normed).sum(axis=0), d_out.sum(axis=0)])}
    right |= {"dy of a norm": kept * d_x * rate}
    x, d_y = draw.normal(size=(67, 13)).astype(np.float32), draw.normal(size=(67, 112)).astype(np.float32)
    given, results = [*map(jnp.asarray, (x, d_y))], [result((13, 112)), result((112,))]
    linear = call("linear_gradient", results, *given)
    added, _ = call("linear_gradient", results, *given, jnp.asarray(np.ones((13, 112), np.float32)), in_place={2: 0})
    right |= {"dW of a linear map": x.T @ d_y, "db of a linear map": d_y.sum(axis=0), "dW added": x.T @ d_y + 1.0}
    given = map(jnp.asarray, (d_y, np.arange(67, dtype=np.int32)))
    powers, of_token = call("exponentials", [result(d_y.shape), result((67, 3))], *given, in_place={0: 0})
    peak, of_word = d_y.max(axis=1, keepdims=True), d_y[:, :67].diagonal()
    right |= {"exponentials": np.exp(d_y - peak)}
    right |= {"their sums": np.stack([peak[:, 0], np.exp(d_y - peak).sum(axis=1), of_word], axis=1)}
    slope, bent = call("gelu", [result(d_y.shape)] * 2, jnp.asarray(d_y), in_place={0: 0})
    share = np.vectorize(math.erfc)(-d_y / math.sqrt(2.0)) / 2.0
    right |= {"its slope": share + d_y * np.exp(-0.5 * d_y * d_y) / math.sqrt(2.0 * math.pi), "GELU": d_y * share}
    found = zip(right.items(), [out, *backward, *linear, added, powers, of_token, slope, bent], strict=True)
    return {name: (np.asarray(one), wanted) for (name, wanted), one in found}


def _tried(name: str, results: Sequence[jax.ShapeDtypeStruct], *arguments: np.ndarray) -> np.ndarray:
    return np.asarray(call(name, results, *map(jnp.asarray, arguments))[-1])


def _mean_of_three(kept: type[np.floating[Any]]) -> np.ndarray:
    one = np.ones((1, 1, 1, 1), np.float32)
    return _tried("attention", [result(one.shape)], one, one.astype(kept), (3 * one).astype(kept), one == 1)


def _product_of_ones(input_bits: int) -> np.ndarray:
    """1,024 of them and a bias, as large as to be shared with XLA's threads."""
    together, many = 32 // input_bits, np.ones(2048, np.float32)
    weight = np.ones((32, 1024 // together, 64, together), np.int8)
    start = np.full(2048, -1024 * 128 if input_bits == 8 else 0, np.int32)
    return _tried("product", [result((1, 2048))], np.ones((1, 1024), np.float32), weight, start, many, many)


def _norm_of_two(*, is_centred: bool) -> np.ndarray:
    """Of 2 and -2 in turn, alone, or, centred, with 3 added to both: 1 and -1, by a scale of 1 and a bias of 3."""
    ones, settings = np.ones(32, np.float32), np.asarray([0.0, is_centred, 1.0, 0.0, 0.0, 0.0], np.float32)
    x = np.tile(np.asarray([2.0, -2.0], np.float32), (1, 16))
    given, results = [x, ones, 3 * ones, settings.view(np.uint32)], [result(x.shape), result((1, 2))]
    if is_centred:
        given, results = [*given, 3 * ones[None, :]], [*results, result(x.shape)]
    return np.asarray(call("norm", results, *map(jnp.asarray, given))[0])


def _best_of_many() -> np.ndarray:
    logits = np.tile(-np.abs(np.arange(512, dtype=np.float32) - 300), (512, 1))
    results = result((512, 1)), result((512, 1), jnp.int32)
    return _tried("best_words", results, logits, np.ones((1, 512), bool))
