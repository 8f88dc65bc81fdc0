"""Texts in, labels out: a classifier with its tokenizer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

import jax
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.sentence_embeddings import MEAN, VectorSettings, by_length, embed_texts, encoded
from plainformer.decode.texts import HowRead, check_not_blank, encode_texts
from plainformer.errors import InputError, shown
from plainformer.folder import ModelFolder
from plainformer.given import LOADED, instance, string
from plainformer.inspect.look import Look, Reading, Subject, look_at, most_probable, reading_of
from plainformer.inspect.tokens import tokens_of
from plainformer.models.encoder import Classifier
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Float, Ids, Valid
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.truncation import Truncate, check_way


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


SETTINGS = ("max_tokens", "truncate")
"""What a classifier's `generation_config.json` says of long texts."""


@dataclass(frozen=True)
class TextClassifier:
    """A classifier ready for use: `TextClassifier(model, tokenizer).classify(["What a film!"])`.

    Attributes:
        max_tokens: the most tokens of a text that it reads, as in its training; 0 is as many as the model can.
        truncate: what it reads of a longer text, as in its training.
    """

    model: Classifier
    tokenizer: Tokenizer
    vectors: VectorSettings = MEAN
    max_tokens: int = 0
    truncate: Truncate = "head"

    def __post_init__(self) -> None:
        """Raises InputError for parts of another kind."""
        instance(self.model, Classifier, "model", LOADED)
        instance(self.tokenizer, Tokenizer, "tokenizer", LOADED)

    @classmethod
    def of(cls, content: ModelFolder) -> "TextClassifier":
        """Raises InputError where the folder holds another kind of model, or settings that will not do."""
        if not isinstance(content.model, Classifier):
            raise InputError("this is not a classifier")
        settings = {name: content.generation[name] for name in SETTINGS if name in content.generation}
        path = content.generation_file.path
        _check(settings, path)
        return cls(content.model, content.source_tokenizer, VectorSettings.of(content.generation, path), **settings)

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text that are read."""
        max_text_tokens = self.model.config.max_text_tokens
        return min(self.max_tokens, max_text_tokens) if self.max_tokens else max_text_tokens

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels, in the order of the model's outputs."""
        return self.model.config.labels

    def classify(self, texts: Sequence[str], **how: Unpack[HowRead]) -> list[Label]:
        """The label of every text, in order.

        Args:
            how: `where`, `allow_unknown`, `truncate` and `on_cut`, as `texts.HowRead` says.

        Raises:
            InputError: a text is empty or blank, or holds what the vocabulary does not have, or is too long and not to
                be truncated.
            WorkError: the model gives numbers that are not finite.
        """
        labels, found = self.labels, np.exp(self.logprobs(texts, **how))
        return [
            Label(labels[int(row.argmax())], float(row.max()), dict(zip(labels, row.tolist(), strict=True)))
            for row in found
        ]

    def logprobs(self, texts: Sequence[str], **how: Unpack[HowRead]) -> NDArray[np.float32]:
        """Log-probabilities (texts, labels), in nats: what `classify` goes by. Takes and raises what it does."""
        rows = self.encode(texts, **how)
        return by_length(_logprobs, self.model, rows, self.model.config, len(self.labels))

    def encode(self, texts: Sequence[str], **how: Unpack[HowRead]) -> list[list[int]]:
        """The ids of each text, as the model reads them. Takes and raises what `classify` does."""
        check_not_blank(texts, how.get("where"))
        config, how = self.model.config, self._as_in_training(how)
        return encode_texts(self.tokenizer, texts, context=self.max_text_tokens, add_cls_sep=config.add_cls_sep, **how)

    def look(self, text: str, *, top: int = 5, allow_unknown: bool = False) -> Look:
        """The text in this model: its tokens, every array, the lens, and what each word does for every label.

        What is read of a text that is too long is as in `classify`; `notes` say so.

        Args:
            top: the most probable labels that are kept.
            allow_unknown: as for `classify`.

        Raises:
            InputError: as `classify`.
        """
        read = self.read(text, allow_unknown=allow_unknown)
        subject = Subject(self.model, "classification", (read.ids,), [], self.tokenizer, most_probable(top), self)
        how: Any = {"allow_unknown": allow_unknown, "on_cut": lambda places: None}
        tokens, left_out = tokens_of(self.tokenizer, read.ids), self._left_out(text, how)
        return look_at(subject, text, (), tokens, left_out=left_out, notes=read.notes)

    def read(self, text: str, *, allow_unknown: bool = False) -> Reading:
        """What the model reads of a text. Takes and raises as `look`."""
        how: Any = {"allow_unknown": allow_unknown, "on_cut": lambda places: None}
        ids = self.encode([string(text, "text")], **how)[0]
        whole = reading_of(self.tokenizer.encode(text), self.max_text_tokens, self.truncate)
        return replace(whole, ids=ids)

    def _left_out(self, text: str, how: Any) -> tuple[tuple[str, dict[str, float]], ...]:
        """For each word, by how much the probability of every label falls when the text is without it."""
        spans = [match.span() for match in re.finditer(r"\S+", text)]
        if len(spans) < 2:
            return ()  # without its only word there is no text
        others = [(text[:start] + text[end:].lstrip()).strip() for start, end in spans]  # one space goes with the word
        found = np.exp(self.logprobs([text, *others], **how))
        changes = found[0] - found[1:]
        return tuple(
            (text[start:end], dict(zip(self.labels, change.tolist(), strict=True)))
            for (start, end), change in zip(spans, changes, strict=True)
        )

    def embed(self, texts: Sequence[str], **how: Unpack[HowRead]) -> NDArray[np.float32]:
        """The vector of each text, (texts, d_model), that its label is told from. Takes and raises as `classify`."""
        return embed_texts(self.model, self.tokenizer, texts, self._read, self._as_in_training(how))

    def encode_to_embed(self, texts: Sequence[str], **how: Unpack[HowRead]) -> list[list[int]]:
        """The ids of each text, as `embed` reads them. Takes and raises what that does."""
        return encoded(self.tokenizer, texts, self.model.config, self._read, self._as_in_training(how))

    def _as_in_training(self, how: HowRead) -> HowRead:
        return {**how, "truncate": how.get("truncate") or self.truncate}

    @property
    def _read(self) -> VectorSettings:
        """How vectors are made, of texts that are as long as the classifier reads them."""
        return replace(
            self.vectors, max_tokens=min(self.max_text_tokens, self.vectors.max_text_tokens(self.model.config))
        )


@compiled
def _logprobs(model: Classifier, ids: Ids, valid: Valid) -> Float[Array, "batch labels"]:
    return jax.nn.log_softmax(model(ids, valid), axis=-1)


def _check(settings: Mapping[str, Any], path: Path | None) -> None:
    """Raises InputError, naming the file that they are from, for settings that will not do."""
    where, most = None if path is None else str(path), settings.get("max_tokens", 0)
    check_way(settings.get("truncate", "head"), where)
    if type(most) is not int or most < 0:
        raise InputError(f"max_tokens is {shown(most)}", where=where, fix="give 0 (all that it reads), or a number")
