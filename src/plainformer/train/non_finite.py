"""The first number that is not finite: a step computed again operation by operation, and what went wrong traced back.

A compiled step only says that something in it is not finite. Here the same function is evaluated one operation at a
time; of each result that is not finite it is kept where, and from which operands that came. From the first output of
the step that is not finite the way is followed back to the operation whose operands were all finite, or to a parameter
or a batch that was not. An infinity that is written in the code and that softmax turns into zero is no fault, nor is
one that no output depends on.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.extend
import numpy as np

from plainformer.train.by_numpy import by_numpy
from plainformer.train.site import Site, site_of

LONGEST_LOOP = 4096  # iterations of a scan that are looked into one by one
_OPAQUE = {"while", "reduce", "reduce_window"}  # their jaxprs are not all that they do
_SAME_NUMBERS = {"transpose", "reshape", "convert_element_type", "broadcast_in_dim", "squeeze", "copy", "copy_p"}


@dataclass
class _Bad:
    """A value that is not finite.

    mask: where. has_nan: whether there. order: how many operations came before. own: whether the operation made it.
    intended: whether it is an infinity of the code. given: the name, of what was so before the step. moves: whether the
    operation only gives numbers another shape. met: whether infinities of the code made it NaN.
    """

    mask: np.ndarray
    has_nan: bool
    order: int
    parents: tuple["_Bad", ...] = ()
    own: bool = False
    intended: bool = False
    given: str | None = None
    moves: bool = False
    met: bool = False
    site: Callable[[str | None], Site] | None = None


@dataclass
class _Value:
    """A value, what it is called if it is one of the arguments (turned or cast), and what is wrong with it."""

    array: Any
    name: str | None = None
    bad: _Bad | None = None


class _Found(Exception):
    """An output that is not finite: nothing more has to be computed."""

    def __init__(self, bad: _Bad, variable: int) -> None:
        self.bad, self.variable = bad, variable


@dataclass
class _Evaluation:
    """Operations in the order in which they are computed.

    scopes: JAX's names of the operations that those in hand are inside of, which their own names leave out.
    turns: of the loops among these.
    """

    order: int = 0
    scopes: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)


def first_non_finite(function: Callable[..., Any], *args: Any, names: Sequence[str]) -> Site | list[Any]:
    """Where the first number that is not finite comes from that an output of `function(*args)` depends on.

    Args:
        function: of PyTrees of arrays; its outputs are all to be finite. The first is the loss: where that is finite,
            whatever else is computed along with it is for the gradient, and so backward.
        args: PyTrees of arrays.
        names: what their leaves are called, in the order of the leaves.

    Returns:
        the operation or, where all outputs are finite, these.
    """
    closed = jax.make_jaxpr(function)(*args)
    given = [_given(leaf, name) for leaf, name in zip(jax.tree.leaves(args), names, strict=True)]
    wanted = {id(variable) for variable in closed.jaxpr.outvars}
    try:
        outputs = _evaluate(closed, given, _Evaluation(), wanted)
    except _Found as found:
        site = _origin(found.bad)
        is_of_gradient = site.direction == "forward" and found.variable != id(closed.jaxpr.outvars[0])
        return replace(site, direction="backward") if is_of_gradient else site
    bad = next((value.bad for value in outputs if value.bad), None)
    return [value.array for value in outputs] if bad is None else _origin(bad)


def _given(leaf: Any, name: str) -> _Value:
    value = _Value(leaf, name)
    if (mask := _mask(leaf)) is not None:
        value.bad = _Bad(mask, bool(np.isnan(np.asarray(leaf)).any()), -1, given=name)
    return value


def _origin(bad: _Bad) -> Site:
    """Back from a value that is not finite to the first operation that made one, or was given one."""
    seen = _with_ancestors(bad)
    made = [one for one in seen if one.own or any(above.given for above in one.parents)]
    # Without one, an infinity of the code reached an output.
    first = min(made or [one for one in seen if one.site and not one.moves], key=_order, default=None)
    if first is not None and first.met:
        # Where they came in is where to look.
        came_in = [one for one in _with_ancestors(first) if one.site and not one.moves]
        first = min(came_in, key=_order)
    if first is None or first.site is None:  # an output that is an argument
        given, value = next((one.given for one in seen if one.given), None), "NaN" if bad.has_nan else "inf"
        place = (), bad.mask.shape, given, ()
        return Site("no operation", "", "update", "", "", value, int(bad.mask.sum()), bad.mask.size, *place)
    return first.site(None if first.own else next((above.given for above in first.parents if above.given), None))


def _with_ancestors(bad: _Bad) -> list[_Bad]:
    seen: dict[int, _Bad] = {}
    waiting = [bad]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen[id(one)] = one
            waiting.extend(one.parents)
    return list(seen.values())


def _order(bad: _Bad) -> int:
    return bad.order


def _evaluate(
    closed: Any, args: Sequence[_Value], at: _Evaluation, wanted: frozenset[int] | set[int] = frozenset()
) -> list[_Value]:
    """The values of a jaxpr's outputs. Raises _Found at one of the `wanted` that is not finite."""
    jaxpr = closed.jaxpr
    there: dict[Any, _Value] = dict(zip(jaxpr.constvars, map(_constant, closed.consts), strict=True))
    there |= dict(zip(jaxpr.invars, args, strict=True))
    last = _last_uses(jaxpr)
    for number, equation in enumerate(jaxpr.eqns):
        values = [_read(there, variable) for variable in equation.invars]
        results = _apply(equation, values, at)
        for variable, result in zip(equation.outvars, results, strict=True):
            there[variable] = result
            if result.bad and id(variable) in wanted:
                raise _Found(result.bad, id(variable))
        for variable in last.get(number, ()):
            there.pop(variable, None)
    return [_read(there, variable) for variable in jaxpr.outvars]


def _last_uses(jaxpr: Any) -> dict[int, list[Any]]:
    """By the number of an equation, the variables that nothing after it asks for."""
    last: dict[Any, int] = {}
    for number, equation in enumerate(jaxpr.eqns):
        for variable in (*equation.invars, *equation.outvars):
            if not _is_literal(variable):
                last[variable] = number
    kept = {variable for variable in jaxpr.outvars if not _is_literal(variable)}
    found: dict[int, list[Any]] = {}
    for variable, number in last.items():
        if variable not in kept:
            found.setdefault(number, []).append(variable)
    return found


def _is_literal(variable: Any) -> bool:
    return isinstance(variable, jax.extend.core.Literal)


def _read(there: dict[Any, _Value], variable: Any) -> _Value:
    return _constant(variable.val) if _is_literal(variable) else there[variable]


def _constant(array: Any) -> _Value:
    """A number of the code, which may well be infinite."""
    mask = _mask(array)
    bad = None if mask is None else _Bad(mask, bool(np.isnan(np.asarray(array)).any()), -1, intended=True)
    return _Value(array, None, bad)


def _mask(array: Any) -> np.ndarray | None:
    """Where an array is not finite; None where it is, or holds no floating-point numbers."""
    if not isinstance(array, float) and not jax.numpy.issubdtype(getattr(array, "dtype", np.int32), np.inexact):
        return None
    found = np.asarray(~np.isfinite(np.asarray(array)))  # of a single number, too
    return found if found.any() else None


# --- one operation ---------------------------------------------------------------------------------------------------


def _apply(equation: Any, values: list[_Value], at: _Evaluation) -> list[_Value]:
    at.scopes.append(str(equation.source_info.name_stack))
    try:
        return _applied(equation, values, at)
    finally:
        at.scopes.pop()


def _applied(equation: Any, values: list[_Value], at: _Evaluation) -> list[_Value]:
    name = equation.primitive.name
    if name == "scan" and 0 < equation.params["length"] <= LONGEST_LOOP:
        return _scan(equation, values, at)
    if name == "cond":
        branches = equation.params["branches"]
        chosen = branches[int(np.clip(int(values[0].array), 0, len(branches) - 1))]
        return _evaluate(chosen, values[1:], at)
    if name not in _OPAQUE and (inner := _inner(equation)) is not None:
        return _evaluate(inner, values, at)
    results = [_Value(array) for array in _bind(equation, [value.array for value in values])]
    if name in _SAME_NUMBERS and len(values) == 1:
        results[0].name = values[0].name
    elif name == "optimization_barrier":
        for result, value in zip(results, values, strict=True):
            result.name = value.name
    elif len(named := {value.name for value in values if value.name}) == 1 and all(map(_is_integer, results)):
        for result in results:  # such as places in a table, counted from the end or not
            result.name = next(iter(named))
    at.order += 1
    for result in results:
        if (mask := _mask(result.array)) is not None:
            result.bad = _bad_result(equation, values, result.array, mask, at)
    return results


def _is_integer(value: _Value) -> bool:
    return jax.numpy.issubdtype(getattr(value.array, "dtype", np.bool_), np.integer)


def _bind(equation: Any, arrays: list[Any]) -> list[Any]:
    if len(equation.outvars) == 1:
        result = equation.outvars[0].aval
        plain = by_numpy(equation.primitive.name, arrays, equation.params, result.shape, result.dtype)
        if plain is not None:
            return [plain]
    params = equation.primitive.get_bind_params(equation.params)
    functions, params = params if isinstance(params, tuple) else ((), params)  # a pair, in older versions of JAX
    with equation.ctx.manager:
        found = equation.primitive.bind(*functions, *arrays, **params)
    return list(found) if equation.primitive.multiple_results else [found]


def _inner(equation: Any) -> Any:
    """The jaxpr that an operation stands for: a function of its own, or one with rules for gradients."""
    for value in equation.params.values():
        jaxpr = getattr(value, "jaxpr", value)
        if hasattr(jaxpr, "eqns") and len(jaxpr.invars) == len(equation.invars):
            return value if hasattr(value, "consts") else jax.extend.core.ClosedJaxpr(value, ())
    return None


def _scan(equation: Any, values: list[_Value], at: _Evaluation) -> list[_Value]:
    """A loop, turn by turn."""
    params = equation.params
    consts, carried = params["num_consts"], params["num_carry"]
    fixed, carry, over = values[:consts], values[consts : consts + carried], values[consts + carried :]
    length, rows = params["length"], []
    turns = range(length - 1, -1, -1) if params["reverse"] else range(length)
    for turn in turns:
        at.turns.append(turn)
        results = _evaluate(params["jaxpr"], [*fixed, *carry, *(_item(value, turn) for value in over)], at)
        at.turns.pop()
        carry = results[:carried]
        rows.append(results[carried:])
    stacked = [_stack(list(column)[:: -1 if params["reverse"] else 1]) for column in zip(*rows, strict=True)]
    return [*carry, *stacked]


def _item(value: _Value, turn: int) -> _Value:
    found = _Value(value.array[turn], f"{value.name}[{turn}]" if value.name else None)
    if value.bad and value.bad.mask[turn].any():
        mask, given = np.asarray(value.bad.mask[turn]), found.name if value.bad.given else None
        parents = () if given else (value.bad,)
        found.bad = _Bad(mask, value.bad.has_nan, value.bad.order, parents, intended=value.bad.intended, given=given)
    return found


def _stack(values: list[_Value]) -> _Value:
    found = _Value(jax.numpy.stack([value.array for value in values]))
    if bad := [value.bad for value in values if value.bad]:
        mask = np.stack([np.broadcast_to(_mask_of(value), found.array.shape[1:]) for value in values])
        intended = all(one.intended for one in bad)
        order = max(one.order for one in bad)
        found.bad = _Bad(mask, any(one.has_nan for one in bad), order, tuple(bad), intended=intended)
    return found


def _mask_of(value: _Value) -> np.ndarray:
    return np.zeros((), bool) if value.bad is None else value.bad.mask


def _bad_result(equation: Any, values: list[_Value], array: Any, mask: np.ndarray, at: _Evaluation) -> _Bad:
    """What is wrong with a result, and whether the operation or an operand is to blame."""
    plain = np.asarray(array)
    has_nan = bool(np.isnan(plain).any())
    parents, covered = _to_blame(equation, values, mask, has_nan)
    only_intended = bool(parents) and all(one.intended for one in parents)
    met = covered and only_intended and has_nan and not any(one.has_nan for one in parents)
    own = met or not parents or not covered
    turns, scopes = tuple(at.turns), "/".join(at.scopes)

    def site(given: str | None) -> Site:
        return site_of(equation, [(value.name, value.array) for value in values], plain, mask, given, scopes, turns)

    # What only passes on what another made is not asked where it is, and must not keep its operands in memory.
    is_asked = own or only_intended or any(one.given for one in parents)
    return _Bad(
        mask,
        has_nan,
        at.order,
        tuple(parents),
        own,
        intended=only_intended and not own,
        moves=equation.primitive.name in _SAME_NUMBERS,
        met=met,
        site=site if is_asked else None,
    )


def _to_blame(equation: Any, values: list[_Value], mask: np.ndarray, has_nan: bool) -> tuple[list[_Bad], bool]:
    """The operands from which a result can have what is not finite, and whether they explain all of it.

    Number by number where the operation works so; else of all operands, those with NaN before those with infinities,
    where the result has NaN.
    """
    name = equation.primitive.name
    known = [(number, value.bad) for number, value in enumerate(values) if value.bad]
    if name == "select_n":
        which = np.broadcast_to(np.asarray(values[0].array).astype(int), mask.shape)
        known = [(number, bad) for number, bad in known if (bad.mask & (which == number - 1)).any()]
        return [bad for _, bad in known], True
    if all(value.bad is None or value.bad.mask.shape in ((), mask.shape) for value in values) and _is_elementwise(
        equation, mask
    ):
        known = [(number, bad) for number, bad in known if (bad.mask & mask).any()]
        explained = np.zeros_like(mask)
        for _, bad in known:
            explained = explained | bad.mask
        covered = not (mask & ~explained).any()
    else:
        covered = True
    with_nan = [bad for _, bad in known if bad.has_nan]
    return (with_nan if has_nan and with_nan else [bad for _, bad in known]), covered


def _is_elementwise(equation: Any, mask: np.ndarray) -> bool:
    """Whether every operand is of the result's shape, or one number; a product of square matrices is not meant."""
    if equation.primitive.name in ("dot_general", "transpose", "rev", "sort", "cumsum", "ffi_call", "custom_call"):
        return False
    return all(variable.aval.shape in ((), mask.shape) for variable in equation.invars)
