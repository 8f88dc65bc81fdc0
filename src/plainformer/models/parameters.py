"""A model's shape without its numbers, and its parameters by name: what files of weights are read and written by."""

from collections.abc import Mapping
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.named import named_leaves

Model = Transformer | LanguageModel | MaskedLanguageModel | Classifier
AnyConfig = TransformerConfig | LanguageModelConfig | EncoderConfig


def class_of(config: AnyConfig) -> type[Model]:
    """The class of the model that a configuration describes. An encoder with labels is a classifier."""
    if isinstance(config, EncoderConfig):
        return Classifier if config.labels else MaskedLanguageModel
    return LanguageModel if isinstance(config, LanguageModelConfig) else Transformer


def abstract_model(config: AnyConfig) -> Any:
    """The model that a configuration describes, with shapes for arrays: nothing is computed."""
    return eqx.filter_eval_shape(class_of(config), config, key=jax.random.key(0))


def named_shapes(skeleton: eqx.Module) -> dict[str, tuple[int, ...]]:
    """The shape of every parameter by its path in the model: `encoder.layers.0.self_attention.query.weight`."""
    return {name: leaf.shape for name, leaf in named_leaves(skeleton).items()}


def named_parameters(model: eqx.Module) -> dict[str, jax.Array]:
    """Every parameter by its path in the model, as `named_shapes` names them."""
    return named_leaves(eqx.filter(model, eqx.is_inexact_array))


def with_weights(skeleton: Any, weights: Mapping[str, Any]) -> Any:
    """The model of this shape with these weights, by the names of `named_shapes`; others may be among them."""
    return jax.tree.unflatten(jax.tree.structure(skeleton), [weights[name] for name in named_leaves(skeleton)])


def with_zero_biases(model: Any, config: AnyConfig) -> Any:
    """The same function with the further biases that `config` has, all of them zero."""
    skeleton = abstract_model(config)
    zeros = {name: jnp.zeros(shape) for name, shape in named_shapes(skeleton).items()}
    return with_weights(skeleton, zeros | named_parameters(model))
