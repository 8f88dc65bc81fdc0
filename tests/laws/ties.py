"""Whether two outputs of a beam search differ by a tie alone, shown by the definition with one tie fallen otherwise.

Another order of the same sums moves a score by some 1e-6. Where the definition (decode/reference.py) keeps one of two
extensions that are closer than `TIE`, a search that rounds otherwise may keep the other one, and all that follows may
then differ. That is shown by making the definition's search again with these two exchanged at that one decision.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from plainformer.decode import GenerationSettings, Hypothesis
from plainformer.decode.reference import NextLogits, hypothesis, log_softmax, may_follow, penalised

TIE = 1e-5


class Decision(NamedTuple):
    """At `step` (counted from 1) the extension ranked `kept` stayed in the beam, and `dropped`, worse by `gap`, not."""

    step: int
    kept: int
    dropped: int
    gap: float


class Outcomes(NamedTuple):
    """What the definition finds, and what it would find with one of its ties fallen otherwise."""

    best: Hypothesis
    others: Sequence[tuple[Decision, Hypothesis]]
    narrowest: float  # the gap of its closest decision, tied or not


def search(
    next_logits: NextLogits,
    bound: int,
    settings: GenerationSettings,
    *,
    bos: int,
    eos: int,
    pad: int,
    exchanged: Decision | None = None,
    on_decision: Callable[[Decision], None] = lambda decision: None,
) -> Hypothesis:
    """The best of `reference.beam_search`, with the two extensions of one decision `exchanged`.

    `on_decision` is told every pair, a kept extension and a dropped one, that is closer than `TIE`, and at each step
    the closest pair.
    """
    live: list[tuple[list[int], np.float32]] = [([], np.float32(0.0))]
    finished: list[Hypothesis] = []
    for step in range(1, bound + 1):
        extensions = [
            (total + logprob, row, token)
            for row, (ids, total) in enumerate(live)
            for token, logprob in enumerate(log_softmax(penalised(next_logits(ids), ids, settings.repetition_penalty)))
            if logprob > -np.inf
            and may_follow(ids, token, settings.no_repeat_ngram, bos=bos, ends=(eos,), pad=pad, allowed_tokens=None)
        ]
        extensions.sort(key=lambda extension: (-extension[0], extension[1], extension[2]))
        width = settings.beam_size - len(finished)
        for decision in decisions(step, [float(total) for total, _, _ in extensions], width):
            on_decision(decision)
        if exchanged is not None and exchanged.step == step:
            one, other = exchanged.kept, exchanged.dropped
            extensions[one], extensions[other] = extensions[other], extensions[one]
        kept, before, live = extensions[:width], live, []
        for total, row, token in kept:
            ids = [*before[row][0], token]
            if token == eos or step == bound:
                finished.append(hypothesis(ids, total, settings, (eos,)))
            else:
                live.append((ids, total))
    return max(finished, key=lambda candidate: candidate.score)  # among equals the earliest


def decisions(step: int, totals: Sequence[float], width: int) -> list[Decision]:
    """The pairs across the edge of the beam, of `totals` from best to worst, that are tied; and the closest pair."""
    if not 0 < width < len(totals):
        return []
    pairs = [Decision(step, width - 1, width, totals[width - 1] - totals[width])]
    for kept in reversed(range(width)):
        for dropped in range(width, len(totals)):
            gap = totals[kept] - totals[dropped]
            if gap > TIE:
                break
            if (kept, dropped) != (width - 1, width):
                pairs.append(Decision(step, kept, dropped, gap))
    return pairs


def outcomes(next_logits: NextLogits, bound: int, settings: GenerationSettings, **special: Any) -> Outcomes:
    """The definition's search, and one more for each of its ties. `special`: bos, eos and pad."""
    known: dict[tuple[int, ...], np.ndarray] = {}

    def remembered(ids: list[int]) -> np.ndarray:
        if tuple(ids) not in known:
            known[tuple(ids)] = next_logits(ids)
        return known[tuple(ids)]

    seen: list[Decision] = []
    best = search(remembered, bound, settings, **special, on_decision=seen.append)
    others = [
        (decision, search(remembered, bound, settings, **special, exchanged=decision))
        for decision in seen
        if decision.gap <= TIE
    ]
    return Outcomes(best, others, min((decision.gap for decision in seen), default=math.inf))


def same(one: Hypothesis, other: Hypothesis) -> bool:
    return (one.ids, one.finished) == (other.ids, other.finished)


def explain(one: Hypothesis, other: Hypothesis, define: Callable[[], Outcomes]) -> tuple[bool, str]:
    """Whether two hypotheses that are not the same tie, and what shows it or fails to."""
    if (difference := abs(one.score - other.score)) <= TIE:
        return True, f"the two scores are {difference:.1e} apart"
    best, others, narrowest = define()
    for decision, found in others:
        if (same(best, one) and same(found, other)) or (same(best, other) and same(found, one)):
            return True, (
                f"the definition finds one of them, and the other one with extensions {decision.kept + 1} and "
                f"{decision.dropped + 1} of step {decision.step}, {decision.gap:.1e} apart, exchanged"
            )
    return False, (
        f"the scores are {difference:.1e} apart, and no one tie of the definition's search leads from one to the "
        f"other: it has {len(others)}, its narrowest decision was by {narrowest:.1e}, and it finds\n    {best.ids}"
    )


def compare(
    name: str, found: Sequence[Hypothesis], expected: Sequence[Hypothesis], define: Callable[[int], Outcomes]
) -> bool:
    """Say how two lists of best hypotheses differ; whether they are equal but for ties.

    Equal outputs must have scores within `TIE` too, or within that share of them. `define` gives the definition's
    outcomes for a sentence.
    """
    pairs = list(zip(found, expected, strict=True))
    different = [index for index, pair in enumerate(pairs) if not same(*pair)]
    largest = max((abs(a.score - b.score) for a, b in pairs if same(a, b)), default=0.0)
    print(
        f"{name}: {len(pairs):,} sentences, {len(pairs) - len(different):,} equal token for token; "
        f"largest difference of equal outputs' scores {largest:.1e}"
    )
    ties = 0
    for index in different:
        one, other = pairs[index]
        tied, why = explain(one, other, lambda index=index: define(index))
        ties += tied
        print(f"  sentence {index + 1}, {'a tie' if tied else 'DIFFERENT'}: {why}")
        for each in pairs[index]:
            print(f"    {each.score:.7f} {each.ids}{'' if each.finished else ', cut'}")
    close = all(math.isclose(a.score, b.score, rel_tol=TIE, abs_tol=TIE) for a, b in pairs if same(a, b))
    if not close:
        print("  EQUAL OUTPUTS HAVE OTHER SCORES")
    return len(different) == ties and close
