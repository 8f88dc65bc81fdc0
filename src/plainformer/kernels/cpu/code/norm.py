"""A sublayer's end and a norm as CPU kernels, each in one pass over memory; `equations.norms` defines them.

A token at a time: what it is made of is read once, and stays in a core's own memory while its mean, its variance and
its result are computed. The order of all sums is written out, and which tokens a thread takes does not change them.
"""

from collections.abc import Callable
from typing import Any, no_type_check

import numpy as np

from plainformer.kernels.cpu.code import llvm as code
from plainformer.kernels.cpu.code.exp import all_lanes
from plainformer.kernels.cpu.code.gemm import numbers_at
from plainformer.kernels.cpu.code.llvm import F32, I32, I64, LANES, ir, numba
from plainformer.kernels.cpu.code.simd import everywhere, numbers_of, over_vectors, put, summed
from plainformer.kernels.cpu.code.threads import in_each_part, in_parts

ALONE, ADDED, DROPPED = 0, 1, 2  # x; x + y; x + what dropout keeps of y
SHARE = 1 << 16  # numbers for which it pays to wake another thread
# What the threads of a call share, in words: addresses, and sizes.
X, Y, SUM, OUT, SCALE, BIAS, OF_TOKEN, SETTINGS, D_OUT, D_X, D_Y, PARTIAL = range(12)
TOKENS, WIDTH, TOGETHER, KIND = range(12, 16)
NUMBERS = 16
# The settings, float32, and where the key and the threshold of dropout lie behind them, as whole numbers.
EPS, IS_CENTRED, SCALE_OF_KEPT, FIRST, SECOND, THRESHOLD = range(6)


# --- a token ----------------------------------------------------------------------------------------------------------


def _mixed(builder: Any, word: Any) -> Any:
    """`dropout._mix` of a vector of words."""
    for shift, factor in ((16, 0x7FEB352D), (15, 0x846CA68B)):
        word = builder.xor(word, builder.lshr(word, code.constant(I32, *[shift] * LANES)))
        word = builder.mul(word, code.constant(I32, *[factor] * LANES))
    return builder.xor(word, builder.lshr(word, code.constant(I32, *[16] * LANES)))


def _kept(builder: Any, numbers: Any, index: Any, dropout: tuple[Any, ...]) -> Any:
    """What dropout keeps of a vector, scaled; its first number is the one of this `index` in the whole array."""
    scale, first, second, threshold = dropout
    places = builder.add(everywhere(builder, builder.trunc(index, I32)), code.constant(I32, *range(LANES)))
    word = builder.xor(builder.mul(places, code.constant(I32, *[0x9E3779B9] * LANES)), first)
    word = _mixed(builder, builder.add(_mixed(builder, word), second))
    is_kept = builder.icmp_unsigned(">=", word, threshold)
    return builder.select(is_kept, builder.fmul(numbers, scale), all_lanes(0.0))


def _dropout(builder: Any, settings: Any) -> tuple[Any, ...]:
    """What `_kept` asks for, as vectors."""
    words = [_setting(builder, settings, place, I32) for place in (FIRST, SECOND, THRESHOLD)]
    numbers = (_setting(builder, settings, SCALE_OF_KEPT, F32), *words)
    return tuple(everywhere(builder, number) for number in numbers)


def _setting(builder: Any, settings: Any, place: int, kind: Any) -> Any:
    return builder.load(code.at(builder, builder.add(settings, I64(4 * place)), kind))


def _mean(builder: Any, total: Any, count: Any) -> Any:
    return builder.fdiv(summed(builder, total), builder.sitofp(count, F32))


def _emit_norm(kind: int) -> Callable[..., None]:
    """A token of n = (s - mean) r scale + bias, with s = x + y, which is kept, as its mean and r are."""

    def emit(builder: Any, token: Any, count: Any, *addresses: Any) -> None:
        x, y, total, out, scale, bias, of_token, settings = addresses
        begin = builder.mul(token, count)
        row = builder.mul(begin, I64(4))
        x, y, total, out = (builder.add(one, row) for one in (x, y, total, out))
        dropout = _dropout(builder, settings) if kind == DROPPED else ()
        total = x if kind == ALONE else total

        def add_up(place: Any, sums: list[Any]) -> list[Any]:
            numbers = numbers_of(builder, x, place)
            if kind != ALONE:
                other = numbers_of(builder, y, place)
                other = _kept(builder, other, builder.add(begin, place), dropout) if kind == DROPPED else other
                numbers = builder.fadd(numbers, other)
                put(builder, total, place, numbers)
            return [builder.fadd(sums[0], numbers)]

        [sums] = over_vectors(builder, count, [all_lanes(0.0)], add_up)
        mean = builder.fmul(_mean(builder, sums, count), _setting(builder, settings, IS_CENTRED, F32))
        means = everywhere(builder, mean)

        def square(place: Any, sums: list[Any]) -> list[Any]:
            numbers = builder.fsub(numbers_of(builder, total, place), means)
            return [code.multiply_add(builder, numbers, numbers, sums[0])]

        [squares] = over_vectors(builder, count, [all_lanes(0.0)], square)
        variance = builder.fadd(_mean(builder, squares, count), _setting(builder, settings, EPS, F32))
        root = builder.call(code.external(builder, "llvm.sqrt.f32", ir.FunctionType(F32, [F32])), [variance])
        rate = builder.fdiv(F32(1.0), root)
        rates = everywhere(builder, rate)

        def write(place: Any, _: list[Any]) -> list[Any]:
            numbers = builder.fmul(builder.fsub(numbers_of(builder, total, place), means), rates)
            numbers = code.multiply_add(
                builder, numbers, numbers_of(builder, scale, place), numbers_of(builder, bias, place)
            )
            put(builder, out, place, numbers)
            return []

        over_vectors(builder, count, [], write)
        place = builder.add(of_token, builder.mul(token, I64(8)))
        builder.store(mean, code.at(builder, place, F32))
        builder.store(rate, code.at(builder, builder.add(place, I64(4)), F32))

    return emit


def _emit_gradient(kind: int) -> Callable[..., None]:
    """With n = (s - mean) r and g = dn ∘ scale:  ds = r (g - mean(g) - n mean(g ∘ n)).

    dy is what dropout kept of that; dn ∘ n and dn are added to what is so far the gradient of scale and of bias.
    """

    def emit(builder: Any, token: Any, count: Any, *addresses: Any) -> None:
        total, scale, of_token, settings, d_out, d_x, d_y, partial = addresses
        begin = builder.mul(token, count)
        row = builder.mul(begin, I64(4))
        total, d_out, d_x, d_y = (builder.add(one, row) for one in (total, d_out, d_x, d_y))
        place_of_token = builder.add(of_token, builder.mul(token, I64(8)))
        d_bias = builder.add(partial, builder.mul(count, I64(4)))
        is_centred = _setting(builder, settings, IS_CENTRED, F32)
        dropout = _dropout(builder, settings) if kind == DROPPED else ()
        means, rates = (
            everywhere(builder, builder.load(code.at(builder, builder.add(place_of_token, I64(byte)), F32)))
            for byte in (0, 4)
        )

        def normed(place: Any) -> Any:
            return builder.fmul(builder.fsub(numbers_of(builder, total, place), means), rates)

        def add_up(place: Any, sums: list[Any]) -> list[Any]:
            numbers, given = normed(place), numbers_of(builder, d_out, place)
            so_far = numbers_of(builder, partial, place)
            put(builder, partial, place, code.multiply_add(builder, given, numbers, so_far))
            put(builder, d_bias, place, builder.fadd(numbers_of(builder, d_bias, place), given))
            unscaled = builder.fmul(given, numbers_of(builder, scale, place))
            return [builder.fadd(sums[0], unscaled), code.multiply_add(builder, unscaled, numbers, sums[1])]

        first, second = over_vectors(builder, count, [all_lanes(0.0)] * 2, add_up)
        mean = everywhere(builder, builder.fmul(_mean(builder, first, count), is_centred))
        slope = everywhere(builder, _mean(builder, second, count))

        def write(place: Any, _: list[Any]) -> list[Any]:
            unscaled = builder.fmul(numbers_of(builder, d_out, place), numbers_of(builder, scale, place))
            along = builder.fmul(normed(place), slope)
            numbers = builder.fmul(builder.fsub(builder.fsub(unscaled, along), mean), rates)
            put(builder, d_x, place, numbers)
            if kind == DROPPED:
                put(builder, d_y, place, _kept(builder, numbers, builder.add(begin, place), dropout))
            return []

        over_vectors(builder, count, [], write)

    return emit


_norm = code.one_of([(ALONE,), (ADDED,), (DROPPED,)], _emit_norm)
_gradient = code.one_of([(ADDED,), (DROPPED,)], _emit_gradient)


# --- some tokens ------------------------------------------------------------------------------------------------------


@numba.cfunc(numba.int64(numba.int64, numba.int64), cache=True)
@no_type_check
def _some_tokens(work: int, part: int) -> int:
    """Tokens that come one after the other."""
    numbers = code.words(work, NUMBERS)
    together, width, settings = numbers[TOGETHER], numbers[WIDTH], numbers[SETTINGS]
    for token in range(part * together, min((part + 1) * together, numbers[TOKENS])):
        if numbers[D_OUT] == 0:
            place = numbers[X], numbers[Y], numbers[SUM], numbers[OUT]
            of_norm = numbers[SCALE], numbers[BIAS], numbers[OF_TOKEN], settings
            _norm((numbers[KIND], token, width, *place, *of_norm))
        else:
            of_norm = numbers[SUM], numbers[SCALE], numbers[OF_TOKEN], settings
            partial = numbers[PARTIAL] + part * 8 * width
            _gradient((numbers[KIND], token, width, *of_norm, numbers[D_OUT], numbers[D_X], numbers[D_Y], partial))
    return 0


code.define("plainformer_tokens", _some_tokens.address)
_tokens = code.symbol("plainformer_tokens")


@code.inner()
@no_type_check
def _in_parts(frame: int, addresses: Any, tokens: int, width: int, kind: int, together: int) -> None:
    parts = -(-tokens // together)
    in_parts(frame, _tokens(()), parts, tokens * width // SHARE, (*addresses, tokens, width, together, kind))


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def norm(frame: int) -> int:
    """What XLA calls with x (token, width), scale, bias, settings, and y where there is one.

    It gives the norm, each token's mean and rate, and x + y where there is y. Settings are `eps`, whether the norm is
    centred, what is kept is multiplied by, and, in their bits, the key of dropout and its threshold: 0 keeps all.
    """
    if code.asks_for_version(frame):
        return 0
    x, shape = code.argument(frame, 0)
    scale, _ = code.argument(frame, 1)
    bias, _ = code.argument(frame, 2)
    settings, _ = code.argument(frame, 3)
    out, _ = code.result(frame, 0)
    of_token, _ = code.result(frame, 1)
    y, total, kind = 0, 0, ALONE
    if code.results(frame) == 3:
        y, _ = code.argument(frame, 4)
        total, _ = code.result(frame, 2)
        of_dropout = numba.carray(code.pointer((settings,)), (THRESHOLD + 1,), np.int32)
        kind = DROPPED if of_dropout[THRESHOLD] != 0 else ADDED
    together = in_each_part(shape[0])
    addresses = x, y, total, out, scale, bias, of_token, settings, 0, 0, 0, 0
    _in_parts(frame, addresses, shape[0], shape[1], kind, together)
    return 0


@numba.cfunc(numba.int64(numba.int64), cache=True)
@no_type_check
def norm_gradient(frame: int) -> int:
    """What XLA calls with s (token, width), scale, settings, each token's mean and rate, and the norm's gradient.

    It gives that of s, those of scale and bias (2, width), and that of y where dropout came between.
    """
    if code.asks_for_version(frame):
        return 0
    total, shape = code.argument(frame, 0)
    scale, _ = code.argument(frame, 1)
    settings, _ = code.argument(frame, 2)
    of_token, _ = code.argument(frame, 3)
    d_out, _ = code.argument(frame, 4)
    d_x, _ = code.result(frame, 0)
    sums, _ = code.result(frame, 1)
    d_y, kind = 0, ADDED
    if code.results(frame) == 3:
        d_y, _ = code.result(frame, 2)
        kind = DROPPED
    tokens, width = shape[0], shape[1]
    together = in_each_part(tokens)
    parts = -(-tokens // together)
    partial = np.zeros((parts, 2 * width), np.float32)
    addresses = 0, 0, total, 0, scale, 0, of_token, settings, d_out, d_x, d_y, np.int64(partial.ctypes.data)
    _in_parts(frame, addresses, tokens, width, kind, together)
    of_norm = numbers_at(sums, 2 * width)
    of_norm[:] = 0
    for part in range(parts):
        for place in range(2 * width):
            of_norm[place] += partial[part, place]
    return 0
