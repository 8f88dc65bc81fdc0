"""Many sources in, their best targets out, in the same order: the search over pools of like length."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.decode.batch import check_ids, position_limit
from plainformer.decode.beam import make_query
from plainformer.decode.beam_state import Query
from plainformer.decode.constraints import Constraints
from plainformer.decode.continuous_batching import Shape, compile_ahead, is_ready, search_pool, shape_of
from plainformer.decode.length_penalty import check_length
from plainformer.decode.parallel_search import searches_at_once, side_by_side
from plainformer.decode.plan import Costs, Planner, shares
from plainformer.decode.protocols import EncoderDecoder, Hypothesis
from plainformer.decode.settings import PAPER, GenerationSettings, check_tokens
from plainformer.errors import InputError, WorkError
from plainformer.models.config import TransformerConfig
from plainformer.renamed import old_arguments
from plainformer.shapes import Array, Bool

MOST_ROWS = 16  # of a beam that leave the sentences side by side as many as they may be


@dataclass(frozen=True, eq=False)
class SourceSearch:
    """What sources are searched with.

    allowed_tokens: True on the ids that may be generated, None for all.
    closing: the id that ends a source.
    """

    model: EncoderDecoder
    settings: GenerationSettings
    constraints: Constraints
    allowed_tokens: Bool[Array, " vocab"] | None
    closing: int

    @classmethod
    def of(
        cls,
        model: EncoderDecoder,
        settings: GenerationSettings,
        *,
        bos: int,
        eos: int,
        pad: int,
        source_eos: int | None = None,
        allowed_tokens: Collection[int] | None = None,
    ) -> "SourceSearch":
        """Arguments as for `generate`. Raises InputError for an id that is not in the vocabulary."""
        vocab = model.config.target_vocab
        check_tokens(settings, vocab)
        constraints = Constraints.of(settings, bos=bos, eos=eos, pad=pad)
        mask = allowed_mask(allowed_tokens, constraints.ends, settings.suppress_tokens, vocab)
        return cls(model, settings, constraints, mask, eos if source_eos is None else source_eos)

    @property
    def limit(self) -> int | None:
        """The most tokens that the model has positions for."""
        return position_limit(self.model.config)

    def bound(self, width: int) -> int:
        """The most tokens of an output of a source of so many, its end included, whatever its batch."""
        return self.settings.bound(width, self.limit)

    def query(self, width: int) -> Query:
        """What searches sources of up to `width` tokens."""
        return make_query(self.model, self.settings, self.constraints, self.bound(width), self.allowed_tokens)


@old_arguments
def generate(
    model: EncoderDecoder,
    sources: Sequence[Sequence[int]],
    settings: GenerationSettings = PAPER,
    *,
    bos: int,
    eos: int,
    pad: int,
    source_eos: int | None = None,
    batch_tokens: int = 2048,
    allowed_tokens: Collection[int] | None = None,
    expected: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[list[Hypothesis]]:
    """The `n_best` hypotheses of every source, best first, sources in the order given.

    Programs are compiled for each shape that pays (`plan`) and each size of cache that an output reaches
    (`cache_buckets`). On a CPU searches run in two threads (`parallel_search`), outside the caller's contexts, such as
    `jax.default_device`.

    Args:
        sources: token ids without beginning and end of sentence; the end is added here. One may be empty.
        bos, eos, pad: ids of the target vocabulary. source_eos: the end of a source, where that is another id.
        batch_tokens: the most tokens that there is room for side by side, for each of up to 16 hypotheses of a beam;
            sources may be padded to twice as many.
        allowed_tokens: the ids that may be generated, None for all; never `pad`, `bos` or what the settings suppress.
        expected: how many sources are to come, these included: for many, more shapes pay. These alone, if not given.
        progress: called whenever some are done, with the numbers of sources done and of all.

    Raises:
        InputError: an id is not in the vocabulary, a source is too long, or a length penalty is no number.
        WorkError: the model's outputs are not finite.
    """
    config = model.config
    check_ids(sources, config.source_vocab, config, "source")
    how = SourceSearch.of(
        model, settings, bos=bos, eos=eos, pad=pad, source_eos=source_eos, allowed_tokens=allowed_tokens
    )
    closed = [[*source, how.closing] for source in sources]
    at_once = searches_at_once()
    max_lengths = [how.bound(len(source)) for source in closed]
    check_length(settings, max(max_lengths, default=1))

    def search(members: list[int], shape: Shape) -> Iterator[dict[int, list[Hypothesis]]]:
        parts = [closed[index] for index in members], [max_lengths[index] for index in members]
        for found in search_pool(model, how.query(shape.width), *parts, shape, filler=how.closing):
            yield {members[place]: hypotheses for place, hypotheses in found}

    times = max(1.0, (expected or 0) / max(1, len(sources)))
    parts = _planned(how, list(map(len, closed)), batch_tokens, at_once, times)
    results: dict[int, list[Hypothesis]] = {}
    for found in side_by_side([search(*part) for part in parts], at_once):
        results |= {index: checked(hypotheses, f"source {index + 1}") for index, hypotheses in found.items()}
        if progress:
            progress(len(results), len(sources))
    return [results[index] for index in range(len(sources))]


def _planned(
    how: SourceSearch, lengths: Sequence[int], batch_tokens: int, at_once: int, times: float
) -> list[tuple[list[int], Shape]]:
    """What each search has to do: sources, and in which shape. What they need is compiled from now on.

    Args:
        times: as for `Planner.plan`.
    """
    beam = how.settings.beam_size
    narrow, query = how.query(1), how.query
    model: Any = narrow.model

    def shape(size: int, width: int, slots: int) -> Shape:
        return shape_of(query(width), beam, size, width, slots)

    pools = _planner(jax.tree.structure(model), model.config, narrow.constraints, beam).plan(
        lengths,
        min(batch_tokens, -(-MOST_ROWS * batch_tokens // beam)),
        how.limit,
        at_once=at_once,
        is_ready=lambda size, width, slots: is_ready(model, query(width), shape(size, width, slots)),
        times=times,
    )
    parts = [(part.members, shape(*part[1:])) for pool in pools for part in shares(pool, at_once)]
    for members, part in parts:
        compile_ahead(model, query(part.width), part, len(members))
    return parts


@lru_cache(maxsize=64)
def _planner(kind: Any, config: TransformerConfig, constraints: Constraints, beam: int) -> Planner:
    """What plans for models of a kind: of one structure, weights rounded or not."""
    return Planner(Costs.of(config, beam))


def checked(hypotheses: list[Hypothesis], where: str | None = None) -> list[Hypothesis]:
    """The hypotheses of a source, whose place is `where`. Raises WorkError where there are none."""
    if not hypotheses:
        raise WorkError(
            "the model's log-probabilities are not finite",
            where=where,
            fix="check that its weights are finite: training may have diverged",
        )
    return hypotheses


def allowed_mask(
    allowed_tokens: Collection[int] | None, ends: Sequence[int], suppress_tokens: Sequence[int], vocab: int
) -> Bool[Array, " vocab"] | None:
    """True on the allowed ids of the vocabulary and the ends, but for those to suppress; None where all are allowed."""
    if allowed_tokens is None and not suppress_tokens:
        return None
    allowed_tokens = range(vocab) if allowed_tokens is None else allowed_tokens
    if wrong := [token for token in allowed_tokens if not 0 <= token < vocab]:
        raise InputError(f"token id {wrong[0]} is not in the model's vocabulary of {vocab}", where="allowed_tokens")
    mask = np.zeros(vocab, bool)
    mask[[*allowed_tokens, *ends]] = True
    mask[list(suppress_tokens)] = False
    return jnp.asarray(mask)
