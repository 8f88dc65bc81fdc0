"""The decoder alone: a language model, which predicts every token of a text from those before it.

ids ── embed ──> layers under a causal mask ──> hidden states ── project ──> logits of the next tokens

It is the paper's decoder without a memory to look at (Radford et al. 2018), so that its layer is the encoder's.
"""

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.models.config import LanguageModelConfig
from plainformer.models.parts import make_added_position, make_final_norm, make_stack
from plainformer.nn.block import EncoderLayer, split_keys
from plainformer.nn.cache import KeysValues, empty_cache
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, logits_of
from plainformer.nn.linear import Linear
from plainformer.nn.mask import cache_mask, causal_mask
from plainformer.nn.norm import Norm
from plainformer.nn.position import Position
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Ids, Int, Logits, PRNGKeyArray


class LanguageModelState(eqx.Module):
    """What generation carries from one token to the next. Every leaf has the batch as its first axis.

    position: tokens read so far, the same number in every row.
    caches: keys and values of each layer, with room for all that will be read.
    """

    position: Int[Array, " batch"]
    caches: tuple[KeysValues, ...]


class LanguageModel(eqx.Module):
    """A causal decoder. `extend` is its forward with a cache, for a whole prompt; `step` that for one more token.

    `position` None: the layers turn queries and keys instead (rotary). `output` None: the embedding's table is the
    output projection.
    """

    embedding: Embedding
    position: Position | None
    layers: tuple[EncoderLayer, ...]
    norm: Norm | None
    output: Linear | None
    dropout: Dropout
    config: LanguageModelConfig = eqx.field(static=True)

    def __init__(self, config: LanguageModelConfig, *, key: PRNGKeyArray) -> None:
        embedding, position, layers, output = jax.random.split(key, 4)
        rows, width = config.rows(config.vocab), config.d_model
        self.embedding = Embedding(rows, width, scaled=config.scale_embeddings, key=embedding)
        self.position = make_added_position(config, position)
        self.layers = make_stack(config, layers)
        self.norm = make_final_norm(config)
        self.output = None if config.tie else Linear(width, rows, bias=False, key=output)
        self.dropout = Dropout(config.dropout)
        self.config = config

    def decode(self, ids: Ids, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Hidden:
        """Ids (batch, seq) to hidden states (batch, seq, d_model); position t sees ids 0 … t. With a `key`, dropout."""
        embedding_key, *layer_keys = split_keys(key, 1 + len(self.layers))
        x = self._embed(ids, jnp.int32(0), embedding_key)
        mask = causal_mask(ids.shape[1])
        for index, (layer, layer_key) in enumerate(zip(self.layers, layer_keys, strict=True)):
            with jax.named_scope(f"layer_{index}"):
                x = layer(x, mask, key=layer_key, trace=trace.scope(index))
        return x if self.norm is None else self.norm(x)

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf."""
        return logits_of(hidden, self.output_weight, self.config.vocab)

    def __call__(self, ids: Ids, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Logits:
        """Logits (batch, seq, vocab) of every next token."""
        return self.project(self.decode(ids, key=key, trace=trace))

    # --- with a cache --------------------------------------------------------------------------------------------

    def start(self, batch: int, max_len: int) -> LanguageModelState:
        """The state before the first token, with room for `max_len` of them."""
        config, dtype = self.config, self.embedding.table.dtype
        heads = config.kv_heads or config.heads
        return LanguageModelState(
            position=jnp.zeros(batch, jnp.int32),
            caches=tuple(
                empty_cache(batch, heads, max_len, config.key_width, config.value_width, dtype) for _ in self.layers
            ),
        )

    def extend(self, ids: Ids, state: LanguageModelState) -> tuple[Logits, LanguageModelState]:
        """Read more tokens: the logits (batch, seq, vocab) after each of them, and the state after the last.

        No more tokens in all than `start` made room for; with learned positions, than the context has.
        """
        position = state.position[0]
        x = self._embed(ids, position, None)
        caches: list[KeysValues] = []
        for layer, cache in zip(self.layers, state.caches, strict=True):
            mask = cache_mask(position, cache.keys.shape[2], ids.shape[1])
            x, cache = layer.extend(x, cache, position, mask)
            caches.append(cache)
        x = x if self.norm is None else self.norm(x)
        return self.project(x), LanguageModelState(state.position + ids.shape[1], tuple(caches))

    def step(
        self, ids: Int[Array, " batch"], state: LanguageModelState
    ) -> tuple[Float[Array, "batch vocab"], LanguageModelState]:
        """Read one token per row: the logits (batch, vocab) of the next one, and the state after it."""
        logits, state = self.extend(ids[:, None], state)
        return logits[:, 0], state

    # --- embeddings ----------------------------------------------------------------------------------------------

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be the embedding's table."""
        return self.embedding.table.T if self.output is None else self.output.weight

    def _embed(self, ids: Ids, start: Int[Array, ""], key: PRNGKeyArray | None) -> Hidden:
        """Token embeddings, plus positions where they are added, with dropout on the sum."""
        x = self.embedding(ids)
        if self.position is not None:
            x = x + self.position(start + jnp.arange(ids.shape[1])).astype(x.dtype)[None]
        return self.dropout(x, key)
