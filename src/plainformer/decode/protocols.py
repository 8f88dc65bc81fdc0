"""What decoding asks of a model, and what it gives back."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import equinox as eqx
import numpy as np

from plainformer.models.config import TransformerConfig
from plainformer.nn.cache import CacheSlots
from plainformer.shapes import Array, Bool, Float, Hidden, Ids, Int, Logits, Valid


@runtime_checkable
class CachedDecoder(Protocol):
    """A model that goes on with sequences from a state, a PyTree of arrays with the batch as first axis."""

    def extend(self, ids: Ids, state: Any, slots: CacheSlots | None = None, /) -> tuple[Logits, Any]:
        """Consume more tokens of each sentence: float32 logits after each of them, and the state after the last.

        They follow each other, unless `slots` says where each goes. The logits of tokens that are not `active` are
        never read.
        """
        ...

    def grow(self, state: Any, slots: int, /) -> Any:
        """The state with room for `slots` tokens more."""
        ...

    def turn(self, state: Any, by: Int[Array, " batch"], /) -> Any:
        """The state with the tokens of each sentence so many places further, those at the end at the beginning."""
        ...


@runtime_checkable
class EncoderDecoder(CachedDecoder, Protocol):
    """A model that reads a source once and predicts the target one token at a time. `models.Transformer` is one."""

    @property
    def config(self) -> TransformerConfig: ...

    def encode(self, source: Ids, source_valid: Valid, /) -> Hidden:
        """Source ids (batch, source) to memory (batch, source, d_model)."""
        ...

    def start(self, memory: Hidden, source_valid: Valid, places: int, /) -> Any:
        """A PyTree of arrays, each with the batch as its first axis: the state before the first target token.

        It has room for `places` tokens.
        """
        ...

    def __call__(
        self, source: Ids, source_valid: Valid, target: Int[Array, "batch target"], /
    ) -> Float[Array, "batch target vocab"]:
        """Logits (batch, target, vocab) of every next token: the full forward, without a cache."""
        ...


@dataclass(frozen=True)
class Hypothesis:
    """One output of a search.

    Attributes:
        ids: target tokens, without beginning and end of sentence.
        score: `logprob` over the length penalty; what hypotheses are ranked by.
        logprob: sum of the log-probabilities (nats) of `ids` and, where `finished`, of the end of sentence.
        finished: False where the length bound cut the sentence before its end.
    """

    ids: tuple[int, ...]
    score: float
    logprob: float
    finished: bool

    @property
    def length(self) -> int:
        """Tokens that were scored: the end of sentence counts."""
        return len(self.ids) + self.finished


class Hypotheses(eqx.Module):
    """The hypotheses of a batch, `n` places a sentence; a place whose score is -inf holds none.

    tokens: what was generated, end of sentence included, then padding.
    lengths: how many of `tokens` count.
    ended: True where the last token is the end of sentence.
    """

    tokens: Int[Array, "batch n length"]
    lengths: Int[Array, "batch n"]
    logprobs: Float[Array, "batch n"]
    scores: Float[Array, "batch n"]
    ended: Bool[Array, "batch n"]

    def unbatch(self, rows: Sequence[int] | None = None) -> list[list[Hypothesis]]:
        """As Python values, empty places left out: one list for each sentence, or each of `rows`."""
        tokens, lengths, ended = np.asarray(self.tokens), np.asarray(self.lengths), np.asarray(self.ended)
        logprobs, scores = np.asarray(self.logprobs), np.asarray(self.scores)
        return [
            [
                Hypothesis(
                    ids=tuple(tokens[row, n, : lengths[row, n] - int(ended[row, n])].tolist()),
                    score=float(scores[row, n]),
                    logprob=float(logprobs[row, n]),
                    finished=bool(ended[row, n]),
                )
                for n in range(tokens.shape[1])
                if np.isfinite(scores[row, n])
            ]
            for row in (range(tokens.shape[0]) if rows is None else rows)
        ]
