"""Small programs extended to a deep model: exact where each layer adds the same, in one stack and in two."""

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


def test_two_stacks_of_other_depths_are_extended_each_by_its_own_layer():
    layers = {"encoder_layers": 12, "decoder_layers": 6}
    points = small(layers)
    assert [tuple(point.values()) for point in points] == [(2, 2), (3, 2), (2, 3)]
    found = extrapolated([program(*point.values()) for point in points], points, layers)
    assert found._replace(layers=[(12, 6)]) == program(12, 6)
    assert found.memory == program(12, 6).memory


def test_stacks_of_one_depth_are_extended_together():
    layers = {"encoder_layers": 6, "decoder_layers": 6}
    points = small(layers)
    assert [tuple(point.values()) for point in points] == [(2, 2), (3, 3)]
    found = extrapolated([program(*point.values()) for point in points], points, layers)
    assert found._replace(layers=[(6, 6)]) == program(6, 6)


def test_a_shallow_stack_beside_a_deep_one_is_left_as_it_is():
    layers = {"encoder_layers": 1, "decoder_layers": 9}
    points = small(layers)
    assert [tuple(point.values()) for point in points] == [(1, 2), (1, 3)]
    found = extrapolated([program(*point.values()) for point in points], points, layers)
    assert found._replace(layers=[(1, 9)]) == program(1, 9)
