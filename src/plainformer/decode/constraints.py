"""Constraints on the next token: which tokens are changed or banned before the search chooses among them.

A ban takes a token's candidate away and leaves the others' log-probabilities alone, so a hypothesis found under bans
still has the score that the model gives it. Scores are changed by the repetition penalty, defined on logits (in a full
beam on log-probabilities, as in the Hugging Face library), and where the settings say so: by renormalising, and by
tokens that are forced, which cost nothing.
A token that the settings suppress is never generated, be it an end; the other constraints ban the end of sentence only
where another token is allowed: every hypothesis has a continuation.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

import jax
import jax.numpy as jnp

from plainformer.decode.settings import GenerationSettings
from plainformer.kernels.top_k import top_k
from plainformer.shapes import Array, Bool, Float, Int


@dataclass(frozen=True)
class Constraints:
    """What is compiled into a step of a search: the special tokens, and the constraints of the settings.

    eos: the token that ends a hypothesis, and the one to force where that is wished. others: tokens that end one, too.
    penalises_logprobs: whether the repetition penalty changes log-probabilities, which then do not sum to 1.
    """

    bos: int
    eos: int
    pad: int
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    min_tokens: int = 0
    forced_bos: int | None = None
    forced_eos: bool = False
    renormalize_logits: bool = False
    others: tuple[int, ...] = ()
    penalises_logprobs: bool = False

    @classmethod
    def of(cls, settings: GenerationSettings, *, bos: int, eos: int, pad: int) -> "Constraints":
        """`eos` is the end where the settings name none."""
        names = (
            "no_repeat_ngram",
            "repetition_penalty",
            "min_tokens",
            "forced_bos",
            "forced_eos",
            "renormalize_logits",
        )
        first, *others = settings.end_tokens or (eos,)
        values = {name: getattr(settings, name) for name in names}
        return cls(bos, first, pad, **values, others=tuple(others), penalises_logprobs=settings.penalises_logprobs)

    @property
    def ends(self) -> tuple[int, ...]:
        """All tokens that end a hypothesis."""
        return (self.eos, *self.others)

    def is_end(self, tokens: Int[Array, "..."]) -> Bool[Array, "..."]:
        """True where a token ends a hypothesis."""
        return reduce(jnp.logical_or, (tokens == end for end in self.ends))


def vocabulary_mask(
    vocab: int, *, ends: Sequence[int], roles: Sequence[int], allowed_tokens: Bool[Array, " tokens"] | None = None
) -> Bool[Array, " vocab"]:
    """True on tokens that may be generated: the `allowed_tokens` (None: all) but for tokens of other `roles`, such as
    padding, that are none of the `ends` of a hypothesis.

    `allowed_tokens` may be shorter than `vocab`, which counts padding rows; the rest is not allowed.
    """
    mask = (
        jnp.ones(vocab, bool)
        if allowed_tokens is None
        else jnp.zeros(vocab, bool).at[: allowed_tokens.shape[0]].set(allowed_tokens)
    )
    return mask.at[jnp.array([role for role in roles if role not in ends], jnp.int32)].set(False)


def generated_tokens(
    history: Int[Array, "rows length"], step: Int[Array, " rows"], vocab: int
) -> Bool[Array, "rows vocab"]:
    """True on the tokens among the first `step` of each row."""
    return _mark(history, jnp.arange(history.shape[1])[None, :] < step[:, None], vocab)


def repeated_ngrams(
    history: Int[Array, "rows length"], step: Int[Array, " rows"], n: int, vocab: int
) -> Bool[Array, "rows vocab"]:
    """True on the tokens that, generated next, would complete an n-gram already among the first `step` of their row.

    For n = 3, a b is banned from being followed by c where the row has  … a b c … a b
                                                                         window i    suffix
    """
    length = history.shape[1]
    if n > length:
        return jnp.zeros((history.shape[0], vocab), bool)
    windows = length - n + 1
    # Before n - 1 tokens are written the suffix means nothing; no window is complete then either.
    places = jnp.maximum(step[:, None] - (n - 1) + jnp.arange(n - 1)[None, :], 0)
    suffix = jnp.take_along_axis(history, places, axis=1)
    repeats = jnp.arange(windows)[None, :] + n <= step[:, None]
    for offset in range(n - 1):
        repeats &= history[:, offset : offset + windows] == suffix[:, offset][:, None]
    return _mark(history[:, n - 1 :], repeats, vocab)


def penalise_repetition(
    logits: Float[Array, "rows vocab"], seen: Bool[Array, "rows vocab"], penalty: float | Float[Array, "rows 1"]
) -> Float[Array, "rows vocab"]:
    """Make `seen` tokens less likely: positive logits divided by the penalty, negative ones multiplied.

    Keskar et al. 2019 (CTRL), section 4.1, with the sign treated so that a penalty above 1 always lowers the logit.
    """
    return jnp.where(seen, jnp.where(logits > 0, logits / penalty, logits * penalty), logits)


def next_logprobs(
    logits: Float[Array, "rows vocab"],
    history: Int[Array, "rows length"],
    step: Int[Array, " rows"],
    constraints: Constraints,
    allowed_tokens: Bool[Array, " tokens"] | None = None,
    bound: Int[Array, " rows"] | None = None,
) -> Float[Array, "rows vocab"]:
    """Log-probabilities (nats) of the next token, -inf for banned tokens, given the first `step` of `history`.

    `bound` is the most tokens of each row, which constraints on the end look at; None is no bound.
    """
    logits, possible, total = _constrained(logits, history, step, constraints, allowed_tokens)
    logprobs = jnp.where(possible, jax.nn.log_softmax(logits) + total, -jnp.inf)
    for rows, token in _forced(step, constraints, bound):
        only = jnp.where(jnp.arange(logprobs.shape[1]) == token, 0.0, -jnp.inf)
        logprobs = jnp.where(rows[:, None], only[None, :], logprobs)
    return logprobs


class Candidates(NamedTuple):
    """The candidates for the next token of each row: every token (`tokens` None), or some, the best first.

    logprobs: in nats; -inf for banned tokens.
    """

    logprobs: Float[Array, "rows number"]
    tokens: Int[Array, "rows number"] | None


def best_candidates(
    logits: Float[Array, "rows vocab"],
    history: Int[Array, "rows length"],
    step: Int[Array, " rows"],
    constraints: Constraints,
    allowed_tokens: Bool[Array, " tokens"] | None,
    bound: Int[Array, " rows"] | None,
    number: int,
) -> Candidates:
    """The best `number` of `next_logprobs`, ranked by a kernel (`kernels/top_k.py`)."""
    number = min(number, logits.shape[1])
    logits, possible, total = _constrained(logits, history, step, constraints, allowed_tokens)
    logprobs, tokens = top_k(logits, possible, number)
    logprobs = logprobs + total
    for rows, token in _forced(step, constraints, bound):
        only = jnp.where((jnp.arange(number) == 0) & (token < logits.shape[1]), 0.0, -jnp.inf)
        logprobs = jnp.where(rows[:, None], only[None, :], logprobs)
        tokens = jnp.where(rows[:, None], token, tokens)
    return Candidates(logprobs, tokens)


def _constrained(
    logits: Float[Array, "rows vocab"],
    history: Int[Array, "rows length"],
    step: Int[Array, " rows"],
    constraints: Constraints,
    allowed_tokens: Bool[Array, " tokens"] | None,
) -> tuple[Float[Array, "rows vocab"], Bool[Array, "#rows vocab"], Float[Array, "#rows 1"]]:
    """Logits, which tokens are allowed, and what is to be added to the logits' log-softmax: 0, but where what was
    penalised are log-probabilities, which are left as they are."""
    vocab, total = logits.shape[-1], jnp.zeros((1, 1), jnp.float32)
    if constraints.repetition_penalty != 1.0:
        if constraints.penalises_logprobs:
            logits = jax.nn.log_softmax(logits.astype(jnp.float32))
        logits = penalise_repetition(logits, generated_tokens(history, step, vocab), constraints.repetition_penalty)
    possible = vocabulary_mask(
        vocab, ends=constraints.ends, roles=(constraints.pad, constraints.bos), allowed_tokens=allowed_tokens
    )[None, :]
    if constraints.no_repeat_ngram:
        possible = possible & ~repeated_ngrams(history, step, constraints.no_repeat_ngram, vocab)
    if constraints.min_tokens:
        possible = possible & ~_too_early(possible, step, constraints)
    logits = logits.astype(jnp.float32)
    if constraints.renormalize_logits:
        # A sum, in which what is not a number stays so, wherever it stands.
        return logits + jnp.where(possible, 0.0, -jnp.inf), possible, total
    if constraints.penalises_logprobs:
        total = jax.nn.logsumexp(logits, axis=1, keepdims=True)
    return logits, possible, total


def _too_early(
    possible: Bool[Array, "#rows vocab"], step: Int[Array, " rows"], constraints: Constraints
) -> Bool[Array, "rows vocab"]:
    """True on an end of sentence before `min_tokens`, where another token is possible."""
    end = constraints.is_end(jnp.arange(possible.shape[1]))
    others = jnp.any(possible & ~end[None, :], axis=1)
    return end[None, :] & (others & (step + 1 < constraints.min_tokens))[:, None]


def _forced(
    step: Int[Array, " rows"], constraints: Constraints, bound: Int[Array, " rows"] | None
) -> Iterator[tuple[Bool[Array, " rows"], int]]:
    """Rows in which only one token is possible, with log-probability 0, and the token."""
    if constraints.forced_bos is not None:
        yield step == 0, constraints.forced_bos
    if constraints.forced_eos and bound is not None:
        yield step + 1 >= bound, constraints.eos


def _mark(
    tokens: Int[Array, "rows places"], marked: Bool[Array, "rows places"], vocab: int
) -> Bool[Array, "rows vocab"]:
    """True on the tokens that stand in a marked place of their row."""
    rows = jnp.broadcast_to(jnp.arange(tokens.shape[0])[:, None], tokens.shape)
    return jnp.zeros((tokens.shape[0], vocab), bool).at[rows, tokens].max(marked)
