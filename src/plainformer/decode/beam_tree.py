"""The tree of a beam search: every extension that was kept, and the best of those that were not, with the reason.

It is searched here as `reference.py` defines it, by the log-probabilities that `beam.py` goes by
(`constraints.next_logprobs`), with a full forward for each step in the place of a cache; the ordinary search records
nothing, and is as fast as it was. Tests hold the two equal.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.constraints import Constraints, next_logprobs
from plainformer.decode.length_penalty import length_weights
from plainformer.decode.protocols import EncoderDecoder, Hypothesis
from plainformer.decode.settings import GenerationSettings
from plainformer.programs.compiled import compiled
from plainformer.shapes import Array, Bool, Float, Int

Fate = Literal["live", "finished", "pruned", "stopped"]
ROOT = -1
PLACES = 16  # tokens that targets are padded to, or a multiple: every new number is compiled anew


@dataclass(frozen=True)
class Node:
    """One token after a hypothesis, as a step of the search saw it.

    Attributes:
        number: its place in `BeamTree.nodes`. parent: that of the node before it, or `ROOT`.
        step: how many tokens the hypothesis has with it.
        logprob: the token's log-probability (nats), given those before it. total: the sum along the path.
        score: `total` over the length penalty.
        rank: its place among all extensions of the step, 0 being the best.
        fate: `live`, it went on; `finished`; `pruned`; `stopped`: it was live when the search ended.
        why: in words.
    """

    number: int
    parent: int
    step: int
    token: int
    logprob: float
    total: float
    score: float
    rank: int
    fate: Fate
    why: str


@dataclass(frozen=True)
class BeamTree:
    """What a beam search looked at, step by step, and what it found.

    Attributes:
        nodes: in the order of the steps; within one, best first.
        hypotheses: the `n_best` found, best first, as the search gives them.
        bound: the most tokens of an output.
    """

    nodes: tuple[Node, ...]
    hypotheses: tuple[Hypothesis, ...]
    bound: int

    def path(self, number: int) -> tuple[Node, ...]:
        """The nodes from the first token to this one."""
        found: list[Node] = []
        while number != ROOT:
            found.append(self.nodes[number])
            number = found[-1].parent
        return tuple(reversed(found))

    def children(self, number: int = ROOT) -> tuple[Node, ...]:
        """The nodes after one; of `ROOT`, the first tokens."""
        return tuple(node for node in self.nodes if node.parent == number)


def beam_tree(
    model: EncoderDecoder,
    source: Sequence[int],
    settings: GenerationSettings,
    bound: int,
    *,
    bos: int,
    eos: int,
    pad: int,
    allowed_tokens: Bool[Array, " tokens"] | None = None,
    pruned: int | None = None,
) -> BeamTree:
    """The tree of one sentence.

    Args:
        source: ids, its end of sentence among them.
        bound: the most tokens of an output.
        allowed_tokens: True on the ids that may be generated, None for all.
        pruned: how many of the extensions that a step leaves out are recorded, the best, beside
            the best of each hypothesis; as many as the beam has rows,
            if not given.
    """
    search = _Search(settings, Constraints.of(settings, bos=bos, eos=eos, pad=pad), bound, pruned)
    ids = jnp.asarray([source], jnp.int32)
    while search.live:
        rows = [search.ids(number) for number, _ in search.live]
        length = -(-(len(rows[0]) + 1) // PLACES) * PLACES
        filled = [[bos, *row, *[pad] * (length - 1 - len(row))] for row in rows]
        filled += [filled[0]] * (settings.beam_size - len(rows))  # one shape for all steps
        given = jnp.asarray(filled, jnp.int32), jnp.int32(len(rows[0])), jnp.int32(bound)
        logprobs = np.asarray(_next(model, ids, *given, search.constraints, allowed_tokens))
        search.extend(logprobs[: len(rows)])
    best = [search.hypothesis(number) for number in search.finished[: settings.n_best]]
    return BeamTree(tuple(search.nodes), tuple(best), bound)


class _Search:
    """The search as it stands: the tree so far, and the numbers of the hypotheses that live and that are finished."""

    def __init__(self, settings: GenerationSettings, constraints: Constraints, bound: int, pruned: int | None) -> None:
        self.settings, self.constraints, self.bound = settings, constraints, bound
        self.pruned = settings.beam_size if pruned is None else pruned
        self.weights = length_weights(settings, bound)
        self.nodes: list[Node] = []
        self.live: list[tuple[int, np.float32]] = [(ROOT, np.float32(0.0))]
        self.finished: list[int] = []
        self.is_full = settings.beam == "full" and settings.beam_size > 1
        self.step = 0

    def ids(self, number: int) -> list[int]:
        found: list[int] = []
        while number != ROOT:
            found.append(self.nodes[number].token)
            number = self.nodes[number].parent
        return found[::-1]

    def extend(self, logprobs: NDArray[np.float32]) -> None:
        """One token more, given the log-probabilities (live, vocab) of each hypothesis' next."""
        self.step += 1
        beam, vocab = self.settings.beam_size, logprobs.shape[1]
        totals = (np.array([total for _, total in self.live], np.float32)[:, None] + logprobs).ravel()
        order = np.argsort(-totals, kind="stable")  # so that the lower row wins, then the lower token
        width = (1 + len(self.constraints.ends)) * beam if self.is_full else beam - len(self.finished)
        ranks = dict.fromkeys([*range(min(width + self.pruned, len(order))), *self._best_of_each(order, vocab)])
        shown = [(rank, int(order[rank])) for rank in sorted(ranks) if totals[order[rank]] > -np.inf]
        last = totals[order[min(width, len(order)) - 1]]
        survivors: list[tuple[int, np.float32]] = []
        for rank, place in shown:
            row, token = divmod(place, vocab)
            fate, why = self._fate(rank, token, width, last - totals[place])
            if fate == "live" and len(survivors) == beam:
                fate, why = "pruned", f"{beam} better ones go on"
            number = self._add(self.live[row][0], token, float(logprobs[row, token]), totals[place], rank, fate, why)
            if fate == "live":
                survivors.append((number, totals[place]))
            elif fate == "finished":
                self.finished.append(number)
        self.finished.sort(key=lambda number: -self.nodes[number].score)  # stable: among equals the earlier first
        for number in self.finished[beam:]:
            self._change(number, "pruned", f"it ended, and {beam} that ended are better")
        self.finished = self.finished[:beam]
        self.live = survivors
        if survivors and (why := self._why_over()):
            for number, _ in survivors:
                self._change(number, "stopped", why)
            self.live = []

    def _best_of_each(self, order: NDArray[np.int64], vocab: int) -> list[int]:
        """The ranks of the best extension of each hypothesis, so that none ends without a reason."""
        return [int(np.argmax(order // vocab == row)) for row in range(len(self.live))]

    def _fate(self, rank: int, token: int, width: int, gap: np.float32) -> tuple[Fate, str]:
        if rank >= width:
            return "pruned", f"the beam has room for {width}, and the last of these is {gap:.3f} nats better"
        if token in self.constraints.ends:
            if self.is_full and rank >= self.settings.beam_size:
                return "pruned", f"it ended, and is not among the best {self.settings.beam_size} of the step"
            return "finished", "it ended"
        if self.step >= self.bound:
            if self.is_full and rank >= self.settings.beam_size:
                return "pruned", f"it is cut, and is not among the best {self.settings.beam_size} of the step"
            return "finished", f"cut at the most tokens of an output, {self.bound}"
        return "live", f"number {rank + 1} of the {width} best"

    def _why_over(self) -> str | None:
        """Why the search ends here, or None: as `beam_step` has it."""
        scores = [self.nodes[number].score for number in self.finished]
        now, last = self.weights[self.step], self.weights[self.bound]
        if self.is_full:
            if len(scores) < self.settings.beam_size:
                return None
            if self.settings.early_stopping == "first":
                return f"{len(scores)} have ended, which is enough (early_stopping is first)"
            hoped = self.live[0][1] * (min(now, last) if self.settings.early_stopping == "never" else now)
            needed, is_over = scores[-1], hoped <= scores[-1]
        else:
            if len(scores) < self.settings.n_best:
                return None
            hoped = max(total for _, total in self.live) * min(now, last)
            needed, is_over = scores[self.settings.n_best - 1], hoped <= scores[self.settings.n_best - 1]
        return f"none that lives could score above {hoped:.3f}, and {needed:.3f} is reached" if is_over else None

    def _add(self, parent: int, token: int, logprob: float, total: np.float32, rank: int, fate: Fate, why: str) -> int:
        score = float(total * self.weights[self.step])
        self.nodes.append(
            Node(len(self.nodes), parent, self.step, token, logprob, float(total), score, rank, fate, why)
        )
        return len(self.nodes) - 1

    def _change(self, number: int, fate: Fate, why: str) -> None:
        self.nodes[number] = replace(self.nodes[number], fate=fate, why=why)

    def hypothesis(self, number: int) -> Hypothesis:
        ids, node = self.ids(number), self.nodes[number]
        ended = node.token in self.constraints.ends
        return Hypothesis(tuple(ids[:-1] if ended else ids), node.score, node.total, ended)


@compiled
def _next(
    model: EncoderDecoder,
    source: Int[Array, "1 source"],
    target: Int[Array, "rows target"],
    written: Int[Array, ""],
    bound: Int[Array, ""],
    constraints: Constraints,
    allowed_tokens: Bool[Array, " tokens"] | None,
) -> Float[Array, "rows vocab"]:
    """Log-probabilities of the next token, `written` of each target being there behind its beginning of sentence."""
    rows = target.shape[0]
    sources = jnp.broadcast_to(source, (rows, source.shape[1]))
    logits = jnp.take(model(sources, jnp.ones(sources.shape, bool), target), written, axis=1)
    steps, bounds = jnp.broadcast_to(written, (rows,)), jnp.broadcast_to(bound, (rows,))
    return next_logprobs(logits, target[:, 1:], steps, constraints, allowed_tokens, bounds)
