"""Small programs extended to a deep model: exact where each layer adds the same, in one stack and in two."""

import pytest

from plainformer.plan.compiled import Compiled, extrapolated, small
from plainformer.plan.hlo import Amount, Collective

SUM, GATHER = Collective("all-reduce", "data"), Collective("all-gather", "fsdp")


def program(encoder: int, decoder: int) -> Compiled:
    """What a compiler might say of such a model: something once, something for each layer of either stack."""
    exchanged = {
        SUM: Amount(1, 50 + 7 * encoder + 3 * decoder),
        GATHER: Amount(2 * encoder + 5 * decoder, 11 * decoder),
    }
    return Compiled(100 + 10 * encoder + 20 * decoder, 9 + 4 * encoder, 8, exchanged, "cpu", [(encoder, decoder)])


@pytest.mark.parametrize(
    ("encoder", "decoder", "compiled"),
    [
        pytest.param(12, 6, [(2, 2), (3, 2), (2, 3)], id="each by its own layer"),
        pytest.param(6, 6, [(2, 2), (3, 3)], id="of one depth, together"),
        pytest.param(1, 9, [(1, 2), (1, 3)], id="a shallow one is left as it is"),
    ],
)
def test_stacks_are_extended(encoder: int, decoder: int, compiled: list[tuple[int, int]]):
    layers = {"encoder_layers": encoder, "decoder_layers": decoder}
    points = small(layers)
    assert [tuple(point.values()) for point in points] == compiled
    found = extrapolated([program(*point.values()) for point in points], points, layers)
    assert found._replace(layers=[(encoder, decoder)]) == program(encoder, decoder)
