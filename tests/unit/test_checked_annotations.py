"""In tests, a call of ours with another kind, dtype or shape than its annotations say is refused."""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import pytest
from beartype import beartype
from beartype.roar import BeartypeCallHintViolation

from checked_annotations import checked
from plainformer.equations.int8 import to_whole_numbers
from plainformer.equations.linear import affine
from plainformer.shapes import Array, Float

ROWS, WIDTH, OUT = 2, 3, 5
TEXT: Any = "127"


@pytest.mark.parametrize(
    "call",
    [
        lambda: affine(jnp.ones((ROWS, WIDTH)), jnp.ones((WIDTH + 1, OUT)), None),
        lambda: affine(jnp.ones((ROWS, WIDTH)), jnp.ones((WIDTH, OUT)), jnp.ones(OUT + 1)),
        lambda: affine(jnp.ones((ROWS, WIDTH)), jnp.ones((WIDTH, OUT), jnp.int32), None),
        lambda: to_whole_numbers(jnp.ones(WIDTH), 127),
        lambda: to_whole_numbers(jnp.ones((ROWS, WIDTH)), TEXT),
    ],
    ids=["an axis of two sizes", "of a third argument", "a dtype", "axes", "a kind"],
)
def test_what_is_given_is_checked(call: Callable[[], Any]) -> None:
    with pytest.raises(BeartypeCallHintViolation):
        call()


def turned(x: Float[Array, "rows width"]) -> Float[Array, "width rows"]:
    return x.T if x.shape[0] < x.shape[1] else x


def test_what_comes_back_is_checked_and_each_call_has_axes_of_its_own() -> None:
    turn = checked(turned, typechecker=beartype)
    assert turn(jnp.ones((ROWS, WIDTH))).shape == (WIDTH, ROWS)
    assert turn(jnp.ones((WIDTH, OUT))).shape == (OUT, WIDTH)
    with pytest.raises(BeartypeCallHintViolation):
        turn(jnp.ones((WIDTH, ROWS)))
