"""What the names of parts mean, and what is refused."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.errors import InputError
from plainformer.inspect.ablation import ablate, part_names
from plainformer.inspect.attribution import attribution
from plainformer.models import Classifier, EncoderConfig, LanguageModel, LanguageModelConfig, Transformer
from plainformer.models.config import TransformerConfig
from plainformer.nn.lora import adapt
from plainformer.nn.stack import scanned

GPT = LanguageModelConfig(vocab=11, d_model=6, d_ff=7, heads=3, layers=2, context=5)


def language_model() -> LanguageModel:
    return LanguageModel(GPT, key=jax.random.key(0))


def test_every_part_has_a_name() -> None:
    layer = ["", "/self_attention", *(f"/self_attention/{head}" for head in range(3)), "/feed_forward"]
    assert part_names(language_model()) == [f"{number}{part}" for number in (0, 1) for part in layer]
    config = TransformerConfig(7, 7, d_model=4, d_ff=5, heads=1, encoder_layers=1, decoder_layers=1)
    names = part_names(Transformer(config, key=jax.random.key(0)))
    assert names[4:] == [
        *("decoder/0", "decoder/0/self_attention", "decoder/0/self_attention/0", "decoder/0/cross_attention"),
        *("decoder/0/cross_attention/0", "decoder/0/feed_forward"),
    ]
    assert names[:4] == [
        "encoder/0",
        "encoder/0/self_attention",
        "encoder/0/self_attention/0",
        "encoder/0/feed_forward",
    ]


@pytest.mark.parametrize(
    "name", ["2", "0/self_attention/3", "0/feed_forward/0", "0/cross_attention", "decoder/0", "", "-1", "0/", "²"]
)
def test_what_is_no_part_is_refused_with_the_range_of_those_that_are(name: str) -> None:
    with pytest.raises(InputError, match=r"has no part .*; name a layer, a sublayer or a head, from 0 to 1/self_att"):
        ablate(language_model(), name)


def test_a_layer_off_is_passed_through_where_norms_come_before() -> None:
    model, ids = language_model(), jnp.array([[3, 1, 4]])
    expected = eqx.tree_at(lambda m: m.layers, model, model.layers[:1])(ids)
    np.testing.assert_allclose(ablate(model, "1")(ids), expected, rtol=1e-5)


def test_only_the_named_head_is_off() -> None:
    model = language_model()
    weight = np.asarray(ablate(model, "1/self_attention/2").layers[1].self_attention.output.weight)
    assert (weight[4:] == 0.0).all()
    assert np.array_equal(weight[:4], model.layers[1].self_attention.output.weight[:4])
    assert np.array_equal(ablate(model, "1/self_attention/2").layers[0].feed_forward.outer.weight,
                          model.layers[0].feed_forward.outer.weight)  # fmt: skip


def test_a_pair_beside_a_weight_is_off_with_its_head() -> None:
    model = adapt(language_model(), ["layers.0.self_attention.output"], rank=2, alpha=4.0, key=jax.random.key(1))
    model = eqx.tree_at(lambda m: m.layers[0].self_attention.output.b, model, jnp.ones((2, 6)))
    ids = jnp.array([[3, 1, 4]])
    merged = eqx.tree_at(
        lambda m: m.layers[0].self_attention.output.base.weight, model, model.layers[0].self_attention.output.weight
    )
    zero = eqx.tree_at(lambda m: m.layers[0].self_attention.output.b, merged, jnp.zeros((2, 6)))
    np.testing.assert_allclose(ablate(model, "0/self_attention/1")(ids), ablate(zero, "0/self_attention/1")(ids))
    assert not np.allclose(model(ids), ablate(model, "0/self_attention/1")(ids))


def test_layers_in_a_loop_are_refused() -> None:
    with pytest.raises(InputError, match=r"write them out: nn\.stack\.unstack_layers"):
        ablate(scanned(language_model()), "0")


def test_a_classifier_must_be_told_which_tokens_are_real() -> None:
    config = EncoderConfig(vocab=11, d_model=6, d_ff=7, heads=1, layers=1, context=5, labels=("a", "b"))
    with pytest.raises(InputError, match="valid: a classifier pools over real tokens"):
        attribution(Classifier(config, key=jax.random.key(0)), {}, [0])
