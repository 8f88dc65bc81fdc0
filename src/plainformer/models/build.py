"""The parts that a configuration names: where a word in `config.json` becomes a module."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.models.config import Config, EncoderConfig, SingleStackConfig, TransformerConfig
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.dropout import Dropout
from plainformer.nn.feed_forward import FeedForward, GatedFeedForward, Transform
from plainformer.nn.layer import EncoderLayer
from plainformer.nn.norm import LayerNorm, Norm, RMSNorm
from plainformer.nn.pooling import FirstToken, MeanPool, Pooling
from plainformer.nn.position import Alibi, Learned, Position, Rotary, ScoreBias, Sinusoidal
from plainformer.nn.residual import PostNorm, PreNorm, Residual
from plainformer.shapes import Array, Float, PRNGKeyArray

NORMS: dict[str, type[LayerNorm] | type[RMSNorm]] = {"layer": LayerNorm, "rms": RMSNorm}
SCORE_BIASES: dict[str, Callable[[int], ScoreBias]] = {"alibi": Alibi}  # for so many heads
RESIDUALS: dict[str, Callable[[Norm, Dropout], Residual]] = {"post": PostNorm, "pre": PreNorm}


def make_attention(
    config: Config,
    key: PRNGKeyArray,
    *,
    kv_heads: int | None = None,
    rotary: Rotary | None = None,
    score_bias: ScoreBias | None = None,
) -> MultiHeadAttention:
    """Attention that knows of positions what it is given, which of a memory's is nothing."""
    return MultiHeadAttention(
        config.d_model,
        config.heads,
        config.key_width,
        config.value_width,
        bias=config.attention_bias,
        kv_heads=kv_heads,
        rotary=rotary,
        score_bias=score_bias,
        key=key,
    )


def make_self_attention(config: TransformerConfig | SingleStackConfig, key: PRNGKeyArray) -> MultiHeadAttention:
    """Attention of a text to itself, which knows the positions where they are not added to the embeddings."""
    score_bias = SCORE_BIASES[config.position](config.heads) if config.position in SCORE_BIASES else None
    if isinstance(config, TransformerConfig):
        return make_attention(config, key, score_bias=score_bias)
    rotary = Rotary(config.key_width, config.rope_theta, config.rope_scaling) if config.position == "rotary" else None
    return make_attention(config, key, kv_heads=config.kv_heads or None, rotary=rotary, score_bias=score_bias)


def make_encoder_layers(
    config: TransformerConfig | SingleStackConfig, count: int, key: PRNGKeyArray
) -> tuple[EncoderLayer, ...]:
    """Layers of self-attention and feed-forward: an encoder's, or those of a decoder without memory."""
    return tuple(
        EncoderLayer(
            self_attention=make_self_attention(config, attention_key),
            feed_forward=make_feed_forward(config, feed_forward_key),
            residuals=(make_residual(config), make_residual(config)),
        )
        for attention_key, feed_forward_key in (
            jax.random.split(layer_key) for layer_key in jax.random.split(key, count)
        )
    )


def make_added_position(config: TransformerConfig | SingleStackConfig, key: PRNGKeyArray) -> Position | None:
    """The positions that are added to the embeddings; None where the layers' attention knows them."""
    if config.position == "learned":
        longest = config.max_len if isinstance(config, TransformerConfig) else config.context
        return Learned(longest, config.d_model, key=key)
    return Sinusoidal(config.d_model, config.sinusoidal_order) if config.position == "sinusoidal" else None


def make_feed_forward(config: Config, key: PRNGKeyArray) -> FeedForward | GatedFeedForward:
    kind = GatedFeedForward if config.gated else FeedForward
    return kind(config.d_model, config.d_ff, config.activation, bias=config.feed_forward_bias, key=key)


def make_norm(config: Config) -> Norm:
    return NORMS[config.norm](config.d_model, eps=config.epsilon)


def make_residual(config: Config) -> Residual:
    return RESIDUALS[config.norm_position](make_norm(config), Dropout(config.dropout))


def make_final_norm(config: Config) -> Norm | None:
    """A pre-norm stack leaves its stream unnormalised and ends with one more norm; a post-norm one needs none."""
    return make_norm(config) if config.norm_position == "pre" else None


def make_output_bias(config: TransformerConfig | EncoderConfig, rows: int) -> Float[Array, " rows"] | None:
    """A bias of every row's logit, zero at first; None where the output projection has none."""
    return jnp.zeros(rows) if config.output_bias else None


def make_transform(config: EncoderConfig, key: PRNGKeyArray) -> Transform | None:
    """The layer before a masked language model's output projection, or None."""
    if not config.mlm_transform:
        return None
    return Transform(config.d_model, make_norm(config), config.activation, key=key)


def make_pooling(config: EncoderConfig, key: PRNGKeyArray) -> Pooling:
    """What makes one vector of a text."""
    return FirstToken(config.d_model, key=key) if config.pooling == "first" else MeanPool()


def count_parameters(model: eqx.Module) -> int:
    """Trained numbers of a model; a tied table counts once."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(eqx.filter(model, eqx.is_inexact_array)))
