"""Texts in, labels out: a classifier with its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.texts import encode_texts
from plainformer.decode.vectors import MEAN, OnCut, VectorSettings, by_length, embed_texts
from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.models.encoder import Classifier
from plainformer.programs.program import program
from plainformer.shapes import Array, Float, Ids, Valid
from plainformer.text import Tokenizer


@dataclass(frozen=True)
class Label:
    """What a text was taken for.

    Attributes:
        label: the most probable one; of equally probable ones, the first.
        probability: its own.
        probabilities: of every label, in the order of the model's outputs; they sum to 1.
    """

    label: str
    probability: float
    probabilities: dict[str, float]


@dataclass(frozen=True)
class Labeller:
    """A classifier ready for use: `Labeller(model, tokenizer).classify(["What a film!"])`."""

    model: Classifier
    tokenizer: Tokenizer
    vectors: VectorSettings = MEAN

    @classmethod
    def of(cls, content: ModelFolder) -> "Labeller":
        """Raises InputError where the folder holds another kind of model."""
        if not isinstance(content.model, Classifier):
            raise InputError("this is not a classifier")
        return cls(content.model, content.source_tokenizer, VectorSettings.of(content.generation))

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in the order of the model's outputs."""
        return self.model.config.labels

    def classify(
        self, texts: Sequence[str], *, where: Sequence[str] | None = None, allow_unknown: bool = False
    ) -> list[Label]:
        """The label of every text, in order.

        Args:
            where: the place of each text, for errors; by number if not given.
            allow_unknown: read what the vocabulary does not have as the unknown token, as in training, instead of
                refusing the text.

        Raises:
            InputError: a text is empty or longer than the context, or holds what the vocabulary does not have.
            WorkError: the model gives numbers that are not finite.
        """
        labels, found = self.labels, np.exp(self.logprobs(texts, where=where, allow_unknown=allow_unknown))
        return [
            Label(labels[int(row.argmax())], float(row.max()), dict(zip(labels, row.tolist(), strict=True)))
            for row in found
        ]

    def logprobs(
        self, texts: Sequence[str], *, where: Sequence[str] | None = None, allow_unknown: bool = False
    ) -> NDArray[np.float32]:
        """Log-probabilities (texts, labels), in nats: what `classify` goes by. Takes and raises what it does."""
        model, config = self.model, self.model.config
        how = {"context": config.room, "allow_unknown": allow_unknown, "enclosed": config.enclosed}
        rows = encode_texts(self.tokenizer, texts, where=where, **how)
        return by_length(_logprobs, model, rows, model.config, len(self.labels))

    def embed(
        self,
        texts: Sequence[str],
        *,
        where: Sequence[str] | None = None,
        allow_unknown: bool = False,
        on_cut: OnCut | None = None,
    ) -> NDArray[np.float32]:
        """The vector of each text, (texts, d_model), that its label is told from. Takes and raises as `classify`."""
        how: dict[str, Any] = {"where": where, "allow_unknown": allow_unknown, "on_cut": on_cut}
        return embed_texts(self.model, self.tokenizer, texts, settings=self.vectors, **how)


@program
def _logprobs(model: Classifier, ids: Ids, valid: Valid) -> Float[Array, "batch labels"]:
    return jax.nn.log_softmax(model(ids, valid), axis=-1)
