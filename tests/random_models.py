"""Small models with random weights, for tests of what runs them."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.folder import ModelFolder
from plainformer.models import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.parameters import abstract_model, named_shapes, with_weights
from plainformer.tokenizer import Tokenizer


def content_of(sizes: dict[str, Any], tokenizer: Tokenizer, *, sharpness: float = 1.0) -> ModelFolder:
    """A random model of these sizes, whose biases and scales are no zeros and ones.

    With a `sharpness` above 1 its matrices are larger, and predictions far from uniform.
    """
    vocab = tokenizer.vocab_size
    if "encoder_layers" in sizes:
        config: Any = TransformerConfig(vocab, vocab, **sizes)
    elif "labels" in sizes or "mlm_transform" in sizes:
        config = EncoderConfig(vocab=vocab, **sizes)
    else:
        config = LanguageModelConfig(vocab=vocab, **sizes)
    skeleton, random = abstract_model(config), np.random.default_rng(3)

    def drawn(name: str, shape: tuple[int, ...]) -> jax.Array:
        spread = 0.2 if len(shape) == 1 else sharpness / np.sqrt(min(shape))
        return jnp.asarray((name.endswith("scale") + spread * random.standard_normal(shape)).astype(np.float32))

    weights = {name: drawn(name, shape) for name, shape in named_shapes(skeleton).items()}
    return ModelFolder(with_weights(skeleton, weights), tokenizer, tokenizer)
