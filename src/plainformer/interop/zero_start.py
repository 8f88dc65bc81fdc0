"""A decoder that starts from zero, as Marian's checkpoints have it: with a token of which the embedding is zero.

That token is the last, is the padding, too, and is called <pad>. What was padding or start before keeps its row, which
is part of every softmax, under another name; the new one has a bias that keeps it out: the function is the same.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp

from plainformer.models.parameters import abstract_model, named_parameters, with_weights
from plainformer.models.transformer import Transformer
from plainformer.tokenizer import Tokenizer

START = "<pad>"
FORMER = {"pad": "<former-pad>", "bos": "<former-bos>"}
"""What the tokens are called that had these roles."""

NEVER = -1e9  # a logit whose exponential is 0 beside any other, and a finite number, as weights have to be


def model_with_start(model: Transformer) -> Transformer:
    """The same function of one token more, the last, which the decoder starts with; it has a bias of every logit."""
    config = model.config
    grown = {f"{side}_vocab": getattr(config, f"{side}_vocab") + 1 for side in ("source", "target")}
    wanted = replace(config, **grown, decoder_start="token", pad_vocab_to=1)
    weights = {name: _with_token(name, leaf, config) for name, leaf in named_parameters(model).items()}
    return with_weights(abstract_model(wanted), weights)


def _with_token(name: str, leaf: jax.Array, config: Any) -> jax.Array:
    """A weight with a place for one token more behind the real ones, and without padding."""
    if name.endswith("_embedding.table"):
        tokens = config.source_vocab if name.startswith("source") else config.target_vocab
        return jnp.pad(leaf[:tokens], ((0, 1), (0, 0)))
    if name == "output.weight":
        return jnp.pad(leaf[:, : config.target_vocab], ((0, 0), (0, 1)))
    return jnp.pad(leaf[: config.target_vocab], (0, 1), constant_values=NEVER) if name == "output_bias" else leaf


def tokenizer_with_start(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer with one token more, which is its padding and what the decoder starts with.

    Raises:
        InputError: the tokenizer is kept as another library's files, to which nothing can be added.
    """
    return tokenizer.with_start(START, former_pad=FORMER["pad"], former_bos=FORMER["bos"])
