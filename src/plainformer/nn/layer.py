"""One layer of the encoder and one of the decoder (section 3.1, figure 1)."""

import equinox as eqx
import jax

from plainformer.equations.masks import AttentionMask
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.cache import CacheSlots, KVCache
from plainformer.nn.feed_forward import FeedForward, GatedFeedForward
from plainformer.nn.residual import Residual
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, PRNGKeyArray


def split_keys(key: PRNGKeyArray | None, count: int) -> list[PRNGKeyArray | None]:
    """`count` keys from one, or as many Nones where there is no randomness."""
    return [None] * count if key is None else list(jax.random.split(key, count))


class EncoderLayer(eqx.Module):
    """Self-attention, then feed-forward, each joined to the residual stream.

    Under a causal mask this is also the layer of a decoder without memory, a language model's; `extend` is for that.
    """

    self_attention: MultiHeadAttention
    feed_forward: FeedForward | GatedFeedForward
    residuals: tuple[Residual, Residual]

    def __call__(
        self, x: Hidden, mask: AttentionMask | None, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE
    ) -> Hidden:
        first, second = split_keys(key, 2)
        attention, inner = trace.scope("self_attention"), trace.scope("feed_forward")
        with jax.named_scope("self_attention"):
            x = self.residuals[0](x, lambda x: self.self_attention(x, mask, trace=attention), first)
        attention.record("residual", x)
        with jax.named_scope("feed_forward"):
            x = self.residuals[1](x, lambda x: inner.record("output", self.feed_forward(x)), second)
        return trace.record("output", x)

    def extend(self, x: Hidden, cache: KVCache, slots: CacheSlots) -> tuple[Hidden, KVCache]:
        """The layer for new tokens, which are written to `cache` and attend to it."""
        x, cache = self.residuals[0].with_state(x, lambda x: self.self_attention.extend(x, cache, slots))
        return self.residuals[1](x, self.feed_forward, None), cache


class DecoderLayer(eqx.Module):
    """Masked self-attention, attention over the encoder's `memory`, then feed-forward."""

    self_attention: MultiHeadAttention
    cross_attention: MultiHeadAttention
    feed_forward: FeedForward | GatedFeedForward
    residuals: tuple[Residual, Residual, Residual]

    def __call__(
        self,
        x: Hidden,
        mask: AttentionMask | None,
        memory: Float[Array, "batch source d_model"],
        memory_mask: AttentionMask | None,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        first, second, third = split_keys(key, 3)
        attention, cross = trace.scope("self_attention"), trace.scope("cross_attention")
        inner = trace.scope("feed_forward")
        with jax.named_scope("self_attention"):
            x = self.residuals[0](x, lambda x: self.self_attention(x, mask, trace=attention), first)
        attention.record("residual", x)
        with jax.named_scope("cross_attention"):
            x = self.residuals[1](x, lambda x: self.cross_attention(x, memory_mask, memory, trace=cross), second)
        cross.record("residual", x)
        with jax.named_scope("feed_forward"):
            x = self.residuals[2](x, lambda x: inner.record("output", self.feed_forward(x)), third)
        return trace.record("output", x)

    def extend(
        self, x: Hidden, cache: KVCache, slots: CacheSlots, memory: KVCache, memory_mask: AttentionMask
    ) -> tuple[Hidden, KVCache]:
        """The layer for new tokens, which are written to `cache` and attend to it."""
        x, cache = self.residuals[0].with_state(x, lambda x: self.self_attention.extend(x, cache, slots))
        x = self.residuals[1](x, lambda x: self.cross_attention.attend(x, memory, memory_mask), None)
        x = self.residuals[2](x, self.feed_forward, None)
        return x, cache
