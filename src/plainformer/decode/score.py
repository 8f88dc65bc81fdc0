"""Forced decoding: the log-probability that a model gives to a target it is handed."""

from collections.abc import Sequence
from dataclasses import dataclass

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import check_ids, group_by_length, pad_rows
from plainformer.decode.contract import EncoderDecoder
from plainformer.errors import InputError
from plainformer.shapes import Array, Float, Ids, Int, Valid


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


@eqx.filter_jit
def forced_logprobs(
    model: EncoderDecoder,
    source: Ids,
    source_valid: Valid,
    target_in: Int[Array, "batch target"],
    target_out: Int[Array, "batch target"],
) -> Float[Array, "batch target"]:
    """The log-probability (nats) of every `target_out` token, where the decoder has read `target_in` up to there."""
    logprobs = jax.nn.log_softmax(model(source, source_valid, target_in).astype(jnp.float32))
    return jnp.take_along_axis(logprobs, target_out[:, :, None], axis=2)[:, :, 0]


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
    for batch in group_by_length(lengths, batch_tokens, model.config):
        rows, (source_length, target_length) = batch.size, batch.lengths
        source, source_valid = pad_rows([[*sources[i], closing] for i in batch.members], rows, source_length, closing)
        target_in, _ = pad_rows([[bos, *targets[i]] for i in batch.members], rows, target_length, pad)
        target_out, _ = pad_rows([[*targets[i], eos] for i in batch.members], rows, target_length, pad)
        logprobs = np.asarray(forced_logprobs(model, source, source_valid, target_in, target_out))
        for row, index in enumerate(batch.members):
            real = logprobs[row, : len(targets[index]) + 1]
            scores[index] = PairScore(float(real.sum(dtype=np.float64)), tuple(real.tolist()), len(real))
    return [scores[index] for index in range(len(sources))]
