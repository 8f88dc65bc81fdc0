"""What CPU kernels are asked once before they are trusted: small cases of all heights and widths, and what is right."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from plainformer.equations.dropout import cheap_bits
from plainformer.kernels.cpu.ffi import call, result

Trial = tuple[np.ndarray, np.ndarray]
"""What was found, and what it should be."""

Arrays = Sequence[np.ndarray]


class _Case(NamedTuple):
    """A call, as `ffi.call` is told of it, and what its results are called and should be, in their order."""

    function: str
    given: Arrays
    right: Mapping[str, np.ndarray]
    in_place: Mapping[int, int] | None = None

    def results(self) -> list[jax.ShapeDtypeStruct]:
        return [result(one.shape, one.dtype) for one in self.right.values()]


def _tried(*cases: _Case) -> Mapping[str, Trial]:
    """All cases as one program: one for each, and for each argument, would take two to three times as long to be found
    again, and longer to be made."""

    def all_of(given: Sequence[Sequence[Any]]) -> list[list[Any]]:
        return [
            call(case.function, case.results(), *its, in_place=case.in_place)
            for case, its in zip(cases, given, strict=True)
        ]

    found = jax.device_get(jax.jit(all_of)([list(case.given) for case in cases]))
    return {
        what: (one, right)
        for case, results in zip(cases, found, strict=True)
        for one, (what, right) in zip(results, case.right.items(), strict=True)
    }


# --- decoding ---------------------------------------------------------------------------------------------------------


def decoding() -> Mapping[str, Trial]:
    """Attention of one query, sums of ones, the best of words that stand in order, and norms of two numbers."""
    attentions = map(_mean_of_three, (np.float32, np.float16))
    return _tried(*attentions, *map(_product_of_ones, (8, 16)), _best_of_many(), *map(_norm_of_two, (False, True)))


def _mean_of_three(kept: type[np.floating[Any]]) -> _Case:
    one = np.ones((1, 1, 1, 1), np.float32)
    given = one, one.astype(kept), (3 * one).astype(kept), one == 1, np.zeros(1, np.int32)
    return _Case("attention", given, {f"attention to {kept.__name__}": 3 * one})


def _product_of_ones(input_bits: int) -> _Case:
    """1,024 of them and a bias, as large as to be shared with XLA's threads."""
    together, many = 32 // input_bits, np.ones(2048, np.float32)
    weight = np.ones((32, 1024 // together, 64, together), np.int8)
    start = np.full(2048, -1024 * 128 if input_bits == 8 else 0, np.int32)
    given = np.ones((1, 1024), np.float32), weight, start, many, many
    return _Case("product", given, {f"a product of {input_bits} bits": 1025 * many[None, :]})


def _best_of_many() -> _Case:
    """Of 512 words, in as many rows."""
    logits = np.tile(-np.abs(np.arange(512, dtype=np.float32) - 300), (512, 1))
    logprob = -np.log(np.exp(logits).sum(axis=1, keepdims=True))
    right = {"the best log-probability": logprob, "the best word": np.full((512, 1), 300, np.int32)}
    return _Case("top_k", (logits, np.ones((1, 512), bool)), right)


def _norm_of_two(is_centred: bool) -> _Case:
    """Of 2 and -2 in turn, alone, or, centred, with 3 added to both: 1 and -1, by a scale of 1 and a bias of 3."""
    ones, settings = np.ones(32, np.float32), np.asarray([0.0, is_centred, 1.0, 0.0, 0.0, 0.0], np.float32)
    x = np.tile(np.asarray([2.0, -2.0], np.float32), (1, 16))
    given, name = [x, ones, 3 * ones, settings.view(np.uint32)], "that of a sum" if is_centred else "a norm"
    right = {name: x / 2 + 3, f"mean and rate of {name}": np.asarray([[3.0 * is_centred, 0.5]], np.float32)}
    if is_centred:
        given, right = [*given, 3 * ones[None, :]], right | {"the sum": x + 3}
    return _Case("norm", given, right)


# --- attention in training --------------------------------------------------------------------------------------------


def attention() -> Mapping[str, Trial]:
    """Attention of eleven queries to eight of nine keys, and its gradient: tiles of all heights and widths.

    The gradient in a packed row, too, and what two tokens find there that see no later ones.
    """
    draw = np.random.default_rng(0)
    q, k, v, d_heads = (draw.normal(size=size).astype(np.float32) for size in ((11, 112), (9, 112), (9, 80), (11, 80)))
    seen = np.arange(9)[None, None, None, :] < 8
    scores = np.where(seen[0, 0], q @ k.T / np.float32(math.sqrt(112)), np.float32(-np.inf))
    p = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    d_p = d_heads @ v.T
    d_scores = p * (d_p - (p * d_p).sum(axis=1, keepdims=True)) / np.float32(math.sqrt(112))
    gradients = {"dQ": d_scores @ k, "dK": d_scores.T @ q, "dV": p.T @ d_heads}
    early = np.exp(scores[:2, :2]) * np.tril(np.ones((2, 2), np.float32))
    causal = early / early.sum(axis=1, keepdims=True) @ v[:2]
    one_head, all_seen = np.ones(2, np.int32), np.ones((1, 2), np.int32)
    text = q, k, v, seen, one_head
    row = q, k, v, np.ones((1, 11), np.int32), seen[0, 0].astype(np.int32), np.asarray([0, 1], np.int32)
    return _tried(
        _Case("text_attention", text, {"values of attention": p @ v}),
        _Case("text_attention", [*text, d_heads], {f"{one} of attention": right for one, right in gradients.items()}),
        _Case("packed_attention", [*row, d_heads], {f"{one} in packed rows": of for one, of in gradients.items()}),
        _Case("packed_attention", (q[:2], k[:2], v[:2], all_seen, all_seen, one_head), {"causal values": causal}),
    )


# --- the rest of a layer in training, and the loss --------------------------------------------------------------------


def layers() -> Mapping[str, Trial]:
    """The norm of three tokens with what dropout keeps, a linear map of 67 tokens: tiles of all heights and widths, its
    gradient once more where there are some already, and the exponentials of as many rows, and their GELU."""
    draw = np.random.default_rng(0)
    norm = _norm_and_gradient(*draw.normal(size=(3, 3, 32)).astype(np.float32), *draw.normal(size=(2, 32)))
    x, d_y = draw.normal(size=(67, 13)).astype(np.float32), draw.normal(size=(67, 112)).astype(np.float32)
    d_w, d_b, ones = x.T @ d_y, d_y.sum(axis=0), np.ones((13, 112), np.float32)
    linear = _Case("linear_gradient", (x, d_y), {"dW of a linear map": d_w, "db of a linear map": d_b})
    added = _Case("linear_gradient", (x, d_y, ones), {"dW added": d_w + ones, "db beside it": d_b}, {2: 0})
    return _tried(*norm, linear, added, _exponentials(d_y), _gelu(d_y))


def _norm_and_gradient(x: np.ndarray, y: np.ndarray, d_out: np.ndarray, *weights: np.ndarray) -> tuple[_Case, _Case]:
    """Of x with what dropout keeps of y, by a rate of 1/2: its words are those of `cheap_bits`, of the key (3, 5)."""
    scale, bias = (weight.astype(np.float32) for weight in weights)
    key, half = np.asarray([3, 5], np.uint32), np.uint32(2**31)
    bits = jax.device_get(jax.jit(cheap_bits, static_argnums=1)(key, y.shape))
    kept = 2 * (bits >= half).astype(np.float32)
    settings = np.concatenate([np.asarray([1e-5, 1, 2], np.float32).view(np.uint32), key, [half]]).astype(np.uint32)
    total = x + kept * y
    mean = total.mean(axis=1, keepdims=True)
    rate = 1 / np.sqrt(np.square(total - mean).mean(axis=1, keepdims=True) + np.float32(1e-5))
    normed, d_normed, of_token = (total - mean) * rate, d_out * scale, np.concatenate([mean, rate], axis=1)
    d_x = d_normed - d_normed.mean(axis=1, keepdims=True) - normed * (d_normed * normed).mean(axis=1, keepdims=True)
    d_x = d_x * rate
    d_weights = np.stack([(d_out * normed).sum(axis=0), d_out.sum(axis=0)])
    out = {"a norm": normed * scale + bias, "mean and rate of a norm": of_token, "the sum of a norm": total}
    gradients = {"dx of a norm": d_x, "dscale and dbias": d_weights, "dy of a norm": kept * d_x}
    forward = _Case("norm", (x, scale, bias, settings, y), out)
    return forward, _Case("norm_gradient", (total, scale, settings, of_token, d_out), gradients)


def _exponentials(logits: np.ndarray) -> _Case:
    """Of rows, each of which wants the word of its own number."""
    peak, wanted = logits.max(axis=1, keepdims=True), np.arange(len(logits), dtype=np.int32)
    powers, of_word = np.exp(logits - peak), logits[wanted, wanted]
    right = {"exponentials": powers, "their sums": np.stack([peak[:, 0], powers.sum(axis=1), of_word], axis=1)}
    return _Case("exponentials", (logits, wanted), right, {0: 0})


def _gelu(x: np.ndarray) -> _Case:
    share = (np.vectorize(math.erfc)(-x / math.sqrt(2.0)) / 2.0).astype(np.float32)
    slope = share + x * np.exp(-0.5 * x * x) / np.float32(math.sqrt(2.0 * math.pi))
    return _Case("gelu", [x], {"slope of GELU": slope, "GELU": x * share}, {0: 0})
