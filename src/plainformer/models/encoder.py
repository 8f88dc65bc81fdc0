"""The encoder alone (BERT, Devlin et al. 2019): every token of a text is read in the light of all the others.

ids ── embed ──> layers under a padding mask ──> hidden states ─┬─ project ──> logits of the hidden tokens
                                                                └─ pool, output ──> logits of the labels

Trained to say which tokens were hidden, it learns what a text is about; the same encoder then tells texts apart. What
stands for the whole text is the mean of the hidden states (Reimers and Gurevych 2019) or, in BERT's own checkpoints,
the first token.
"""

from collections.abc import Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.equations.masks import padding_mask
from plainformer.equations.precision import multiply, upcast
from plainformer.errors import InputError
from plainformer.models.build import (
    make_added_position,
    make_encoder_layers,
    make_final_norm,
    make_norm,
    make_output_bias,
    make_pooling,
    make_transform,
)
from plainformer.models.config import EncoderConfig
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, logits_of
from plainformer.nn.feed_forward import Transform
from plainformer.nn.layer import EncoderLayer, split_keys
from plainformer.nn.linear import Linear
from plainformer.nn.norm import Norm
from plainformer.nn.pooling import Pooling
from plainformer.nn.position import Position
from plainformer.nn.stack import run_layers
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Ids, Logits, PRNGKeyArray, Valid


class TextEncoder(eqx.Module):
    """Embeddings and N identical layers. `position` None: attention knows them (rotary, a score bias).

    `token_type` and `embedding_norm`, where there are any, are what BERT adds to the embeddings and puts after their
    sum.
    """

    embedding: Embedding
    position: Position | None
    token_type: Embedding | None
    embedding_norm: Norm | None
    layers: tuple[EncoderLayer, ...]
    norm: Norm | None
    dropout: Dropout

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        embedding, position, layers = jax.random.split(key, 3)
        rows = config.rows(config.vocab)
        self.embedding = Embedding(rows, config.d_model, scaled=config.scale_embeddings, key=embedding)
        self.position = make_added_position(config, position)
        types, types_key = config.token_types, jax.random.fold_in(key, 1)
        self.token_type = Embedding(types, config.d_model, scaled=False, key=types_key) if types else None
        self.embedding_norm = make_norm(config) if config.embedding_norm else None
        self.layers = make_encoder_layers(config, config.layers, layers)
        self.norm = make_final_norm(config)
        self.dropout = Dropout(config.dropout)

    def encode(
        self,
        ids: Ids,
        valid: Valid,
        types: Ids | None = None,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Hidden:
        """Ids (batch, seq) to hidden states (batch, seq, d_model); every position sees all that are `valid`.

        Those of padding are there too, and mean nothing. `types` says which sentence of a pair each token is in, where
        the encoder has a table of them; without, all are in the first. With a `key`, dropout is on.

        Raises:
            InputError: the sequence is longer than a table of learned positions.
        """
        embedding_key, *layer_keys = split_keys(key, 1 + len(self.layers))
        x = self._embed(ids, types, embedding_key, trace)
        mask = padding_mask(valid)
        x = run_layers(self.layers, x, mask, keys=layer_keys, trace=trace)
        return trace.record("hidden", x if self.norm is None else self.norm(x))

    @jax.named_scope("embedding")
    def _embed(self, ids: Ids, types: Ids | None, key: PRNGKeyArray | None, trace: Trace = NO_TRACE) -> Hidden:
        """Token embeddings, plus types and positions where they are added, normed or not, with dropout on the sum."""
        trace = trace.scope("embedding")
        x = trace.record("token", self.embedding(ids))
        if self.token_type is not None:
            x = x + trace.record("type", self.token_type(jnp.zeros_like(ids) if types is None else types))
        if self.position is not None:
            at = self.position(jnp.arange(ids.shape[1])[None, :], ids.shape[1])
            x = x + trace.record("position", at.astype(x.dtype))
        x = x if self.embedding_norm is None else self.embedding_norm(x)
        return trace.record("output", self.dropout(x, key))


class MaskedLanguageModel(eqx.Module):
    """An encoder that says which tokens were hidden. `output` None: the embedding's table is the output projection.

    `transform`, where there is one, stands between the hidden states and the projection.
    """

    encoder: TextEncoder
    transform: Transform | None
    output: Linear | None
    output_bias: Float[Array, " rows"] | None
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        """Raises InputError if the configuration has labels."""
        if config.labels:
            raise InputError("a masked language model predicts tokens, and its configuration has labels")
        encoder, output = jax.random.split(key)
        self.encoder = TextEncoder(config, key=encoder)
        rows = config.rows(config.vocab)
        self.transform = make_transform(config, jax.random.fold_in(key, 1))
        self.output = None if config.tie else Linear(config.d_model, rows, bias=False, key=output)
        self.output_bias = make_output_bias(config, rows)
        self.config = config

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf."""
        return logits_of(self.transformed(hidden), self.output_weight, self.config.vocab, self.output_bias)

    def transformed(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes d_model"]:
        """Hidden states as the output projection takes them."""
        return hidden if self.transform is None else self.transform(hidden)

    def __call__(
        self,
        ids: Ids,
        valid: Valid,
        types: Ids | None = None,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Logits:
        """Logits (batch, seq, vocab) of the token at every place. Training and use compute those of a few places."""
        return self.project(self.encoder.encode(ids, valid, types, key=key, trace=trace))

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be the embedding's table."""
        return self.encoder.embedding.table.T if self.output is None else self.output.weight


class Classifier(eqx.Module):
    """An encoder that tells texts apart: one vector of its hidden states, projected to one logit for each label."""

    encoder: TextEncoder
    pooling: Pooling
    dropout: Dropout
    output: Linear
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        """Raises InputError if the configuration has no labels."""
        if not config.labels:
            raise InputError("a classifier needs labels", where="model.labels", fix="name them")
        encoder, output = jax.random.split(key)
        self.encoder = TextEncoder(config, key=encoder)
        self.pooling = make_pooling(config, jax.random.fold_in(key, 1))
        self.dropout = Dropout(config.dropout)
        self.output = Linear(config.d_model, len(config.labels), key=output)
        self.config = config

    @classmethod
    def from_masked(
        cls, model: MaskedLanguageModel, labels: Sequence[str], *, key: PRNGKeyArray, **changes: Any
    ) -> "Classifier":
        """A classifier with the encoder of `model`, and pooling and output of its own: what fine-tuning starts from.

        Args:
            labels: the classes, in the order of the outputs.
            changes: other settings than the model had, such as `dropout` or `pooling`.

        Raises:
            InputError: the labels will not do.
        """
        config = model.config.with_labels(labels, **changes)
        skeleton = eqx.filter_eval_shape(cls, config, key=key)  # so that no encoder is drawn only to be thrown away
        encoder = jax.tree.unflatten(jax.tree.structure(skeleton.encoder), jax.tree.leaves(model.encoder))
        own = make_pooling(config, jax.random.fold_in(key, 1)), Linear(config.d_model, len(config.labels), key=key)
        return eqx.tree_at(lambda whole: (whole.encoder, whole.pooling, whole.output), skeleton, (encoder, *own))

    def __call__(
        self,
        ids: Ids,
        valid: Valid,
        types: Ids | None = None,
        *,
        key: PRNGKeyArray | None = None,
        trace: Trace = NO_TRACE,
    ) -> Float[Array, "batch labels"]:
        """Float32 logits (batch, labels), in the order of `config.labels`."""
        encoder_key, output_key = split_keys(key, 2)
        hidden = self.encoder.encode(ids, valid, types, key=encoder_key, trace=trace)
        return self.of_hidden(hidden, valid, key=output_key)

    def of_hidden(
        self, hidden: Hidden, valid: Valid, *, key: PRNGKeyArray | None = None
    ) -> Float[Array, "batch labels"]:
        """The logits of a text by its hidden states."""
        # In float32 to the end, since this is little work.
        logits = multiply(self.dropout(self.pooling(hidden, valid), key), upcast(self.output.weight))
        return logits if self.output.bias is None else logits + upcast(self.output.bias)[None, :]
