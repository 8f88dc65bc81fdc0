"""A text with a gap in, what could stand there out: a masked language model with its tokenizer."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Unpack

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.batch import group_by_length, pad_rows
from plainformer.decode.sentence_embeddings import (
    BATCH_TOKENS,
    MEAN,
    VectorSettings,
    check_finite,
    embed_texts,
    encoded,
)
from plainformer.decode.texts import HowRead, OnCut, check_known, enclose, locations, tell_of_cut
from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.given import LOADED, instance, string, strings, whole
from plainformer.inspect.look import Look, Reading, Subject, look_at, most_probable, reading_of
from plainformer.inspect.tokens import tokens_of
from plainformer.models.encoder import MaskedLanguageModel
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Bool, Float, Ids, Int, Valid
from plainformer.spelling import option
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.vocabulary import special_tokens, token_texts

PLACES = 8  # gaps of a text that are computed together, or a multiple: every new number is compiled anew


@dataclass(frozen=True)
class Prediction:
    """What a gap could hold.

    Attributes:
        text: of the token, with the space before it where it begins a word; a byte as it stands in the vocabulary.
        probability: that the model gives it, among all tokens that stand for text.
    """

    text: str
    probability: float


@dataclass(frozen=True)
class MaskFiller:
    """A masked language model ready for use: `MaskFiller(model, tokenizer).fill(["I like <mask>."])`."""

    model: MaskedLanguageModel
    tokenizer: Tokenizer
    vectors: VectorSettings = MEAN

    def __post_init__(self) -> None:
        """Raises InputError for parts of another kind."""
        instance(self.model, MaskedLanguageModel, "model", LOADED)
        instance(self.tokenizer, Tokenizer, "tokenizer", LOADED)

    @classmethod
    def of(cls, content: ModelFolder) -> "MaskFiller":
        """Raises InputError where the folder holds another kind of model."""
        if not isinstance(content.model, MaskedLanguageModel):
            raise InputError("this is not a masked language model")
        return cls(
            content.model, content.source_tokenizer, VectorSettings.of(content.generation, content.generation_file.path)
        )

    @property
    def mask(self) -> str:
        """How a gap is written in a text. Raises InputError if the tokenizer has no mask token."""
        return self.tokenizer.token(self._mask_id)

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text that are read at once."""
        return self.model.config.max_text_tokens

    def fill(
        self,
        texts: Sequence[str],
        *,
        top: int = 5,
        where: Sequence[str] | None = None,
        on_cut: OnCut | None = None,
    ) -> list[list[list[Prediction]]]:
        """For each text, for each of its gaps, the `top` most probable tokens, best first.

        Every gap is one token, and is filled by itself: two gaps are not agreed with each other. One space before a gap
        belongs to it, where the vocabulary has words with the space before them. Of a text that is longer than the
        context a gap is filled from as many tokens around it as are read at once.

        Args:
            where: the place of each text, for errors; by number if not given.
            on_cut: told the places of the texts that are so long; if not given, Python warns of them.

        Raises:
            InputError: `top` is below 1; a text has no gap, or holds what the vocabulary does not have.
            WorkError: the model's probabilities are not finite.
        """
        self.check_head()
        if whole(top, "top") < 1:
            raise InputError(f"{top} guesses were asked for", fix="give at least 1")
        texts = strings(texts)
        places = locations(texts, where)
        encoded_whole = [self.encode_gaps(text, place) for text, place in zip(texts, places, strict=True)]
        cut = [place for place, ids in zip(places, encoded_whole, strict=True) if len(ids) > self.max_text_tokens]
        tell_of_cut(cut, on_cut, lambda: said_of_windows(len(cut), cut[0], self.max_text_tokens))
        windows = [self._windows(ids) for ids in encoded_whole]
        found = iter(self._fill_rows([window for each in windows for window in each], top))
        return [[predictions for _ in each for predictions in next(found)] for each in windows]

    def _fill_rows(self, windows: Sequence[tuple[list[int], list[int]]], top: int) -> list[list[list[Prediction]]]:
        """The guesses for the gaps of rows of ids, which fit the context, at the places that each has beside it."""
        found: dict[int, list[list[Prediction]]] = {}
        for batch in group_by_length([(len(row),) for row, _ in windows], BATCH_TOKENS, self.model.config):
            members = [windows[member][0] for member in batch.members]
            gaps = [windows[member][1] for member in batch.members]
            most = -(-max(map(len, gaps)) // PLACES) * PLACES
            ids, valid = pad_rows(members, batch.size, batch.lengths[0], 0)
            places, _ = pad_rows(gaps, batch.size, most, 0)
            said = np.asarray(_probabilities(self.model, ids, valid, places, self._sayable))
            check_finite(said)
            for member, row, own in zip(batch.members, said, gaps, strict=False):
                found[member] = [self._guesses(probabilities, top) for probabilities in row[: len(own)]]
        return [found[index] for index in range(len(windows))]

    def look(self, text: str, *, top: int = 5) -> Look:
        """The text in this model: its tokens, every array, the lens, and what could stand at each place.

        A text may be without gaps. Of one that is longer than is read at once the first tokens are looked at, which
        `notes` say. Probabilities are among all tokens; `fill` leaves out those that stand for no text.

        Args:
            top: the most probable tokens that are kept of each position.

        Raises:
            InputError: the text is empty or holds what the vocabulary does not have.
        """
        read = self.read(text)
        subject = Subject(self.model, "masked", (read.ids,), [], self.tokenizer, most_probable(top), self)
        return look_at(subject, text, (), tokens_of(self.tokenizer, read.ids), notes=read.notes)

    def read(self, text: str) -> Reading:
        """What the model reads of a text. Raises InputError as `look`."""
        self.check_head()
        if not string(text, "text").strip():
            raise InputError("the text is empty", fix="give some text")
        read = reading_of(self._with_gaps(text, "text"), self.max_text_tokens, "head")
        return replace(read, ids=enclose(self.tokenizer, read.ids)) if self.model.config.add_cls_sep else read

    def embed(self, texts: Sequence[str], **how: Unpack[HowRead]) -> NDArray[np.float32]:
        """The vector of each text, (texts, width): the mean of its hidden states, or what `vectors` says.

        Args:
            how: `where`, `allow_unknown`, `truncate` and `on_cut`, as `texts.HowRead` says.

        Raises:
            InputError: a text is empty or blank, or holds what the vocabulary does not have, or is too long and not to
                be truncated.
            WorkError: the model gives numbers that are not finite.
        """
        return embed_texts(self.model, self.tokenizer, texts, self.vectors, _by_its_head(how))

    def check_head(self, where: str | None = None) -> None:
        """Raises InputError where the model is an encoder alone: what it would say of hidden tokens means nothing."""
        if not self.model.config.head:
            what = "this is an encoder without a head, which can say nothing of hidden tokens"
            start = f"train, {option('from', 'MODEL', python='model.init_from')}"
            fix = f"use its vectors (embed), or train a classifier or a masked language model from it ({start})"
            raise InputError(what, where=where, fix=fix)

    def encode_to_embed(self, texts: Sequence[str], **how: Unpack[HowRead]) -> list[list[int]]:
        """The ids of each text, as `embed` reads them. Takes and raises what that does."""
        return encoded(self.tokenizer, texts, self.model.config, self.vectors, _by_its_head(how))

    def encode_gaps(self, text: str, where: str) -> list[int]:
        """The ids of a text with gaps. Its parts are encoded by themselves: no text ever becomes a special token.

        Raises:
            InputError: it has no gap, or holds what the vocabulary does not have.
        """
        if self.mask not in text:
            raise InputError("the text has no gap", where=where, fix=f"write {self.mask} where a word is to be guessed")
        return self._with_gaps(text, where)

    def _with_gaps(self, text: str, where: str) -> list[int]:
        """`encode_gaps` of a text that may have none."""
        parts = text.split(self.mask)
        ids: list[int] = []
        for number, part in enumerate(parts):
            if number < len(parts) - 1 and self._words_have_spaces:
                part = part.removesuffix(" ")
            part_ids = self.tokenizer.encode_inside(part) if number else self.tokenizer.encode(part)
            check_known(self.tokenizer, part, part_ids, where)
            ids += [self._mask_id, *part_ids] if number else part_ids
        return ids

    def _windows(self, ids: list[int]) -> list[tuple[list[int], list[int]]]:
        """A text as rows that the model can read, each with the places of its gaps: one row
        for all gaps, or, of a text that is too long, one for each, in whose middle it stands."""
        gaps = [place for place, id in enumerate(ids) if id == self._mask_id]
        if len(ids) <= self.max_text_tokens:
            rows = [(ids, gaps)]
        else:
            starts = [max(0, min(place - self.max_text_tokens // 2, len(ids) - self.max_text_tokens)) for place in gaps]
            rows = [(ids[at : at + self.max_text_tokens], [place - at]) for place, at in zip(gaps, starts, strict=True)]
        if not self.model.config.add_cls_sep:
            return rows
        return [(enclose(self.tokenizer, row), [place + 1 for place in own]) for row, own in rows]

    def _guesses(self, probabilities: NDArray[np.float32], top: int) -> list[Prediction]:
        best = np.argsort(-probabilities, kind="stable")[: min(top, int(self._sayable.sum()))]
        return [Prediction(self._texts[id], float(probabilities[id])) for id in best.tolist()]

    @cached_property
    def _mask_id(self) -> int:
        if (found := self.tokenizer.mask_id) is None:
            raise InputError("the tokenizer of this model has no mask token")
        return found

    @cached_property
    def _texts(self) -> list[str]:
        found = token_texts(self.tokenizer)
        return [text if text and "\ufffd" not in text else self.tokenizer.token(id) for id, text in enumerate(found)]

    @cached_property
    def _words_have_spaces(self) -> bool:
        return any(text.startswith(" ") and text.strip() for text in self._texts)

    @cached_property
    def _sayable(self) -> Bool[Array, " vocab"]:
        """True at the rows of the table that are tokens and stand for text."""
        rows = self.model.config.rows(self.model.config.vocab)
        said = np.zeros(rows, bool)
        said[: self.tokenizer.vocab_size] = ~special_tokens(self.tokenizer)
        return jnp.asarray(said)


def _by_its_head(how: HowRead) -> HowRead:
    return {**how, "truncate": how.get("truncate") or "head"}


def said_of_windows(count: int, first: str, most: int) -> str:
    """That so many texts were too long to be read at once, the first of them where, and what was done about it."""
    many = "1 text is" if count == 1 else f"{count:,} texts are"
    return (
        f"{many} longer than the {most:,} tokens that are read (first: {first}): a gap is filled from those around it"
    )


@compiled
def _probabilities(
    model: MaskedLanguageModel,
    ids: Ids,
    valid: Valid,
    places: Int[Array, "batch places"],
    sayable: Bool[Array, " vocab"],
) -> Float[Array, "batch places vocab"]:
    """Of every token that may be said, at each of the places."""
    hidden = model.encoder.encode(ids, valid)
    logits = model.project(jnp.take_along_axis(hidden, places[:, :, None], axis=1))
    return jax.nn.softmax(jnp.where(sayable[None, None, :], logits, -jnp.inf), axis=-1)
