"""JAX's commonest operations by NumPy: a step that is computed but once compiles nothing for them."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Arrays = list[np.ndarray]


def _elementwise(function: Callable[..., Any]) -> Callable[[Arrays, Any], Any]:
    return lambda arrays, params: function(*arrays)


def _reduced(function: Any) -> Callable[[Arrays, Any], Any]:
    return lambda arrays, params: function.reduce(arrays[0], axis=tuple(params["axes"]))


def _sum(arrays: Arrays, params: Any) -> Any:
    # Pairwise, in the array's own kind of number, as far as NumPy goes.
    return arrays[0].sum(axis=tuple(params["axes"]), dtype=arrays[0].dtype)


def _broadcast(arrays: Arrays, params: Any) -> Any:
    shape, axes = params["shape"], params["broadcast_dimensions"]
    spread = [1] * len(shape)
    for size, axis in zip(arrays[0].shape, axes, strict=True):
        spread[axis] = size
    return np.broadcast_to(arrays[0].reshape(spread), shape)


def _slice(arrays: Arrays, params: Any) -> Any:
    strides = params["strides"] or (1,) * arrays[0].ndim
    places = zip(params["start_indices"], params["limit_indices"], strides, strict=True)
    return arrays[0][tuple(slice(*place) for place in places)]


def _select(arrays: Arrays, params: Any) -> Any:
    which, *cases = arrays
    if which.dtype == bool and len(cases) == 2:
        return np.where(which, cases[1], cases[0])
    return np.choose(which, cases)


def _iota(arrays: Arrays, params: Any) -> Any:
    shape, axis = params["shape"], params["dimension"]
    spread = [1] * len(shape)
    spread[axis] = shape[axis]
    return np.broadcast_to(np.arange(shape[axis]).astype(params["dtype"]).reshape(spread), shape)


def _dot(arrays: Arrays, params: Any) -> Any:
    """Of 16 bits, summed in 32; whole numbers, which would overflow, are not done here."""
    if any(array.dtype.kind in "iub" for array in arrays):
        return None
    (left_sum, right_sum), (left_batch, right_batch) = params["dimension_numbers"]
    left, right = (array.astype(np.float32) if array.dtype.itemsize == 2 else array for array in arrays)
    left_free = [axis for axis in range(left.ndim) if axis not in (*left_sum, *left_batch)]
    right_free = [axis for axis in range(right.ndim) if axis not in (*right_sum, *right_batch)]
    batch = [left.shape[axis] for axis in left_batch]
    free = [left.shape[axis] for axis in left_free], [right.shape[axis] for axis in right_free]
    inner, count, rows, columns = (
        math.prod(sizes) for sizes in ((left.shape[axis] for axis in left_sum), batch, *free)
    )
    one = left.transpose((*left_batch, *left_free, *left_sum)).reshape(count, rows, inner)
    other = right.transpose((*right_batch, *right_sum, *right_free)).reshape(count, inner, columns)
    return np.matmul(one, other).reshape((*batch, *free[0], *free[1]))


def _pad(arrays: Arrays, params: Any) -> Any:
    array, value = arrays
    if any(low < 0 or high < 0 or inside for low, high, inside in params["padding_config"]):
        return None
    return np.pad(array, [(low, high) for low, high, _ in params["padding_config"]], constant_values=value)


def _integer_pow(arrays: Arrays, params: Any) -> Any:
    return np.power(arrays[0], params["y"]) if params["y"] >= 0 else 1 / np.power(arrays[0], -params["y"])


def _shift_right(arrays: Arrays, params: Any) -> Any:
    return np.right_shift(*arrays) if arrays[0].dtype.kind == "u" else None


def _concatenate(arrays: Arrays, params: Any) -> Any:
    return np.concatenate(arrays, axis=params["dimension"])


def _logistic(x: np.ndarray) -> Any:
    return 1 / (1 + np.exp(-x))


_FUNCTIONS: dict[str, Callable[[Arrays, Any], Any]] = {
    **{
        name: _elementwise(function)
        for name, function in {
            "neg": np.negative, "sign": np.sign, "floor": np.floor, "ceil": np.ceil, "exp": np.exp, "exp2": np.exp2,
            "log": np.log, "log1p": np.log1p, "expm1": np.expm1, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
            "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "abs": np.abs, "square": np.square, "pow": np.power,
            "logistic": _logistic, "add": np.add, "add_any": np.add, "sub": np.subtract, "mul": np.multiply,
            "max": np.maximum, "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
            "not": np.invert, "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
            "gt": np.greater, "ge": np.greater_equal, "is_finite": np.isfinite, "copy": np.copy, "copy_p": np.copy,
        }.items()
    },
    "div": lambda arrays, params: np.divide(*arrays) if arrays[0].dtype.kind not in "iu" else None,
    "convert_element_type": lambda arrays, params: arrays[0].astype(params["new_dtype"]),
    "reshape": lambda arrays, params: arrays[0].reshape(params["new_sizes"]),
    "transpose": lambda arrays, params: arrays[0].transpose(params["permutation"]),
    "squeeze": lambda arrays, params: arrays[0].squeeze(tuple(params["dimensions"])),
    "broadcast_in_dim": _broadcast,
    "slice": _slice,
    "select_n": _select,
    "iota": _iota,
    "concatenate": _concatenate,
    "dot_general": _dot,
    "pad": _pad,
    "integer_pow": _integer_pow,
    "shift_right_logical": _shift_right,
    "shift_left": _elementwise(np.left_shift),
    "reduce_sum": _sum,
    "reduce_max": _reduced(np.maximum),
    "reduce_min": _reduced(np.minimum),
    "reduce_and": _reduced(np.bitwise_and),
    "reduce_or": _reduced(np.bitwise_or),
}  # fmt: skip


def by_numpy(name: str, arrays: list[Any], params: Any, shape: tuple[int, ...], dtype: Any) -> np.ndarray | None:
    """The result of an operation, of a known shape and kind of number; None where NumPy is not asked for it here."""
    function = _FUNCTIONS.get(name)
    if function is None or not all(_is_plain(array) for array in arrays):
        return None
    with np.errstate(all="ignore"):
        found = function([np.asarray(array) for array in arrays], params)
    if found is None or np.shape(found) != shape:
        return None
    return np.asarray(found).astype(dtype, copy=False)


def _is_plain(array: Any) -> bool:
    """Whether an array holds numbers, and no keys of random numbers; nor a number of Python, whose kind is unsaid."""
    return isinstance(getattr(array, "dtype", None), np.dtype)
