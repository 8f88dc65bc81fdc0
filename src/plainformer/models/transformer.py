"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order.

source ids ── embed ──> encoder ──> memory ─┐
target ids ── embed ──────────────> decoder ┴──> hidden states ── project ──> logits
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations.masks import AttentionMask, Tokens, padding_mask, tokens_of
from plainformer.models.build import (
    make_added_position,
    make_attention,
    make_encoder_layers,
    make_feed_forward,
    make_final_norm,
    make_output_bias,
    make_residual,
    make_self_attention,
)
from plainformer.models.config import TransformerConfig
from plainformer.nn.cache import CacheSlots, KVCache, capacity, empty_cache, grow, next_slots, turned
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, OutputHead, logits_of
from plainformer.nn.layer import DecoderLayer, EncoderLayer, split_keys
from plainformer.nn.linear import Linear
from plainformer.nn.norm import Norm
from plainformer.nn.position import Position
from plainformer.nn.stack import extend_layers, run_layers
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Bool, Float, Hidden, Ids, Int, Logits, PRNGKeyArray, Valid

NO_PACKING = Tokens()


# ---------------------------------------------------------------------------------------------------------------------
# 3.1  Encoder and decoder stacks
# ---------------------------------------------------------------------------------------------------------------------


class Encoder(eqx.Module):
    """N identical layers, each of self-attention and feed-forward."""

    layers: tuple[EncoderLayer, ...]
    norm: Norm | None

    def __init__(self, config: TransformerConfig, *, key: PRNGKeyArray) -> None:
        self.layers = make_encoder_layers(config, config.encoder_layers, key)
        self.norm = make_final_norm(config)

    def __call__(
        self, x: Hidden, mask: AttentionMask | None, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE
    ) -> Hidden:
        x = run_layers(self.layers, x, mask, keys=split_keys(key, len(self.layers)), trace=trace)
        return trace.record("hidden", x if self.norm is None else self.norm(x))


class Decoder(eqx.Module):
    """N identical layers, each of masked self-attention, attention over the memory, and feed-forward."""

    layers: tuple[DecoderLayer, ...]
    norm: Norm | None

    def __init__(self, config: TransformerConfig, *, key: PRNGKeyArray) -> None:
        self.layers = tuple(
            DecoderLayer(
                self_attention=make_self_attention(config, self_key),
                cross_attention=make_attention(config, cross_key),
                feed_forward=make_feed_forward(config, feed_forward_key),
                residuals=(make_residual(config), make_residual(config), make_residual(config)),
            )
            for self_key, cross_key, feed_forward_key in (
                jax.random.split(layer_key, 3) for layer_key in jax.random.split(key, config.decoder_layers)
            )
        )
        self.norm = make_final_norm(config)

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
        keys = split_keys(key, len(self.layers))
        x = run_layers(self.layers, x, mask, memory, memory_mask, keys=keys, trace=trace)
        return trace.record("hidden", x if self.norm is None else self.norm(x))


# ---------------------------------------------------------------------------------------------------------------------
# The whole model
# ---------------------------------------------------------------------------------------------------------------------


class DecoderState(eqx.Module):
    """What decoding carries from one token to the next. Every leaf has the batch as its first axis.

    length: slots of the caches that are taken, the same number in every row, since all rows step together.
    caches: self-attention's keys and values of each layer, one slot for each token.
    memory: cross-attention's keys and values of each layer, computed once.
    memory_valid: True on the source's real tokens.
    """

    length: Int[Array, " batch"]
    caches: tuple[KVCache, ...]
    memory: tuple[KVCache, ...]
    memory_valid: Valid


class Transformer(eqx.Module):
    """The encoder-decoder. `encode` and `decode` are its two verbs; `extend` is `decode` with a cache.

    Where a table is tied (section 3.4), the field that would repeat it is None: `target_embedding` None means the
    source's is used, `output` None means that the target embedding's table is the output projection. `position` None:
    none are added to the embeddings, self-attention knows them (a score bias).
    """

    source_embedding: Embedding
    target_embedding: Embedding | None
    position: Position | None
    encoder: Encoder
    decoder: Decoder
    output: Linear | None  # of a prepared model an `OutputHead`
    output_bias: Float[Array, " rows"] | None
    dropout: Dropout
    config: TransformerConfig = eqx.field(static=True)

    def __init__(self, config: TransformerConfig, *, key: PRNGKeyArray) -> None:
        source, target, position, encoder, decoder, output = jax.random.split(key, 6)
        source_rows, target_rows = config.rows(config.source_vocab), config.rows(config.target_vocab)
        shares_embedding = config.tie in ("three-way", "source-target")
        shares_output = config.tie in ("three-way", "target-output")
        scaled = config.scale_embeddings
        self.source_embedding = Embedding(source_rows, config.d_model, scaled=scaled, key=source)
        self.target_embedding = (
            None if shares_embedding else Embedding(target_rows, config.d_model, scaled=scaled, key=target)
        )
        self.position = make_added_position(config, position)
        self.encoder = Encoder(config, key=encoder)
        self.decoder = Decoder(config, key=decoder)
        self.output = None if shares_output else Linear(config.d_model, target_rows, bias=False, key=output)
        self.output_bias = make_output_bias(config, target_rows)
        self.dropout = Dropout(config.dropout)
        self.config = config

    @jax.named_scope("encoder")
    def encode(
        self,
        source: Ids,
        source_tokens: Tokens | Valid,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Source ids (batch, source) to memory (batch, source, d_model). With a `key`, dropout is on.

        `source_tokens` says which tokens are real or, of packed rows, which text each token is of; every text is then
        as it would be alone.
        """
        embedding_key, stack_key = split_keys(key, 2)
        tokens, seq = tokens_of(source_tokens), source.shape[1]
        at = tokens.positions(seq)
        trace = trace.scope("encoder")
        x = self._placed(self.source_embedding(source), at, seq, embedding_key, trace)
        return self.encoder(x, tokens.self_mask(seq), key=stack_key, trace=trace)

    @jax.named_scope("decoder")
    def decode(
        self,
        target: Ids,
        memory: Float[Array, "batch source d_model"],
        source_tokens: Tokens | Bool[Array, "batch source"],
        target_tokens: Tokens = NO_PACKING,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Target ids so far (batch, target), beginning of sentence first, to hidden states (batch, target, d_model).

        Position t sees target tokens 0 … t and predicts token t + 1. Padding stands at the end of a sentence, where
        the causal mask already hides it from every real position. `target_tokens` is asked of packed rows alone.
        """
        embedding_key, stack_key = split_keys(key, 2)
        seq, at = target.shape[1], target_tokens.positions(target.shape[1])
        trace = trace.scope("decoder")
        x = self._placed(self._embed_target(target, at), at, seq, embedding_key, trace)
        mask = target_tokens.self_mask(seq, is_causal=True)
        memory_mask = tokens_of(source_tokens).cross_mask(target_tokens)
        return self.decoder(x, mask, memory, memory_mask, key=stack_key, trace=trace)

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf, unless all are NaN."""
        if isinstance(self.output, OutputHead):
            return self.output(hidden)
        return logits_of(hidden, self.output_weight, self.config.target_vocab, self.output_bias)

    def __call__(
        self,
        source: Ids,
        source_tokens: Tokens | Valid,
        target: Int[Array, "batch target"],
        target_tokens: Tokens = NO_PACKING,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Logits:
        """Logits (batch, target, vocab) of every next target token."""
        encoder_key, decoder_key = split_keys(key, 2)
        memory = self.encode(source, source_tokens, key=encoder_key, trace=trace)
        hidden = self.decode(target, memory, source_tokens, target_tokens, key=decoder_key, trace=trace)
        return self.project(hidden)

    # --- with a cache --------------------------------------------------------------------------------------------

    def start(
        self, memory: Float[Array, "batch source d_model"], source_valid: Bool[Array, "batch source"], capacity: int
    ) -> DecoderState:
        """The state before the first target token, with room for `capacity` of them."""
        config, batch, layers = self.config, memory.shape[0], self.decoder.layers
        widths = config.key_width, config.value_width
        return DecoderState(
            length=jnp.zeros(batch, jnp.int32),
            caches=tuple(
                empty_cache(
                    batch,
                    config.heads,
                    capacity,
                    *widths,
                    one.cache_dtype or memory.dtype,
                    has_positions=one.needs_positions,
                )
                for one in (layer.self_attention for layer in layers)
            ),
            memory=tuple(layer.cross_attention.keys_values(memory) for layer in layers),
            memory_valid=source_valid,
        )

    def extend(
        self, ids: Int[Array, "batch target"], state: DecoderState, slots: CacheSlots | None = None
    ) -> tuple[Logits, DecoderState]:
        """Consume more target tokens: the logits (batch, target, vocab) after each, and the state after the last.

        Tokens follow each other unless `slots` says where each goes: so hypotheses of one sequence go on side by side.
        """
        room = capacity(state.caches)
        slots = next_slots(state.length[0], ids.shape[1], room) if slots is None else slots
        x = self._placed(self._embed_target(ids, slots.positions), slots.positions, room, None)
        memory_mask = [padding_mask(state.memory_valid)] * len(state.caches)
        layers, x = self.decoder.layers, slots.nan_unless_active(x)
        x, caches = extend_layers(layers, x, state.caches, slots, state.memory, memory_mask)
        x = x if self.decoder.norm is None else self.decoder.norm(x)
        after = DecoderState(state.length + ids.shape[1], caches, state.memory, state.memory_valid)
        return self.project(x), after

    def grow(self, state: DecoderState, slots: int) -> DecoderState:
        """The state with room for `slots` tokens more."""
        return eqx.tree_at(lambda s: s.caches, state, tuple(grow(cache, slots) for cache in state.caches))

    def turn(self, state: DecoderState, by: Int[Array, " batch"]) -> DecoderState:
        """The state as a ring, the tokens of each row `by` places further."""
        return eqx.tree_at(lambda s: s.caches, state, tuple(turned(cache, by) for cache in state.caches))

    # --- embeddings ----------------------------------------------------------------------------------------------

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be an embedding's table."""
        return self._target_embedding.table.T if self.output is None else self.output.weight

    @property
    def output_vocab(self) -> int:
        """How many rows of the output projection are tokens."""
        return self.config.target_vocab

    @property
    def _target_embedding(self) -> Embedding:
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    def _embed_target(self, ids: Ids, positions: Int[Array, "#batch #seq"]) -> Hidden:
        """Token embeddings of the target. A decoder that starts from zero adds none for its first token."""
        x = self._target_embedding(ids)
        return x if self.config.decoder_start == "token" else jnp.where((positions > 0)[:, :, None], x, 0.0)

    @jax.named_scope("embedding")
    def _placed(
        self,
        x: Hidden,
        positions: Int[Array, "#batch #seq"],
        bound: int,
        key: PRNGKeyArray | None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Token embeddings, plus positions where they are added, all below `bound`, with dropout on the sum (5.4)."""
        trace = trace.scope("embedding")
        trace.record("token", x)
        if self.position is not None:
            x = x + trace.record("position", self.position(positions, bound).astype(x.dtype))
        return trace.record("output", self.dropout(x, key))
