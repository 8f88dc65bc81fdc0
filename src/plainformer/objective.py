"""HIDDEN STATES -> LOSS: what each kind of model is trained for (cross-entropy, section 5.4)."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.equations.loss import LossSums, cross_entropy
from plainformer.equations.masks import Tokens
from plainformer.kernels.linear_cross_entropy import linear_cross_entropy
from plainformer.shapes import Array, Float, Hidden, Ids, PRNGKeyArray, Valid


@jax.named_scope("loss")
def _over_tokens(
    hidden: Hidden,
    model: Any,
    wanted: Ids,
    valid: Valid,
    smoothing: float,
    vocab: int,
    bias: Float[Array, " rows"] | None = None,
    *,
    has_padding: bool = False,
) -> LossSums:
    """The loss of all positions of a batch, as one axis of tokens."""
    tokens, targets, real = hidden.reshape(-1, hidden.shape[-1]), wanted.reshape(-1), valid.reshape(-1)
    options: Any = {"smoothing": smoothing, "vocab": vocab, "bias": bias, "has_padding": has_padding}
    return linear_cross_entropy(tokens, model.output_weight, targets, real, **options)


class TranslationObjective(NamedTuple):
    """The loss of an encoder-decoder on a batch of pairs: every target token predicted from those before it."""

    smoothing: float

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Transformer`, `batch` a `data.loader.Batch`; without a key, dropout is off."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        source, target = Tokens(batch.source_valid, batch.source_text), Tokens(None, batch.target_text)
        memory = model.encode(batch.source, source, key=encoder_key)
        hidden = model.decode(batch.target_in, memory, source, target, key=decoder_key)
        answer = batch.target_out, batch.target_valid, self.smoothing, model.config.target_vocab
        return _over_tokens(hidden, model, *answer, model.output_bias, has_padding=batch.source_text is None)


class LanguageObjective(NamedTuple):
    """The loss of a language model on a batch of blocks: every token predicted from those before it."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.LanguageModel`, `batch` a `data.block.Blocks`; without a key, dropout is off."""
        hidden = model.decode(batch.ids, key=key)
        return _over_tokens(hidden, model, batch.targets, batch.valid, self.smoothing, model.config.vocab)


class MaskedObjective(NamedTuple):
    """The loss of a masked language model on a batch of texts: the hidden tokens said from all that is seen."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.MaskedLanguageModel`, `batch` a `data.masking.MaskedBatch`; dropout with a key."""
        hidden = model.encoder.encode(batch.ids, batch.valid, key=key)
        # Logits are computed at the places alone, a seventh of them all.
        chosen = jnp.take_along_axis(hidden, batch.masked_positions[:, :, None], axis=1)
        answer = batch.targets, batch.loss_mask, self.smoothing, model.config.vocab
        return _over_tokens(model.transformed(chosen), model, *answer, model.output_bias, has_padding=True)


class ClassificationObjective(NamedTuple):
    """The loss of a classifier on a batch of labelled texts. Where others count tokens, it counts texts."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Classifier`, `batch` a `data.labelled_loader.LabelledBatch`; dropout with a key."""
        logits = model(batch.ids, batch.valid, key=key)
        with jax.named_scope("loss"):
            return cross_entropy(logits, batch.labels, batch.loss_mask, smoothing=self.smoothing)
