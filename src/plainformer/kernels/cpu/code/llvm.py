"""What CPU kernels need beneath Python: addresses, atomic words, and calls from XLA.

Numba compiles plain Python functions on the machine that it runs on (the extra `cpu`): `int8`, `attention_decode` and
`top_k` serve decoding, `attention_rows`, `attention_packed`, `linear`, `gelu` and `softmax_stats` training, `norm`
both. Nothing here knows of arrays: everything is an address or a number. What XLA hands to a foreign function, and how
that asks for threads, is laid down in the C header that JAX carries, `xla/ffi/api/c_api.h`: structures whose fields all
take eight bytes, so that they are read as words.
"""

import functools
from collections.abc import Callable, Iterable
from typing import Any, no_type_check

import numpy as np

from plainformer.extras import require

numba: Any = require("numba", extra="cpu")
cgutils: Any = require("numba.core.cgutils", extra="cpu")
codegen: Any = require("numba.core.codegen", extra="cpu")
intrinsic: Any = require("numba.extending", extra="cpu").intrinsic
ir: Any = require("llvmlite.ir", extra="cpu")
llvm: Any = require("llvmlite.binding", extra="cpu")

I8, I16, I32, I64 = (ir.IntType(bits) for bits in (8, 16, 32, 64))
F16, F32, F64 = ir.HalfType(), ir.FloatType(), ir.DoubleType()
# Functions that only other kernels call: they have no way in from Python (to call one there crashes), and they
# take a fifth less time to make. One that is called with many constants is told its types, or made for each of them.
inner: Any = functools.partial(numba.njit, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)
LINE = 64  # bytes that come from memory together
LANES = 16  # numbers of 32 bits in the widest vectors of today; where they are narrower, LLVM takes two or four

# Where things are, in words. In a call: its extension, XLA's functions, the context, how many arguments there are, and
# the arguments, how many results, and the results.
EXTENSION, FUNCTIONS, CONTEXT, GIVEN, ARGUMENTS, RETURNED, RESULTS = 1, 2, 3, 7, 9, 12, 14
KIND, METADATA, VERSION = 1, 3, 3  # of the extension, the last of what it points to
A_QUESTION = 1  # the kind of an extension that asks
DTYPE, DATA, SHAPE = 2, 3, 5  # of an array
FLOAT16 = 10  # the number of a dtype
SCHEDULE, THREADS = 17, 18  # of XLA's functions, for `machine_threads`
HEADER = 3 << 32  # version 0.3 of the header, as two numbers of 32 bits

# --- instructions that Python has no words for ------------------------------------------------------------------------


def spread(builder: Any, numbers: Any, places: Any) -> Any:
    """The numbers at these places of a vector, as often as they are named."""
    return builder.shuffle_vector(numbers, ir.Constant(numbers.type, ir.Undefined), places)


def folded(builder: Any, numbers: Any, both: Callable[[Any, Any, Any], Any]) -> Any:
    """What is left of a vector when its halves are taken together, then theirs."""
    half = LANES // 2
    while half:
        other = spread(builder, numbers, constant(I32, *[(lane + half) % LANES for lane in range(LANES)]))
        numbers, half = both(builder, numbers, other), half // 2
    return builder.extract_element(numbers, I32(0))


def multiply_add(builder: Any, a: Any, b: Any, c: Any) -> Any:
    """a b + c, rounded once where the processor has an instruction for it, else twice; of numbers or of vectors."""
    kind = f"v{a.type.count}f32" if isinstance(a.type, ir.VectorType) else "f32"
    return builder.call(external(builder, f"llvm.fmuladd.{kind}", ir.FunctionType(a.type, [a.type] * 3)), [a, b, c])


def one_of(kinds: Iterable[tuple[int, ...]], emit: Callable[..., Callable[..., None]]) -> Any:
    """The function (number, …, operands) that does what `emit(*kind)` writes, for the one of `kinds` that is given."""

    known = tuple(kinds)

    def emit_all(builder: Any, *operands: Any) -> None:
        for kind in known:
            given, rest = operands[: len(kind)], operands[len(kind) :]
            same = [builder.icmp_signed("==", *pair) for pair in zip(given, map(I64, kind), strict=True)]
            with builder.if_then(functools.reduce(builder.and_, same)):
                emit(*kind)(builder, *rest)

    return instruction(numba.void, emit_all)


def instruction(result: Any, emit: Callable[..., Any]) -> Any:
    """A function, for Numba's code to call, of one tuple of numbers, with the instructions that `emit` writes."""

    @intrinsic
    def typed(_: Any, numbers: Any) -> Any:
        def lower(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            found = emit(builder, *cgutils.unpack_tuple(builder, values[0]))
            return context.get_dummy_value() if result is numba.void else found

        return result(numbers), lower

    return typed


def at(builder: Any, address: Any, kind: Any) -> Any:
    """An address as a pointer to what LLVM is to find there."""
    return builder.inttoptr(address, kind.as_pointer())


def _emit_call(builder: Any, function: Any, *arguments: Any) -> Any:
    return builder.call(at(builder, function, ir.FunctionType(I64, [I64] * len(arguments))), arguments)


def _emit_add(builder: Any, address: Any, number: Any) -> Any:
    return builder.atomic_rmw("add", at(builder, address, I64), number, "seq_cst")


def _emit_swap(builder: Any, address: Any, old: Any, new: Any) -> Any:
    pair = builder.cmpxchg(at(builder, address, I64), old, new, "seq_cst", "seq_cst")
    return builder.zext(builder.extract_value(pair, 1), I64)


def external(builder: Any, name: str, kind: Any) -> Any:
    """Something that is defined elsewhere, by its name; one of LLVM's own functions, too."""
    new = ir.Function if isinstance(kind, ir.FunctionType) else ir.GlobalVariable
    return builder.module.globals.get(name) or new(builder.module, kind, name)


def has_feature(name: str) -> bool:
    """Whether Numba makes code for processors with it (LLVM's name)."""
    config = numba.config
    features = config.CPU_FEATURES if config.CPU_FEATURES is not None else codegen.get_host_cpu_features()
    return f"+{name}" in features.split(",")


def symbol(name: str) -> Any:
    """A function of an empty tuple: where a symbol lies, which is looked up whenever the code is loaded."""

    def emit(builder: Any) -> Any:
        return builder.ptrtoint(external(builder, name, I8), I64)

    return instruction(numba.int64, emit)


def define(name: str, address: int) -> None:
    """Let a symbol lie at this address of this process."""
    llvm.add_symbol(name, address)


pointer = instruction(numba.types.voidptr, lambda builder, address: at(builder, address, I8))
invoke = instruction(numba.int64, _emit_call)  # (function, argument, …)
add = instruction(numba.int64, _emit_add)  # atomically; gives what was there before
swap = instruction(numba.int64, _emit_swap)  # 1 if `old` was there, and `new` is now


as_float32 = instruction(numba.float32, lambda builder, bits: builder.bitcast(builder.trunc(bits, I32), F32))


@inner("int64[::1](int64, int64)")
@no_type_check
def words(address: int, count: int) -> Any:
    """Memory as integers of 64 bits."""
    return numba.carray(pointer((address,)), (count,), np.int64)


def vector(builder: Any, address: Any, kind: Any, count: int) -> tuple[Any, Any]:
    """A pointer to `count` numbers side by side, and what is there; they need not lie at any particular address."""
    place = at(builder, address, ir.VectorType(kind, count))
    loaded = builder.load(place)
    loaded.align = 1
    return place, loaded


def prefetch(builder: Any, address: Any, nearest: bool = False) -> None:
    """Ask for a line of memory that will soon be read; any address will do.

    Unless it is wanted in the nearest memory, it comes to the second nearest, which can wait for far more lines.
    """
    byte = I8.as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, I32, I32, I32])
    to_read, to_keep, data = I32(0), I32(3 if nearest else 2), I32(1)
    builder.call(external(builder, "llvm.prefetch", kind), [at(builder, address, I8), to_read, to_keep, data])


_prefetch = instruction(numba.void, prefetch)


@inner()
@no_type_check
def prefetch_rows(first: int, row_bytes: int, start: int, stop: int, width: int) -> None:
    """Rows `start` … `stop` - 1 of what will soon be read, so many bytes of each."""
    for row in range(start, stop):
        for line in range(0, width, LINE):
            _prefetch((first + row * row_bytes + line,))


def constant(kind: Any, *numbers: Any) -> Any:
    return ir.Constant(ir.VectorType(kind, len(numbers)), [ir.Constant(kind, number) for number in numbers])


def sums_of_products(
    builder: Any,
    count: Any,
    step: int,
    zeros: list[list[Any]],
    left: Callable[[Any, int], Any],
    right: Callable[[Any, int], Any],
    add: Callable[[Any, Any, Any], Any],
) -> list[list[Any]]:
    """A loop over places 0, `step` … below `count`, with all its sums in registers: one for each of `zeros`.

    `add(sum, left(place, row), right(place, column))` is a sum's next value.
    """
    before, loop, after = builder.block, builder.append_basic_block(), builder.append_basic_block()
    builder.branch(loop)
    builder.position_at_end(loop)
    place = builder.phi(I64)
    sums = [[builder.phi(zero.type) for zero in row] for row in zeros]
    columns = [right(place, column) for column in range(len(zeros[0]))]
    totals = []
    for row, so_far in enumerate(sums):
        one = left(place, row)
        totals.append([add(total, one, column) for total, column in zip(so_far, columns, strict=True)])
    following = builder.add(place, I64(step))
    place.add_incoming(I64(0), before)
    place.add_incoming(following, loop)
    for starts, phis, ends in zip(zeros, sums, totals, strict=True):
        for start, phi, end in zip(starts, phis, ends, strict=True):
            phi.add_incoming(start, before)
            phi.add_incoming(end, loop)
    builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
    builder.position_at_end(after)
    return totals


# --- calls ------------------------------------------------------------------------------------------------------------


@inner()
@no_type_check
def asks_for_version(frame: int) -> bool:
    """Whether XLA only asks which version of the header a function is for; it is answered."""
    extension = words(frame, 2)[EXTENSION]
    if extension == 0 or words(extension, 2)[KIND] & 0xFFFFFFFF != A_QUESTION:
        return False
    words(words(extension, 4)[METADATA], 4)[VERSION] = HEADER
    return True


@inner("int64[::1](int64, int64, int64)")
@no_type_check
def _array(frame: int, where: int, index: int) -> Any:
    """What XLA says of one of the arguments or results, as words."""
    return words(words(words(frame, 15)[where], index + 1)[index], 6)


@inner("Tuple((int64, int64[::1]))(int64, int64)")
@no_type_check
def argument(frame: int, index: int) -> tuple[int, Any]:
    """The address of an argument, and its shape as words."""
    array = _array(frame, ARGUMENTS, index)
    return array[DATA], words(array[SHAPE], array[4])


@inner()
@no_type_check
def is_float16(frame: int, index: int) -> bool:
    """Whether an argument is, for those that may be float32 as well."""
    return _array(frame, ARGUMENTS, index)[DTYPE] & 0xFFFFFFFF == FLOAT16


@inner("Tuple((int64, int64[::1]))(int64, int64)")
@no_type_check
def result(frame: int, index: int) -> tuple[int, Any]:
    """The address of a result, and its shape as words."""
    array = _array(frame, RESULTS, index)
    return array[DATA], words(array[SHAPE], array[4])


@inner()
@no_type_check
def arguments(frame: int) -> int:
    """How many there are."""
    return words(frame, 15)[GIVEN]


@inner()
@no_type_check
def results(frame: int) -> int:
    """How many there are."""
    return words(frame, 15)[RETURNED]
