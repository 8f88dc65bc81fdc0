"""Small random encoders, and their tokenizer."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.folder import abstract_model
from plainformer.models import EncoderConfig
from plainformer.tokenizer import SpecialTokens, train_bpe

TOKENIZER = train_bpe(["I like pizza, you like soup", "we like pizza"] * 3, 330, special=SpecialTokens(mask="<mask>"))


def random_model(**changes: Any) -> Any:
    config = EncoderConfig(vocab=TOKENIZER.vocab_size, d_model=12, d_ff=20, heads=3, layers=1, context=21, **changes)
    random = np.random.default_rng(1)
    return jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype),
        abstract_model(config),
    )
