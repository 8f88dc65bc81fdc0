"""The Transformer of "Attention Is All You Need" (Vaswani et al. 2017), in the paper's order.

source ids ── embed ──> encoder ──> memory ─┐
target ids ── embed ──────────────> decoder ┴──> hidden states ── project ──> logits
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.models.config import TransformerConfig
from plainformer.models.parts import (
    make_attention,
    make_encoder_layers,
    make_feed_forward,
    make_final_norm,
    make_output_bias,
    make_residual,
)
from plainformer.nn.block import DecoderLayer, EncoderLayer, split_keys
from plainformer.nn.cache import KeysValues, Placement, empty_cache, in_order, places_of, widen
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, logits_of
from plainformer.nn.laid_out import ForDecoding, Precision, lay_out
from plainformer.nn.linear import Linear
from plainformer.nn.mask import causal_mask, padding_mask, positions_within
from plainformer.nn.norm import Norm
from plainformer.nn.position import Learned, Position, Sinusoidal
from plainformer.nn.stack import run_layers
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import (
    Array,
    Bool,
    CausalWithin,
    Float,
    Hidden,
    Ids,
    Int,
    Logits,
    Mask,
    MemoryMask,
    Packed,
    PRNGKeyArray,
    Valid,
    Within,
)


def make_position(config: TransformerConfig, key: PRNGKeyArray) -> Position:
    if config.position == "learned":
        return Learned(config.max_len, config.d_model, key=key)
    return Sinusoidal(config.d_model, config.sinusoidal_order)


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
        self, x: Hidden, mask: Mask | None, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE
    ) -> Hidden:
        x = run_layers(self.layers, x, mask, keys=split_keys(key, len(self.layers)), trace=trace)
        return x if self.norm is None else self.norm(x)


class Decoder(eqx.Module):
    """N identical layers, each of masked self-attention, attention over the memory, and feed-forward."""

    layers: tuple[DecoderLayer, ...]
    norm: Norm | None

    def __init__(self, config: TransformerConfig, *, key: PRNGKeyArray) -> None:
        self.layers = tuple(
            DecoderLayer(
                self_attention=make_attention(config, self_key),
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
        mask: Mask | None,
        memory: Float[Array, "batch source d_model"],
        memory_mask: MemoryMask | None,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        keys = split_keys(key, len(self.layers))
        x = run_layers(self.layers, x, mask, memory, memory_mask, keys=keys, trace=trace)
        return x if self.norm is None else self.norm(x)


# ---------------------------------------------------------------------------------------------------------------------
# The whole model
# ---------------------------------------------------------------------------------------------------------------------


class DecoderState(eqx.Module):
    """What decoding carries from one token to the next. Every leaf has the batch as its first axis.

    written: places of the caches that are taken, the same number in every row, since all rows step together.
    caches: self-attention's keys and values of each layer, one place for each token.
    memory: cross-attention's keys and values of each layer, computed once.
    memory_valid: True on the source's real tokens.
    """

    written: Int[Array, " batch"]
    caches: tuple[KeysValues, ...]
    memory: tuple[KeysValues, ...]
    memory_valid: Valid


class Transformer(eqx.Module):
    """The encoder-decoder. `encode` and `decode` are its two verbs; `extend` is `decode` with a cache.

    Where a table is tied (section 3.4), the field that would repeat it is None: `target_embedding` None means the
    source's is used, `output` None means that the target embedding's table is the output projection.
    """

    source_embedding: Embedding
    target_embedding: Embedding | None
    position: Position
    encoder: Encoder
    decoder: Decoder
    output: Linear | ForDecoding | None
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
        self.position = make_position(config, position)
        self.encoder = Encoder(config, key=encoder)
        self.decoder = Decoder(config, key=decoder)
        self.output = None if shares_output else Linear(config.d_model, target_rows, bias=False, key=output)
        self.output_bias = make_output_bias(config, target_rows)
        self.dropout = Dropout(config.dropout)
        self.config = config

    def encode(
        self,
        source: Ids,
        source_valid: Valid,
        *,
        packed: Packed | None = None,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Source ids (batch, source) to memory (batch, source, d_model). With a `key`, dropout is on.

        Where rows are `packed`, every text in them is as it would be alone, and `packed` says which tokens are real.
        """
        embedding_key, stack_key = split_keys(key, 2)
        at = _counted(source) if packed is None else positions_within(packed.source)
        x = self._placed(self.source_embedding(source), at, source.shape[1], embedding_key)
        mask = padding_mask(source_valid) if packed is None else Within(packed.source, packed.source)
        return self.encoder(x, mask, key=stack_key, trace=trace.scope("encoder"))

    def decode(
        self,
        target: Ids,
        memory: Float[Array, "batch source d_model"],
        source_valid: Bool[Array, "batch source"],
        *,
        packed: Packed | None = None,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Target ids so far (batch, target), beginning of sentence first, to hidden states (batch, target, d_model).

        Position t sees target tokens 0 … t and predicts token t + 1. Padding stands at the end of a sentence, where
        the causal mask already hides it from every real position. Where rows are `packed`, this holds for each text.
        """
        embedding_key, stack_key = split_keys(key, 2)
        at = _counted(target) if packed is None else positions_within(packed.target)
        x = self._placed(self._embed_target(target, at), at, target.shape[1], embedding_key)
        mask, memory_mask = causal_mask(target.shape[1]), padding_mask(source_valid)
        if packed is not None:
            mask, memory_mask = CausalWithin(packed.target), Within(packed.target, packed.source)
        return self.decoder(x, mask, memory, memory_mask, key=stack_key, trace=trace.scope("decoder"))

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf, unless all are NaN."""
        if isinstance(self.output, ForDecoding):
            return self.output(hidden)  # its bias has `output_bias` in it, and says what is no token
        return logits_of(hidden, self.output_weight, self.config.target_vocab, self.output_bias)

    def __call__(
        self,
        source: Ids,
        source_valid: Valid,
        target: Int[Array, "batch target"],
        *,
        packed: Packed | None = None,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Logits:
        """Logits (batch, target, vocab) of every next target token."""
        encoder_key, decoder_key = split_keys(key, 2)
        memory = self.encode(source, source_valid, packed=packed, key=encoder_key, trace=trace)
        return self.project(self.decode(target, memory, source_valid, packed=packed, key=decoder_key, trace=trace))

    # --- with a cache --------------------------------------------------------------------------------------------

    def start(
        self, memory: Float[Array, "batch source d_model"], source_valid: Bool[Array, "batch source"], places: int
    ) -> DecoderState:
        """The state before the first target token, with room for `places` of them."""
        config, batch, layers = self.config, memory.shape[0], self.decoder.layers
        widths = config.key_width, config.value_width
        return DecoderState(
            written=jnp.zeros(batch, jnp.int32),
            caches=tuple(
                empty_cache(batch, config.heads, places, *widths, layer.self_attention.kept(memory.dtype))
                for layer in layers
            ),
            memory=tuple(layer.cross_attention.keys_values(memory) for layer in layers),
            memory_valid=source_valid,
        )

    def extend(
        self, ids: Int[Array, "batch target"], state: DecoderState, at: Placement | None = None
    ) -> tuple[Logits, DecoderState]:
        """Consume more target tokens: the logits (batch, target, vocab) after each, and the state after the last.

        Tokens follow each other unless `at` says where each goes: so hypotheses of one sequence go on side by side.
        """
        places = places_of(state.caches)
        at = in_order(state.written[0], ids.shape[1], places) if at is None else at
        x = at.nan_unless_live(self._placed(self._embed_target(ids, at.positions), at.positions, places, None))
        memory_mask = padding_mask(state.memory_valid)
        caches: list[KeysValues] = []
        for layer, cache, memory in zip(self.decoder.layers, state.caches, state.memory, strict=True):
            x, cache = layer.extend(x, cache, at, memory, memory_mask)
            caches.append(cache)
        x = x if self.decoder.norm is None else self.decoder.norm(x)
        after = DecoderState(state.written + ids.shape[1], tuple(caches), state.memory, state.memory_valid)
        return self.project(x), after

    def widen(self, state: DecoderState, places: int) -> DecoderState:
        """The state with room for `places` tokens more."""
        return eqx.tree_at(lambda s: s.caches, state, tuple(widen(cache, places) for cache in state.caches))

    # --- embeddings ----------------------------------------------------------------------------------------------

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be an embedding's table."""
        return self._target_embedding.table.T if self.output is None else self.output.weight

    def for_decoding(self, precision: Precision) -> "Transformer":
        """The same model with its weights laid out, and rounded, for decoding; it can no longer be trained."""
        return lay_out(self, precision, self.output_bias, self.config.target_vocab)

    @property
    def _target_embedding(self) -> Embedding:
        return self.source_embedding if self.target_embedding is None else self.target_embedding

    def _embed_target(self, ids: Ids, positions: Int[Array, "#batch #seq"]) -> Hidden:
        """Token embeddings of the target. A decoder that starts from zero adds none for its first token."""
        x = self._target_embedding(ids)
        return x if self.config.decoder_start == "token" else jnp.where((positions > 0)[:, :, None], x, 0.0)

    def _placed(self, x: Hidden, positions: Int[Array, "#batch #seq"], below: int, key: PRNGKeyArray | None) -> Hidden:
        """Token embeddings plus positions, all `below` a number, with dropout on the sum (section 5.4)."""
        return self.dropout(x + self.position(positions, below).astype(x.dtype), key)


def _counted(ids: Ids) -> Int[Array, "#batch #seq"]:
    """The positions of tokens that follow each other from the first on."""
    return jnp.arange(ids.shape[1])[None, :]
