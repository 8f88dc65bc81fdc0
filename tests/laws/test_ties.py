"""What `decoding_program.py` takes for a tie: with hypotheses made up, a search worked by hand, and random ones."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from ties import Decision, Outcomes, compare, explain, outcomes, same, search

from plainformer.decode import GenerationSettings, Hypothesis, reference

IDS: Any = {"bos": 1, "eos": 0, "pad": 2}
A, B, X, Y, VOCAB = 3, 4, 5, 6, 9


def made(*ids: int, score: float = -1.0, finished: bool = True) -> Hypothesis:
    return Hypothesis(ids, score, score, finished)


def decided(gap: float, *others: Hypothesis, best: int = A) -> Callable[[int], Outcomes]:
    """What the definition says of any sentence: it finds `best`, and with its ties fallen otherwise `others`."""
    return lambda index: Outcomes(made(best), [(Decision(1, 2, 3, gap), other) for other in others], gap)


def never(index: int) -> Outcomes:
    raise AssertionError("the definition was asked where nothing differs")


def accepts(one: Hypothesis, other: Hypothesis, define: Callable[[int], Outcomes]) -> bool:
    """Beside a sentence on which all agree; either order gives the same."""
    both = [
        compare("made up", [made(Y), *pair], [made(Y), *pair[::-1]], define) for pair in ([one, other], [other, one])
    ]
    assert both[0] == both[1]
    return both[0]


def test_equal_outputs_are_equal() -> None:
    assert compare("made up", [made(A), made(B)], [made(A), made(B, score=-1.000001)], never)


def test_equal_outputs_with_other_scores_are_not() -> None:
    assert not compare("made up", [made(A), made(B)], [made(A), made(B, score=-1.001)], never)


def test_scores_within_the_tolerance_are_a_tie() -> None:
    assert accepts(made(A), made(B, score=-1.000009), never)


def test_what_the_definition_finds_with_a_tie_exchanged_is_a_tie(capsys: pytest.CaptureFixture[str]) -> None:
    assert accepts(made(A), made(B, score=-5.0), decided(1e-6, made(X), made(B, score=-5.0)))
    assert "extensions 3 and 4 of step 1, 1.0e-06 apart, exchanged" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("other", "define"),
    [
        (made(B, score=-5.0), decided(math.inf)),
        (made(B, score=-5.0), decided(1e-6)),  # a narrow decision somewhere explains nothing
        (made(B, score=-5.0), decided(1e-6, made(X))),  # nor one that leads elsewhere
        (made(B, score=-1.00002), decided(1e-6, made(X))),
        (made(B, score=-5.0), decided(1e-6, made(B), best=X)),  # nor one that starts elsewhere
        (made(A, score=-5.0, finished=False), decided(1e-6, made(B))),
    ],
)
def test_two_outputs_that_no_tie_joins_are_different(
    other: Hypothesis, define: Callable[[int], Outcomes], capsys: pytest.CaptureFixture[str]
) -> None:
    assert not accepts(made(A), other, define)
    assert "sentence 2, DIFFERENT" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------------------
# The search
# ---------------------------------------------------------------------------------------------------------------------


def chances(**after: dict[int, float]) -> reference.NextLogits:
    """Next-token logits from probabilities, by the tokens so far ("_" is none); what is not named has no chance."""

    def next_logits(ids: list[int]) -> np.ndarray:
        logits = np.full(VOCAB, -np.inf)
        for token, chance in after["_" + "".join(map(str, ids))].items():
            logits[token] = math.log(chance)
        return logits

    return next_logits


def test_a_tie_known_by_hand_exchanged_gives_the_other_output() -> None:
    """A beam of one: A and B are 4e-6 apart in the logarithm, then A goes on to X and B to Y, each without a doubt."""
    next_logits = chances(
        _={A: 0.5 + 1e-6, B: 0.5 - 1e-6}, _3={X: 1.0}, _4={Y: 0.5, X: 0.5 - 1e-3}, _35={0: 1.0}, _46={0: 1.0}
    )
    best, others, narrowest = outcomes(next_logits, 5, GenerationSettings(beam_size=1), **IDS)
    assert best.ids == (A, X)
    ((decision, other),) = others
    assert (decision.step, decision.kept, decision.dropped) == (1, 0, 1)
    assert decision.gap == narrowest == pytest.approx(4e-6, abs=2e-7)  # float32 near 0.7
    assert (other.ids, other.finished) == ((B, Y), True)
    assert other.logprob == pytest.approx(math.log(0.25), abs=2e-3)


def table(seed: int, *, grid: float = 0.0, noise: float = 0.0) -> reference.NextLogits:
    """Logits from a hash of the tokens so far, perhaps on a grid, perhaps with noise over it."""

    def next_logits(ids: list[int]) -> np.ndarray:
        random = np.random.default_rng([seed, *ids])
        logits = random.normal(size=VOCAB) * 1.5
        logits = np.round(logits / grid) * grid if grid else logits
        return logits + noise * np.random.default_rng([seed + 1, *ids]).uniform(-1.0, 1.0, VOCAB)

    return next_logits


@pytest.mark.parametrize("beam", [1, 2, 5])
@pytest.mark.parametrize("constraint", [{}, {"no_repeat_ngram": 1}, {"repetition_penalty": 1.3, "alpha": 2.0}])
def test_with_nothing_exchanged_it_is_the_definition(beam: int, constraint: dict[str, Any]) -> None:
    settings = GenerationSettings(beam_size=beam, **constraint)
    for seed in range(10):
        gaps: list[float] = []
        decisions: list[Decision] = []
        found = search(table(seed), 6, settings, **IDS, on_decision=decisions.append)
        (expected,) = reference.beam_search(table(seed), 6, settings, **IDS, on_cut=gaps.append)
        assert found == expected
        # There in float32, here not: a unit in the last place of a sum below 16.
        assert [decision.gap for decision in decisions] == pytest.approx(gaps, abs=1e-6)


@pytest.mark.parametrize(("beam", "grid"), [(1, 0.02), (2, 0.05)])
def test_what_noise_far_below_the_tolerance_changes_is_shown_to_tie(beam: int, grid: float) -> None:
    """The grid makes ties, where there are any mostly one, and opposite noise has each of them fall otherwise."""
    settings, ties, told, outputs = GenerationSettings(beam_size=beam), 0, [], []
    for seed in range(200):
        (found,) = reference.beam_search(table(seed, grid=grid, noise=-1e-6), 5, settings, **IDS)
        told.append(outcomes(table(seed, grid=grid, noise=1e-6), 5, settings, **IDS))
        outputs.append(found)
        ties += not same(found, told[-1].best)
    assert ties >= 3
    assert compare("noise", outputs, [one.best for one in told], told.__getitem__)
    # Another sentence's output is none of those that its ties lead to.
    others = [*outputs[1:], outputs[0]]
    for other, one in zip(others, told, strict=True):
        assert same(other, one.best) or not explain(other, one.best, lambda one=one: one)[0]
