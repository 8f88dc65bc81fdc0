"""What a step computes, keeps and weighs, against what is worked out by hand."""

from dataclasses import replace

import pytest

from plainformer.mesh_shape import MeshShape
from plainformer.plan.estimate import estimate, outline
from plainformer.plan.operations import trace
from plainformer.plan.subject import preset_recipe, stacks, subject_of
from plainformer.recipe import parse_recipe

ROWS, CONTEXT, WIDTH, INNER, HEADS, KEYS = 6, 14, 20, 28, 4, 5
CHANGES = [
    f"model.d_model={WIDTH}", f"model.d_ff={INNER}", f"model.heads={HEADS}", "model.layers=3",
    f"data.batch_size={ROWS}", f"model.context={CONTEXT}",
    "tokenizer.vocab_size=30", "model.pad_vocab_to=2", "train.compute_dtype=float32",
]  # fmt: skip


def subject(*changes: str, preset: str = "jab-encoder"):
    return subject_of(parse_recipe(preset_recipe(preset, 1), [*CHANGES, *changes]), 2)


def test_one_more_layer_adds_its_products_three_times():
    encoder = subject()
    one, two = (trace(encoder, replace(encoder.config, layers=number), ROWS).operations for number in (1, 2))
    tokens = ROWS * CONTEXT
    maps = tokens * (4 * WIDTH * WIDTH + 2 * WIDTH * INNER)
    scores = 2 * ROWS * HEADS * CONTEXT * CONTEXT * KEYS  # and their product with the values
    # Two for an addition and a multiplication; once forward, twice backward.
    assert two - one == pytest.approx(3 * 2 * (maps + scores))


def test_the_outline_of_a_deep_model_is_that_of_the_whole():
    encoder = subject()
    whole = trace(encoder, encoder.config, ROWS)
    found = outline(encoder, ROWS)
    assert stacks(encoder.config) == {"layers": 3}
    assert found.operations == pytest.approx(whole.operations)
    assert sum(count * one.size for one, count in found.kept.items()) == pytest.approx(
        sum(one.size for one in whole.kept)
    )


def test_the_state_of_a_device_is_its_share():
    encoder = subject("train.remat=true")
    found = outline(encoder, ROWS)
    alone = estimate(encoder, found, MeshShape(), fused_attention=False, rows=ROWS)
    assert alone.plain.parameters == 4 * found.parameters
    assert alone.plain.optimizer == pytest.approx(8 * found.parameters, abs=16)  # two moments, and counts
    assert alone.exchanged == {}
    assert alone.remat.activations < alone.plain.activations
    spread = estimate(encoder, found, MeshShape(data=2, tensor=2), fused_attention=False, rows=ROWS)
    # Vectors as wide as the model are whole: norms of three layers, and biases of what comes out of them.
    whole = 4 * (3 * (2 * 2 * WIDTH + 2 * WIDTH))
    rest = 4 * found.parameters - whole - 4 * CONTEXT * WIDTH * (encoder.config.position == "learned")
    assert spread.plain.parameters - whole >= rest / 2
    assert spread.plain.parameters < alone.plain.parameters
    assert {kind.axis for kind in spread.exchanged} == {"data", "tensor"}
