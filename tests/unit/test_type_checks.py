"""The quick check of shapes and types refuses what the thorough one refuses."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintParamViolation
from jaxtyping import Float, jaxtyped

from plainformer.equations.masks import causal_mask
from type_checks import checked

Row = Float[np.ndarray, " d"]
Pair = Float[np.ndarray, "d d"]


def scaled(x: Row, factor: float) -> Row:
    return x * np.float32(factor)


def outer(x: Row, y: Float[np.ndarray, " e"]) -> Float[np.ndarray, "d e"]:
    return np.outer(x, y)


def turned(x: Row, y: Float[np.ndarray, " e"]) -> Float[np.ndarray, "d e"]:
    return np.outer(y, x)


def summed(x: Row, *others: Row, times: int = 1) -> Row:
    return times * sum(others, x)


def square(x: Pair) -> Pair:
    return scaled(x[0], 2.0)[:, None] * x


def nested(x: Row) -> Row:
    def inner(y: Row) -> Row:
        return y

    return checked(inner, typechecker=beartype)(of(9)).sum() + x


def rows(x: Pair) -> Iterator[Row]:
    yield from x


def plain(x, y):
    return x, y


def of(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


FINE: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (scaled, (of(3), 2.0), {}),
    (outer, (of(3), of(5)), {}),
    (summed, (of(3), of(3)), {"times": 2}),
    (square, (of(3, 3),), {}),
    (nested, (of(3),), {}),
    (rows, (of(3, 3),), {}),
    (plain, (of(3), "2"), {}),
]
WRONG: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
    (scaled, (of(3), "2"), {}),
    (scaled, (of(3, 1), 2.0), {}),
    (scaled, (np.ones(3, int), 2.0), {}),
    (scaled, (of(3),), {}),
    (outer, (of(3), of(3, 1)), {}),
    (turned, (of(3), of(5)), {}),
    (summed, (of(3), of(3)), {"times": 2.0}),
    (summed, (of(3), of(1)), {}),
    (summed, (of(1), of(3)), {}),
    (square, (of(3, 2),), {}),
    (rows, (of(3, 2),), {}),
]


def refusal(function: Callable[..., Any], arguments: tuple[Any, ...], named: dict[str, Any]) -> bool:
    try:
        function(*arguments, **named)
    except Exception:
        return True
    return False


@pytest.mark.parametrize(
    "call", [*FINE, *WRONG], ids=lambda call: f"{call[0].__name__} {[np.shape(x) for x in call[1]]}"
)
def test_what_jaxtyping_refuses_is_refused(call: Any) -> None:
    function, *given = call
    thorough = jaxtyped(function, typechecker=beartype)
    wanted = any(call is other for other in WRONG)
    assert refusal(checked(function, typechecker=beartype), *given) == refusal(thorough, *given) == wanted


def test_the_package_is_checked() -> None:
    """Its own functions, as the tests import them."""
    wrong: Any = "three"
    with pytest.raises(BeartypeCallHintParamViolation, match="seq"):
        causal_mask(wrong)
