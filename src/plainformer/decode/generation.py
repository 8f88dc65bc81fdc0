"""Many sources in, their best targets out, in the same order: the search over batches of like length."""

from collections.abc import Callable, Collection, Sequence

import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import Batch, check_ids, group_by_length, pad_rows, position_limit
from plainformer.decode.beam import beam_search
from plainformer.decode.contract import EncoderDecoder, Hypotheses, Hypothesis
from plainformer.decode.greedy import greedy_search
from plainformer.decode.settings import PAPER, GenerationSettings
from plainformer.errors import InputError, WorkError
from plainformer.shapes import Array, Bool


def generate(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    settings: GenerationSettings = PAPER,
    *,
    bos: int,
    eos: int,
    pad: int,
    source_eos: int | None = None,
    batch_tokens: int = 1024,
    allowed: Collection[int] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of every source, best first, sources in the order given.

    One program is compiled for each padded length (multiples of 8) and number of rows (a power of two).

    Args:
        sources: token ids without beginning and end of sentence; the end is added here. One may be empty.
        bos, eos, pad: ids of the target vocabulary. source_eos: the end of a source, where that is another id.
        batch_tokens: the most source tokens in a batch, padding included. The decoder runs `beam_size` rows for each
            sentence, so memory grows with both.
        allowed: the ids that may be generated, None for the whole vocabulary. `pad` and `bos` never, `eos` always.
        progress: called after each batch with the numbers of sources done and of all.

    Raises:
        InputError: an id is not in the vocabulary, or a source is longer than learned positions reach.
        WorkError: the model's outputs are not finite.
    """
    config = model.config
    check_ids(sources, config.source_vocab, config, "source")
    mask = None if allowed is None else _allowed_mask(allowed, config.target_vocab)
    search = greedy_search if settings.beam_size == 1 else beam_search
    closing = eos if source_eos is None else source_eos
    results: dict[int, list[Hypothesis]] = {}
    for batch in group_by_length([(len(source) + 1,) for source in sources], batch_tokens, config):
        rows = [[*sources[index], closing] for index in batch.members]
        source, source_valid = pad_rows(rows, batch.size, batch.lengths[0], closing)
        limit = position_limit(config)
        bounds = np.zeros(batch.size, np.int32)  # rows that only fill the batch keep 0 and end at once
        # A bound looks at its own sentence alone, so that company does not change the output.
        bounds[: len(rows)] = [settings.bound(len(row), limit) for row in rows]
        length = settings.bound(batch.lengths[0], limit)
        found = search(
            model,
            source,
            source_valid,
            jnp.asarray(bounds),
            settings,
            length=length,
            bos=bos,
            eos=eos,
            pad=pad,
            allowed=mask,
        )
        results.update(_by_source(found, batch))
        if progress is not None:
            progress(len(results), len(sources))
    return [results[index] for index in range(len(sources))]


def _by_source(found: Hypotheses, batch: Batch) -> dict[int, list[Hypothesis]]:
    """The hypotheses of the batch's real rows, by their source's place in the input."""
    real = dict(zip(batch.members, found.unbatch(), strict=False))
    for index, hypotheses in real.items():
        if not hypotheses:
            raise WorkError(
                "the model's log-probabilities are not finite",
                where=f"source {index + 1}",
                fix="check that its weights are finite: training may have diverged",
            )
    return real


def _allowed_mask(allowed: Collection[int], vocab: int) -> Bool[Array, " vocab"]:
    """True on the allowed ids of the vocabulary."""
    if wrong := [token for token in allowed if not 0 <= token < vocab]:
        raise InputError(f"token id {wrong[0]} is not in the model's vocabulary of {vocab}", where="allowed")
    mask = np.zeros(vocab, bool)
    mask[list(allowed)] = True
    return jnp.asarray(mask)
