"""The decoder alone: a language model, which predicts every token of a text from those before it.

ids ── embed ──> layers under a causal mask ──> hidden states ── project ──> logits of the next tokens

It is the paper's decoder without a memory to look at (Radford et al. 2018), so that its layer is the encoder's.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations.masks import causal_mask
from plainformer.models.build import make_added_position, make_encoder_layers, make_final_norm
from plainformer.models.config import LanguageModelConfig
from plainformer.nn.cache import CacheSlots, KVCache, capacity, empty_cache, grow, next_slots, turned
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, OutputHead, logits_of
from plainformer.nn.layer import EncoderLayer, split_keys
from plainformer.nn.linear import Linear
from plainformer.nn.norm import Norm
from plainformer.nn.position import Position
from plainformer.nn.stack import extend_layers, run_layers
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Ids, Int, Logits, PRNGKeyArray


class LanguageModelState(eqx.Module):
    """What generation carries from one token to the next. Every leaf has the batch as its first axis.

    length: slots of the caches that are taken, the same number in every row.
    caches: keys and values of each layer, one slot for each token.
    """

    length: Int[Array, " batch"]
    caches: tuple[KVCache, ...]


class LanguageModel(eqx.Module):
    """A causal decoder. `extend` is its forward with a cache, for a whole prompt or one more token.

    `position` None: none are added to the embeddings, attention knows them (rotary, a score bias). `output` None: the
    embedding's table is the output projection.
    """

    embedding: Embedding
    position: Position | None
    layers: tuple[EncoderLayer, ...]
    norm: Norm | None
    output: Linear | None  # of a prepared model an `OutputHead`
    dropout: Dropout
    config: LanguageModelConfig = eqx.field(static=True)

    def __init__(self, config: LanguageModelConfig, *, key: PRNGKeyArray) -> None:
        embedding, position, layers, output = jax.random.split(key, 4)
        rows, width = config.rows(config.vocab), config.d_model
        self.embedding = Embedding(rows, width, scaled=config.scale_embeddings, key=embedding)
        self.position = make_added_position(config, position)
        self.layers = make_encoder_layers(config, config.layers, layers)
        self.norm = make_final_norm(config)
        self.output = None if config.tie else Linear(width, rows, bias=False, key=output)
        self.dropout = Dropout(config.dropout)
        self.config = config

    def decode(self, ids: Ids, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Hidden:
        """Ids (batch, seq) to hidden states (batch, seq, d_model); position t sees ids 0 … t. With a `key`, dropout."""
        embedding_key, *layer_keys = split_keys(key, 1 + len(self.layers))
        x = self._embed(ids, jnp.arange(ids.shape[1])[None, :], ids.shape[1], embedding_key, trace)
        mask = causal_mask(ids.shape[1])
        x = run_layers(self.layers, x, mask, keys=layer_keys, trace=trace)
        return trace.record("hidden", x if self.norm is None else self.norm(x))

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf, unless all are NaN."""
        if isinstance(self.output, OutputHead):
            return self.output(hidden)
        return logits_of(hidden, self.output_weight, self.config.vocab)

    def __call__(self, ids: Ids, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Logits:
        """Logits (batch, seq, vocab) of every next token."""
        return self.project(self.decode(ids, key=key, trace=trace))

    # --- with a cache --------------------------------------------------------------------------------------------

    def start(self, batch: int, capacity: int) -> LanguageModelState:
        """The state before the first token, with room for `capacity` of them."""
        config, dtype = self.config, self.embedding.table.dtype
        heads, widths = config.kv_heads or config.heads, (config.key_width, config.value_width)
        return LanguageModelState(
            length=jnp.zeros(batch, jnp.int32),
            caches=tuple(
                empty_cache(
                    batch, heads, capacity, *widths, one.cache_dtype or dtype, has_positions=one.needs_positions
                )
                for one in (layer.self_attention for layer in self.layers)
            ),
        )

    def extend(
        self, ids: Ids, state: LanguageModelState, slots: CacheSlots | None = None
    ) -> tuple[Logits, LanguageModelState]:
        """Read more tokens: the logits (batch, seq, vocab) after each of them, and the state after the last.

        No more tokens in all than there is room for; with learned positions, than the context has.
        Tokens follow each other unless `slots` says where each goes: so hypotheses of one sequence go on side by side.
        """
        room = capacity(state.caches)
        slots = next_slots(state.length[0], ids.shape[1], room) if slots is None else slots
        x = slots.nan_unless_active(self._embed(ids, slots.positions, room, None))
        x, caches = extend_layers(self.layers, x, state.caches, slots)
        x = x if self.norm is None else self.norm(x)
        return self.project(x), LanguageModelState(state.length + ids.shape[1], caches)

    def grow(self, state: LanguageModelState, slots: int) -> LanguageModelState:
        """The state with room for `slots` tokens more."""
        return LanguageModelState(state.length, tuple(grow(cache, slots) for cache in state.caches))

    def turn(self, state: LanguageModelState, by: Int[Array, " batch"]) -> LanguageModelState:
        """The state as a ring, the tokens of each row `by` places further."""
        return eqx.tree_at(lambda s: s.caches, state, tuple(turned(cache, by) for cache in state.caches))

    # --- embeddings ----------------------------------------------------------------------------------------------

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be the embedding's table."""
        return self.embedding.table.T if self.output is None else self.output.weight

    @property
    def output_vocab(self) -> int:
        """How many rows of the output projection are tokens."""
        return self.config.vocab

    @jax.named_scope("embedding")
    def _embed(
        self,
        ids: Ids,
        positions: Int[Array, "#batch #seq"],
        bound: int,
        key: PRNGKeyArray | None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Token embeddings, plus positions where they are added, all below `bound`, with dropout on the sum."""
        trace = trace.scope("embedding")
        x = trace.record("token", self.embedding(ids))
        if self.position is not None:
            x = x + trace.record("position", self.position(positions, bound).astype(x.dtype))
        return trace.record("output", self.dropout(x, key))
