"""Forced decoding: the log-probability that a model gives to a target, or to a text, that it is handed."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import check_ids, check_vocabulary, group_by_length, pad_rows, shaped
from plainformer.decode.protocols import EncoderDecoder
from plainformer.decode.sliding_window import windows
from plainformer.errors import InputError
from plainformer.models.language_model import LanguageModel
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Float, Ids, Int, Valid

MOST_TOP = 20  # most probable tokens that are told of a place
MOST_NATS = 700.0  # e to more is no float


@dataclass(frozen=True)
class PairScore:
    """How probable a target is, given its source.

    Attributes:
        logprob: sum of `token_logprobs` (nats).
        token_logprobs: one for every target token and, last, one for the end of sentence.
        length: how many those are.
    """

    logprob: float
    token_logprobs: tuple[float, ...]
    length: int

    @property
    def perplexity(self) -> float:
        """As `perplexity` of this module."""
        return perplexity(self.logprob, self.length)


def perplexity(logprob: float, tokens: int) -> float:
    """e to the mean negative log-probability of a token: how many equally likely ones it was chosen among."""
    mean = -logprob / tokens
    return math.exp(mean) if mean < MOST_NATS else math.inf


@compiled
def forced_logprobs(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    target_in: Int[Array, "batch target"],
    target_out: Int[Array, "batch target"],
) -> Float[Array, "batch target"]:
    """The log-probability (nats) of every `target_out` token, where the decoder has read `target_in` up to there."""
    return _chosen(model(source, source_valid, target_in), target_out)


def score_pairs(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    *,
    bos: int,
    eos: int,
    pad: int,
    source_eos: int | None = None,
    batch_tokens: int = 2048,
) -> list[PairScore]:
    """Score every target given its source, in the order given; ids without beginning and end of sentence.

    The score of a hypothesis that did not end (`finished` False) is the sum of all but the last token's.

    Args:
        bos, eos, pad: ids of the target vocabulary. source_eos: the end of a source, where that is another id.
        batch_tokens: the most positions computed at once, padding included: what bounds memory.

    Raises:
        InputError: the numbers of sources and targets differ, an id is not in the vocabulary, or a text is longer than
            a model with learned positions can read.
    """
    if len(sources) != len(targets):
        raise InputError(f"{len(sources)} sources and {len(targets)} targets", fix="give one target for every source")
    check_ids(sources, model.config.source_vocab, model.config, "source")
    check_ids(targets, model.config.target_vocab, model.config, "target")
    closing = eos if source_eos is None else source_eos
    scores: dict[int, PairScore] = {}
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, targets, strict=True)]
    batches = group_by_length(lengths, batch_tokens, model.config)
    for size, source_length, target_length in {(batch.size, *batch.lengths) for batch in batches}:
        source, target = shaped(size, source_length), shaped(size, target_length)
        forced_logprobs.ahead(model, source, shaped(size, source_length, dtype=np.bool_), target, target)
    for batch in batches:
        rows, (source_length, target_length) = batch.size, batch.lengths
        source, source_valid = pad_rows([[*sources[i], closing] for i in batch.members], rows, source_length, closing)
        target_in, _ = pad_rows([[bos, *targets[i]] for i in batch.members], rows, target_length, pad)
        target_out, _ = pad_rows([[*targets[i], eos] for i in batch.members], rows, target_length, pad)
        logprobs = np.asarray(forced_logprobs(model, source, source_valid, target_in, target_out))
        for row, index in enumerate(batch.members):
            real = logprobs[row, : len(targets[index]) + 1]
            scores[index] = PairScore(float(real.sum(dtype=np.float64)), tuple(real.tolist()), len(real))
    return [scores[index] for index in range(len(sources))]


def score_texts(
    model: LanguageModel, texts: Sequence[Sequence[int]], *, bos: int | None = None, batch_tokens: int = 2048
) -> list[tuple[float, ...]]:
    """The log-probability (nats) of every token of every text after its first, given those before it.

    A text longer than the context is read in windows that overlap by half a context (`window.py`), as in writing it: a
    token is given at least half a context before it, where the text has that.

    Args:
        texts: token ids.
        bos: an id that is put before every text, so that the first token is given something too, and scored.
        batch_tokens: the most positions computed at once, padding included: what bounds memory.

    Raises:
        InputError: an id is not in the vocabulary.
    """
    if bos is not None:
        texts = [[bos, *text] for text in texts]
    return [tuple(logprobs) for logprobs in _in_windows(model, texts, _Chosen(), batch_tokens)]


def most_probable_of_texts(
    model: LanguageModel, texts: Sequence[Sequence[int]], *, batch_tokens: int = 2048
) -> list[tuple[tuple[tuple[int, float], ...], ...]]:
    """The most probable ids at every place of every text but its first, each with its log-probability (nats), MOST_TOP
    of them, where `score_texts` gives that of the token that stands there. Takes and raises as that does."""
    return [tuple(ranked) for ranked in _in_windows(model, texts, _Ranked(), batch_tokens)]


class _Chosen:
    """What is told of every token: its log-probability."""

    def ahead(self, model: LanguageModel, ids: Any, targets: Any) -> None:
        text_logprobs.ahead(model, ids, targets)

    def __call__(self, model: LanguageModel, ids: Any, targets: Any) -> Sequence[Sequence[Any]]:
        return np.asarray(text_logprobs(model, ids, targets)).tolist()


class _Ranked:
    """What is told of every token: which are the most probable in its place."""

    def ahead(self, model: LanguageModel, ids: Any, targets: Any) -> None:
        text_most_probable.ahead(model, ids)

    def __call__(self, model: LanguageModel, ids: Any, targets: Any) -> Sequence[Sequence[Any]]:
        ids, logprobs = (np.asarray(one).tolist() for one in text_most_probable(model, ids))
        return [[_possible(*place) for place in zip(*row, strict=True)] for row in zip(ids, logprobs, strict=True)]


def _possible(ids: Sequence[int], logprobs: Sequence[float]) -> tuple[tuple[int, float], ...]:
    """Without what only fills up a small vocabulary."""
    return tuple((id, logprob) for id, logprob in zip(ids, logprobs, strict=True) if logprob > -math.inf)


def _in_windows(
    model: LanguageModel, texts: Sequence[Sequence[int]], told: _Chosen | _Ranked, batch_tokens: int
) -> list[list[Any]]:
    """What is told of every token of every text after its first."""
    check_vocabulary(texts, model.config.vocab, "text")
    context = model.config.context
    pieces = [_Piece(index, *window) for index, text in enumerate(texts) for window in windows(len(text), context)]
    scores: dict[_Piece, Sequence[Any]] = {}
    batches = group_by_length([(piece.last - 1 - piece.start,) for piece in pieces], batch_tokens, model.config)
    for shape in {(batch.size, *batch.lengths) for batch in batches}:
        told.ahead(model, shaped(*shape), shaped(*shape))
    for batch in batches:
        members, (length,) = [pieces[member] for member in batch.members], batch.lengths
        read = [texts[piece.text][piece.start : piece.last - 1] for piece in members]
        said = [texts[piece.text][piece.start + 1 : piece.last] for piece in members]
        ids, targets = (pad_rows(rows, batch.size, length, 0)[0] for rows in (read, said))
        for row, piece in zip(told(model, ids, targets), members, strict=False):  # there may be rows that only fill up
            scores[piece] = row[piece.first - 1 - piece.start : piece.last - 1 - piece.start]
    found: list[list[Any]] = [[] for _ in texts]
    for piece in pieces:
        found[piece.text] += scores[piece]
    return found


class _Piece(NamedTuple):
    """A window of a text: it is read from `start` on, and scored from the token `first` to, not including, `last`."""

    text: int
    start: int
    first: int
    last: int


@compiled
def text_logprobs(model: LanguageModel, ids: Ids, targets: Ids) -> Float[Array, "batch seq"]:
    """The log-probability (nats) of each of `targets`, the token after each of `ids`."""
    return _chosen(model(ids), targets)


@compiled
def text_most_probable(
    model: LanguageModel, ids: Ids
) -> tuple[Int[Array, "batch seq top"], Float[Array, "batch seq top"]]:
    """The most probable tokens after each of `ids`, and their log-probabilities (nats), best first."""
    logprobs = jax.nn.log_softmax(model(ids).astype(jnp.float32), axis=2)
    found, ranked = jax.lax.top_k(logprobs, min(MOST_TOP, logprobs.shape[2]))
    return ranked, found


def _chosen(logits: Float[Array, "batch seq vocab"], ids: Int[Array, "batch seq"]) -> Float[Array, "batch seq"]:
    """The log-probability of one token at each place."""
    logits = logits.astype(jnp.float32)
    chosen = jnp.take_along_axis(logits, ids[:, :, None], axis=2)[:, :, 0]
    return chosen - jax.nn.logsumexp(logits, axis=2)
