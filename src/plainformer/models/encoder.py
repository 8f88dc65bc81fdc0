"""The encoder alone (BERT, Devlin et al. 2019): every token of a text is read in the light of all the others.

ids ── embed ──> layers under a padding mask ──> hidden states ─┬─ project ──> logits of the hidden tokens
                                                                └─ mean, output ──> logits of the labels

Trained to say which tokens were hidden, it learns what a text is about; the same encoder then tells texts apart. There
is no token that stands for the whole text: the mean of the hidden states does (Reimers and Gurevych 2019).
"""

from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp

from plainformer.errors import InputError
from plainformer.models.config import EncoderConfig
from plainformer.models.parts import make_added_position, make_final_norm, make_stack
from plainformer.nn.block import EncoderLayer, split_keys
from plainformer.nn.dropout import Dropout
from plainformer.nn.embedding import Embedding, logits_of
from plainformer.nn.linear import Linear
from plainformer.nn.mask import padding_mask
from plainformer.nn.norm import Norm
from plainformer.nn.position import Position
from plainformer.nn.precision import multiply, upcast
from plainformer.nn.trace import NO_TRACE, Trace
from plainformer.shapes import Array, Float, Hidden, Ids, Logits, PRNGKeyArray, Valid


class TextEncoder(eqx.Module):
    """Embeddings and N identical layers. `position` None: the layers turn queries and keys instead (rotary)."""

    embedding: Embedding
    position: Position | None
    layers: tuple[EncoderLayer, ...]
    norm: Norm | None
    dropout: Dropout

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        embedding, position, layers = jax.random.split(key, 3)
        rows = config.rows(config.vocab)
        self.embedding = Embedding(rows, config.d_model, scaled=config.scale_embeddings, key=embedding)
        self.position = make_added_position(config, position)
        self.layers = make_stack(config, layers)
        self.norm = make_final_norm(config)
        self.dropout = Dropout(config.dropout)

    def encode(self, ids: Ids, valid: Valid, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Hidden:
        """Ids (batch, seq) to hidden states (batch, seq, d_model); every position sees all that are `valid`.

        Those of padding are there too, and mean nothing. With a `key`, dropout is on.

        Raises:
            InputError: the sequence is longer than a table of learned positions.
        """
        embedding_key, *layer_keys = split_keys(key, 1 + len(self.layers))
        x = self._embed(ids, embedding_key)
        mask = padding_mask(valid)
        for index, (layer, layer_key) in enumerate(zip(self.layers, layer_keys, strict=True)):
            with jax.named_scope(f"layer_{index}"):
                x = layer(x, mask, key=layer_key, trace=trace.scope(index))
        return x if self.norm is None else self.norm(x)

    def _embed(self, ids: Ids, key: PRNGKeyArray | None) -> Hidden:
        """Token embeddings, plus positions where they are added, with dropout on the sum."""
        x = self.embedding(ids)
        if self.position is not None:
            x = x + self.position(jnp.arange(ids.shape[1])[None, :]).astype(x.dtype)
        return self.dropout(x, key)


class MaskedLanguageModel(eqx.Module):
    """An encoder that says which tokens were hidden. `output` None: the embedding's table is the output projection."""

    encoder: TextEncoder
    output: Linear | None
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        """Raises InputError if the configuration has labels."""
        if config.labels:
            raise InputError("a masked language model predicts tokens, and its configuration has labels")
        encoder, output = jax.random.split(key)
        self.encoder = TextEncoder(config, key=encoder)
        rows = config.rows(config.vocab)
        self.output = None if config.tie else Linear(config.d_model, rows, bias=False, key=output)
        self.config = config

    def project(self, hidden: Float[Array, "*axes d_model"]) -> Float[Array, "*axes vocab"]:
        """Hidden states to float32 logits; those of padding rows, which are no tokens, are -inf."""
        return logits_of(hidden, self.output_weight, self.config.vocab)

    def __call__(self, ids: Ids, valid: Valid, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE) -> Logits:
        """Logits (batch, seq, vocab) of the token at every place. Training and use compute those of a few places."""
        return self.project(self.encoder.encode(ids, valid, key=key, trace=trace))

    @property
    def output_weight(self) -> Float[Array, "d_model vocab"]:
        """The output projection, which may be the embedding's table."""
        return self.encoder.embedding.table.T if self.output is None else self.output.weight


class Classifier(eqx.Module):
    """An encoder that tells texts apart: the mean of its hidden states, projected to one logit for each label."""

    encoder: TextEncoder
    dropout: Dropout
    output: Linear
    config: EncoderConfig = eqx.field(static=True)

    def __init__(self, config: EncoderConfig, *, key: PRNGKeyArray) -> None:
        """Raises InputError if the configuration has no labels."""
        if not config.labels:
            raise InputError("a classifier needs labels", where="model.labels", fix="name them")
        encoder, output = jax.random.split(key)
        self.encoder = TextEncoder(config, key=encoder)
        self.dropout = Dropout(config.dropout)
        self.output = Linear(config.d_model, len(config.labels), key=output)
        self.config = config

    @classmethod
    def from_masked(
        cls, model: MaskedLanguageModel, labels: Sequence[str], *, dropout: float | None = None, key: PRNGKeyArray
    ) -> "Classifier":
        """A classifier with the encoder of `model` and an output of its own: what fine-tuning starts from.

        Args:
            labels: the classes, in the order of the outputs.
            dropout: another rate than the model had.

        Raises:
            InputError: the labels will not do.
        """
        config = model.config.with_labels(labels, **({} if dropout is None else {"dropout": dropout}))
        skeleton = eqx.filter_eval_shape(cls, config, key=key)  # so that no encoder is drawn only to be thrown away
        encoder = jax.tree.unflatten(jax.tree.structure(skeleton.encoder), jax.tree.leaves(model.encoder))
        output = Linear(config.d_model, len(config.labels), key=key)
        return eqx.tree_at(lambda whole: (whole.encoder, whole.output), skeleton, (encoder, output))

    def __call__(
        self, ids: Ids, valid: Valid, *, key: PRNGKeyArray | None = None, trace: Trace = NO_TRACE
    ) -> Float[Array, "batch labels"]:
        """Float32 logits (batch, labels), in the order of `config.labels`."""
        encoder_key, output_key = split_keys(key, 2)
        vector = mean_pool(self.encoder.encode(ids, valid, key=encoder_key, trace=trace), valid)
        # In float32 to the end, since this is little work.
        logits = multiply(self.dropout(vector, output_key), upcast(self.output.weight))
        return logits if self.output.bias is None else logits + upcast(self.output.bias)[None, :]


def mean_pool(hidden: Hidden, valid: Valid) -> Float[Array, "batch d_model"]:
    """The vector of each text, in float32: the mean of its hidden states over real positions; of no position, zero."""
    kept = jnp.where(valid[:, :, None], upcast(hidden), 0.0)
    count = jnp.maximum(valid.sum(axis=1), 1).astype(kept.dtype)
    return kept.sum(axis=1) / count[:, None]
