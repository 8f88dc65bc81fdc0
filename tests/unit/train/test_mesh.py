"""Which part of which parameter is where: the table of logical axes, over meshes that need not be there."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import pytest
from jax.sharding import PartitionSpec as P

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.language_model import LanguageModel
from plainformer.models.parameters import abstract_model
from plainformer.named import named_leaves
from plainformer.nn.lora import adapt
from plainformer.nn.stack import scanned
from plainformer.train.mesh import abstract_mesh, check_mesh, logical_axes, shardings
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import initial_state

SIZES: dict[str, Any] = {"d_model": 24, "d_ff": 40, "heads": 4, "pad_vocab_to": 2}
DECODER = LanguageModelConfig(vocab=30, layers=2, kv_heads=2, position="rotary", gated=True, tie=False, **SIZES)
ENCODER = EncoderConfig(
    vocab=30, layers=2, position="learned", token_types=2, pooling="first", labels=("a", "b", "c"), **SIZES
)
BOTH = TransformerConfig(
    source_vocab=30, target_vocab=30, encoder_layers=1, decoder_layers=1, position="learned", **SIZES
)


@pytest.mark.parametrize(
    ("text", "devices", "shape"),
    [
        (0, 8, (8, 1, 1)),
        (2, 8, (2, 1, 1)),
        ("4", 8, (4, 1, 1)),
        ("data=2,fsdp=4,tensor=2", 16, (2, 4, 2)),
        (" tensor = 2 , fsdp = 0 ", 8, (1, 4, 2)),
        ("fsdp=1", 8, (1, 1, 1)),
    ],
)
def test_a_mesh_in_words(text: str | int, devices: int, shape: tuple[int, ...]) -> None:
    found = MeshShape.parse(text).of(devices)
    assert found == shape
    assert MeshShape.parse(str(found)) == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("model=2", "no axis 'model'"),
        ("data=two", "'two' is no number of devices for data"),
        ("data=-1", "'-1' is no number"),
        ("data=2,data=4", "data is given twice"),
        ("data=0,fsdp=0", "only one axis can be 0"),
        ("data=2,", "no axis ''"),
        ("data=4,tensor=4", "16 devices wanted, 8 found"),
        ("tensor=3,data=0", "8 devices do not divide by 3"),
    ],
)
def test_what_is_no_mesh_is_said(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        MeshShape.parse(text).of(8)


def specs(tree: Any, mesh: str, devices: int, **options: Any) -> dict[str, P]:
    where = named_leaves(shardings(tree, abstract_mesh(mesh, devices), **options))
    return {name: sharding.spec for name, sharding in where.items()}


def test_each_parameter_is_spread_as_its_name_says() -> None:
    found = specs(abstract_model(DECODER), "data=2,fsdp=3,tensor=2", 12)
    layer = "layers.1."
    assert found[f"{layer}self_attention.query.weight"] == P("fsdp", "tensor")
    assert found[f"{layer}self_attention.key.bias"] == P("tensor")
    assert found[f"{layer}self_attention.output.weight"] == P("tensor", "fsdp")
    assert found[f"{layer}feed_forward.gate.weight"] == P("fsdp", "tensor")
    assert found[f"{layer}feed_forward.outer.weight"] == P("tensor", "fsdp")
    assert found[f"{layer}feed_forward.outer.bias"] == found[f"{layer}residuals.0.norm.scale"] == P()
    assert found["embedding.table"] == P("tensor", "fsdp")
    assert found["output.weight"] == P("fsdp", "tensor")
    encoder = specs(abstract_model(ENCODER), "data=2,fsdp=3,tensor=2", 12)
    assert encoder["encoder.position.table"] == encoder["encoder.token_type.table"] == P(None, "fsdp")
    assert encoder["pooling.dense.weight"] == encoder["output.weight"] == P("fsdp"), "three labels do not divide"


@pytest.mark.parametrize("config", [DECODER, ENCODER, BOTH])
def test_every_matrix_has_logical_axes(config: Any) -> None:
    """A parameter that the table has forgotten would be whole on every device."""
    for name, leaf in named_leaves(abstract_model(config)).items():
        axes = logical_axes(name, leaf.ndim)
        assert len(axes) == leaf.ndim, name
        assert leaf.ndim == 1 or any(axes), name


def test_layers_in_a_loop_and_what_the_optimizer_keeps_are_spread_as_the_parameters() -> None:
    optimizer = make_optimizer(constant(peak=0.1), name="adamw", weight_decay=0.1)

    def state(key: Any) -> Any:
        model = jax.tree.map(lambda leaf: jax.numpy.zeros(leaf.shape), abstract_model(DECODER))
        return scanned(initial_state(model, optimizer))

    found = specs(eqx.filter_eval_shape(state, 0), "fsdp=2,tensor=2", 4)
    weights = {name: spec for name, spec in found.items() if name.endswith("layer.self_attention.query.weight")}
    assert len(weights) == 3, "the parameter, and Adam's two moments"
    assert {*weights.values()} == {P(None, "fsdp", "tensor")}
    assert found["step"] == found["bad_groups"] == P()


def test_a_pair_of_lora_is_spread_as_the_matrix_beside_it() -> None:
    name = "layers.0.self_attention.output"

    def tuned(key: Any) -> Any:
        return adapt(LanguageModel(DECODER, key=key), [name], rank=4, alpha=8.0, key=key)

    found = specs(eqx.filter_eval_shape(tuned, jax.random.key(0)), "fsdp=2,tensor=2", 4)
    assert found[f"{name}.base.weight"] == P("tensor", "fsdp")
    assert (found[f"{name}.a"], found[f"{name}.b"]) == (P("tensor"), P(None, "fsdp"))


@pytest.mark.parametrize(
    ("mesh", "said"),
    [
        ("fsdp=5", "a width of 24 does not divide over fsdp=5; give fsdp 1, 2, 3 or 4, or choose a model.d_model that"),
        ("tensor=5", "4 heads do not divide over tensor=5; give tensor 1, 2 or 4"),
    ],
)
def test_what_does_not_divide_is_refused_with_what_would(mesh: str, said: str) -> None:
    devices = abstract_mesh(mesh, MeshShape.parse(mesh).size)
    with pytest.raises(InputError, match=said):
        check_mesh(DECODER, devices)


def test_what_is_left_whole_is_said() -> None:
    uneven = replace(DECODER, vocab=29, pad_vocab_to=1)
    mesh = abstract_mesh("tensor=4", 4)
    heads, vocab = check_mesh(uneven, mesh)
    assert "2 heads of keys and values do not divide over tensor=4" in heads
    assert "29 rows of a vocabulary's table" in vocab
    assert "model.pad_vocab_to=4" in vocab
    found = specs(abstract_model(uneven), "tensor=4", 4)
    assert found["embedding.table"] == found["layers.0.self_attention.key.weight"] == P()
    assert check_mesh(DECODER, abstract_mesh("data=4", 4)) == []
