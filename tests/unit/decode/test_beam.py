"""The search against brute force, against its definition, and against answers worked by hand."""

import itertools
import math
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import GenerationSettings, Hypothesis, beam, beam_search, reference
from plainformer.decode.batch import pad_rows
from plainformer.decode.beam_step import top_k
from plainformer.decode.length_penalty import length_weights
from plainformer.decode.settings import Beam
from plainformer.errors import InputError
from plainformer.kernels.cpu import registry

SOURCES = [[5, 6, 0], [3], [], [8, 3, 11, 7, 13]]
BOUNDS = [4, 9, 6, 11]
PENALTIES = [("gnmt", 0.6), ("average", 1.0), ("none", 0.0), ("gnmt", 2.5)]


def search(model: Any, sources: list[list[int]], max_lengths: list[int], settings: GenerationSettings, ids: Any):
    """The hypotheses of every source, in one batch of four rows: few shapes, so few compilations."""
    source, valid = pad_rows([[*source, ids["eos"]] for source in sources], 4, 8, ids["eos"])
    limits = jnp.array([*max_lengths, *[0] * (4 - len(max_lengths))], jnp.int32)
    return beam_search(model, source, valid, limits, settings, length=12, **ids).unbatch()[: len(sources)]


def define(toys: SimpleNamespace, model: Any, source: list[int], bound: int, settings: GenerationSettings):
    """The same for one source, by the definition."""
    return reference.beam_search(toys.next_logits(model, source), bound, settings, **toys.ids)


def agree(found: list[Hypothesis], expected: list[Hypothesis]) -> None:
    assert [(one.ids, one.finished) for one in found] == [(one.ids, one.finished) for one in expected]
    # Two float32 log-softmaxes, a few units in the last place apart at each of at most 11 additions.
    np.testing.assert_allclose([one.logprob for one in found], [one.logprob for one in expected], rtol=1e-5)
    np.testing.assert_allclose([one.score for one in found], [one.score for one in expected], rtol=1e-5)


@pytest.fixture(scope="module", params=["all tokens", "the best by a CPU kernel"])
def _candidates(request: pytest.FixtureRequest) -> Iterator[None]:
    """What rows may go on with: every token, and the best that a CPU kernel finds, as where weights are int8."""
    if request.param == "all tokens":
        yield
        return
    assert registry.is_ready("decoding"), "the tests' extra installs Numba, so that its code is always tested"
    jax.clear_caches()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(beam, "next_logprobs", lambda *_: pytest.fail("compiled without CPU kernels"))
        patch.setattr(beam, "uses_cpu_kernels", lambda _: True)
        yield
    jax.clear_caches()


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
def test_an_exhaustive_beam_finds_the_best_of_all_sequences(toys: SimpleNamespace, penalty: Any, alpha: float) -> None:
    model, ids, bound = toys.make(6), toys.ids, 4
    settings = GenerationSettings(beam_size=130, length_penalty=penalty, alpha=alpha, n_best=7)
    words = [token for token in range(6) if token not in ids.values()]
    endings = [[*body, ids["eos"]] for n in range(bound) for body in itertools.product(words, repeat=n)]
    cut = [list(body) for body in itertools.product(words, repeat=bound)]
    assert len(endings) + len(cut) == 121
    everything = []
    next_logits = toys.next_logits(model, SOURCES[0])
    for sequence in endings + cut:
        total = 0.0
        for place, token in enumerate(sequence):
            logits = next_logits(sequence[:place]).astype(np.float64)
            total += logits[token] - np.log(np.exp(logits).sum())
        length = len(sequence)
        divisor = {"gnmt": ((5 + length) / 6) ** alpha, "average": length**alpha, "none": 1.0}[penalty]
        everything.append((total / divisor, sequence))
    everything.sort(key=lambda pair: -pair[0])
    found = search(model, [SOURCES[0]], [bound], settings, ids)[0]
    finals = [[*one.ids, ids["eos"]] if one.finished else list(one.ids) for one in found]
    assert finals == [sequence for _, sequence in everything[:7]]
    np.testing.assert_allclose([one.score for one in found], [score for score, _ in everything[:7]], rtol=1e-5)


@pytest.mark.parametrize(("penalty", "alpha"), PENALTIES)
@pytest.mark.parametrize("beam", [1, 2, 3, 4, 5])
@pytest.mark.usefixtures("_candidates")
def test_the_beam_equals_its_definition(toys: SimpleNamespace, beam: int, penalty: Any, alpha: float) -> None:
    """Which stops nowhere early and knows no batch: so neither changes a result."""
    settings = GenerationSettings(beam_size=beam, length_penalty=penalty, alpha=alpha, n_best=1 + beam // 2)
    for seed, eos_bonus in [(3, 0.0), (4, 1.5), (5, -6.0)]:
        model = toys.make(seed=seed, eos_bonus=eos_bonus)
        found = search(model, SOURCES, BOUNDS, settings, toys.ids)
        for hypotheses, source, bound in zip(found, SOURCES, BOUNDS, strict=True):
            agree(hypotheses, define(toys, model, source, bound, settings))


@pytest.mark.parametrize("kind", ["shrinking", "full"])
@pytest.mark.parametrize(("ngram", "penalty"), [(1, 1.0), (3, 1.0), (0, 1.7), (2, 0.6)])
@pytest.mark.usefixtures("_candidates")
def test_constraints_in_the_loop_equal_the_definition(
    toys: SimpleNamespace, ngram: int, penalty: float, kind: Beam
) -> None:
    free = GenerationSettings(beam_size=3, n_best=3, beam=kind)
    settings = replace(free, no_repeat_ngram=ngram, repetition_penalty=penalty)
    model = toys.make(seed=6, eos_bonus=-5.0)
    found = search(model, SOURCES, BOUNDS, settings, toys.ids)
    for hypotheses, source, bound in zip(found, SOURCES, BOUNDS, strict=True):
        agree(hypotheses, define(toys, model, source, bound, settings))
    assert found != search(model, SOURCES, BOUNDS, free, toys.ids)  # the constraint was felt


def test_a_greedy_step_is_not_always_best_and_a_wider_beam_finds_the_better_end(toys: SimpleNamespace) -> None:
    """Hand-worked. From the start: a 0.5, b 0.4, end 0.1; after a: end 0.5, rest 0.25 each; after b: end 0.9."""
    ids, (a, b) = toys.ids, (0, 3)
    # Two steps of the toy's hash from a source of hash s = 5 (eos + 1, at place 1): 17 · 5 + prefix.
    first = (0 * 31 + ids["bos"] * 7 + 3) % 997
    after = {word: (first * 31 + word * 7 + 3) % 997 for word in (a, b)}
    table = np.full((997, 7), -np.inf)
    table[:, ids["eos"]] = 0.0
    for row, probabilities in {
        first: {a: 0.5, b: 0.4, ids["eos"]: 0.1},
        after[a]: {a: 0.25, b: 0.25, ids["eos"]: 0.5},
        after[b]: {a: 0.05, b: 0.05, ids["eos"]: 0.9},
    }.items():
        for token, probability in probabilities.items():
            table[(85 + row) % 997, token] = math.log(probability)
    model = toys.make(table=table)
    settings = [GenerationSettings(beam_size=beam, n_best=beam, length_penalty="none") for beam in (1, 2)]
    greedy, wider = (search(model, [[]], [3], setting, ids)[0][0] for setting in settings)
    assert (greedy.ids, wider.ids) == ((a,), (b,))
    assert math.exp(greedy.logprob) == pytest.approx(0.25, rel=1e-5)
    assert math.exp(wider.logprob) == pytest.approx(0.36, rel=1e-5)


def test_ties_break_by_lower_beam_row_then_lower_token(toys: SimpleNamespace) -> None:
    """All tokens alike, pad 2, bos 1 and eos 4 not yet wanted: of 0, 3, 5, 6 the lowest come first."""
    ids = toys.ids
    row = np.zeros(7)
    row[ids["eos"]] = -30.0
    model = toys.make(table=np.tile(row, (997, 1)))
    settings = GenerationSettings(beam_size=3, n_best=3)
    found = search(model, [[9]], [2], settings, ids)[0]
    # Step 1 keeps 0, 3, 5; step 2 fills the beam from row 0 alone.
    assert [one.ids for one in found] == [(0, 0), (0, 3), (0, 5)]
    assert len({one.score for one in found}) == 1


def test_a_finished_hypothesis_leaves_the_beam_and_the_beam_shrinks(toys: SimpleNamespace) -> None:
    """With the end best at every step, K = 3 finishes one a step, at lengths 1, 2 and 3: never more than K."""
    ids = toys.ids
    row = np.array([1.0, -9.0, -9.0, 0.5, 2.0, -9.0, -9.0])
    model = toys.make(table=np.tile(row, (997, 1)))
    settings = GenerationSettings(beam_size=3, n_best=3, length_penalty="none")
    found = search(model, [[7]], [10], settings, ids)[0]
    assert [one.ids for one in found] == [(), (0,), (3,)]


def test_a_sentence_cut_at_its_bound_says_so_and_its_length_has_no_end(toys: SimpleNamespace) -> None:
    model = toys.make(eos_bonus=-50.0)
    settings = GenerationSettings(beam_size=2, n_best=2, length_penalty="average", alpha=1.0)
    found = search(model, SOURCES, BOUNDS, settings, toys.ids)
    for hypotheses, bound in zip(found, BOUNDS, strict=True):
        assert len(hypotheses) == 2
        for one in hypotheses:
            assert not one.finished
            assert len(one.ids) == one.length == bound
            assert one.score == pytest.approx(one.logprob / bound)


def test_pad_bos_and_padding_of_the_vocabulary_are_never_generated(toys: SimpleNamespace) -> None:
    """Though pad and bos are the most probable. A beam wider than the vocabulary gives no NaN and no empty place."""
    table = np.random.default_rng(7).normal(size=(997, 6))
    table[:, [toys.ids["bos"], toys.ids["pad"]]] += 20.0
    model = toys.make(6, table=table, padding=5)
    settings = GenerationSettings(beam_size=13, n_best=13)
    for hypotheses in search(model, SOURCES, BOUNDS, settings, toys.ids):
        assert len(hypotheses) == 13
        assert all(math.isfinite(one.score) for one in hypotheses)
        assert {token for one in hypotheses for token in one.ids} <= {0, 3, 5}


def test_rows_that_only_fill_the_batch_cost_no_step_and_get_nothing(toys: SimpleNamespace) -> None:
    steps: list[None] = []
    model = toys.make(on_step=lambda: steps.append(None))
    assert search(model, SOURCES, [0, 0, 0, 0], GenerationSettings(), toys.ids) == [[], [], [], []]
    jax.effects_barrier()
    assert steps == []
    found = search(model, SOURCES, [0, 9, 0, 0], GenerationSettings(), toys.ids)
    assert [len(hypotheses) for hypotheses in found] == [0, 1, 0, 0]


def test_the_search_stops_when_no_live_hypothesis_can_win(toys: SimpleNamespace) -> None:
    """The end has 0.9 at once: after one step nothing else can reach log 0.9, though beam rows are still alive."""
    steps: list[None] = []
    row = np.full(7, math.log(0.1 / 6))
    row[toys.ids["eos"]] = math.log(0.9)
    model = toys.make(table=np.tile(row, (997, 1)), on_step=lambda: steps.append(None))
    settings = GenerationSettings(beam_size=4)
    found = search(model, [[3]], [12], settings, toys.ids)[0]
    jax.effects_barrier()
    assert len(steps) == 1
    agree(found, define(toys, model, [3], 5, settings))


def test_other_weights_and_length_penalties_do_not_recompile(toys: SimpleNamespace) -> None:
    """The model's Python runs only while it is compiled."""
    settings = GenerationSettings(beam_size=2, n_best=2)
    other = GenerationSettings(beam_size=2, n_best=2, length_penalty="average", alpha=0.123)
    first, second = toys.make(seed=11), toys.make(seed=12)
    before = search(first, SOURCES, BOUNDS, settings, toys.ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(first), "extend", lambda *_: pytest.fail("compiled again"))
        assert search(second, SOURCES, BOUNDS, other, toys.ids) != before


@pytest.mark.parametrize(
    ("many", "k"), [(5, 5), (63, 1), (257, 4), (1000, 7), (640, 3), (524, 8), (645, 10), (2628, 8)]
)
def test_top_k_equals_a_stable_sort(many: int, k: int) -> None:
    """Few distinct values, so that most comparisons are ties, and some -inf."""
    values = np.random.default_rng(many).integers(0, 3, size=(11, many)).astype(np.float32)
    values[values == 0] = -np.inf
    values[3] = -np.inf
    expected = np.argsort(-values, axis=1, kind="stable")[:, :k]
    top, index = top_k(jnp.asarray(values), k)
    np.testing.assert_array_equal(index, expected)
    np.testing.assert_array_equal(top, np.take_along_axis(values, expected, axis=1))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("beam_size", 0),
        ("n_best", 5),
        ("n_best", 0),
        ("beam_size", 2**31),
        ("alpha", -10.1),
        ("alpha", float("nan")),
        ("max_ratio", -1.0),
        ("max_margin", -1),
        ("no_repeat_ngram", -2),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", 1e39),
        ("end_tokens", (1, -1)),
    ],
)
def test_settings_out_of_range_are_refused_by_name(name: str, value: Any) -> None:
    with pytest.raises(InputError, match=f"generation.{name}"):
        GenerationSettings(**{name: value})


def test_the_length_bound_is_the_papers_and_never_none() -> None:
    """Section 6.1: input length + 50."""
    assert GenerationSettings().bound(7) == 57
    assert GenerationSettings(max_ratio=1.5, max_margin=3).bound(5) == 10
    assert GenerationSettings().bound(7, limit=33) == 33
    assert GenerationSettings(max_ratio=0.0, max_margin=0).bound(7) == 1


def test_length_penalties_are_those_of_their_papers() -> None:
    np.testing.assert_allclose(length_weights(GenerationSettings(alpha=0.6), 7)[[1, 7]], [1.0, 2.0**-0.6], rtol=1e-6)
    average = GenerationSettings(length_penalty="average", alpha=0.5)
    np.testing.assert_allclose(length_weights(average, 9), [1, 1, *(n**-0.5 for n in range(2, 10))], rtol=1e-6)
    np.testing.assert_array_equal(length_weights(GenerationSettings(length_penalty="none"), 3), np.ones(4))


@pytest.mark.parametrize("early_stopping", ["never", "heuristic", "first"])
@pytest.mark.parametrize("beam", [1, 2, 4])
@pytest.mark.usefixtures("_candidates")
def test_the_full_beam_equals_its_definition(toys: SimpleNamespace, beam: int, early_stopping: Any) -> None:
    settings = GenerationSettings(
        beam_size=beam,
        length_penalty="average",
        alpha=1.0,
        n_best=1 + beam // 2,
        beam="full",
        early_stopping=early_stopping,
    )
    shrinking = replace(settings, beam="shrinking", early_stopping="never")
    felt = False
    for seed, eos_bonus in [(3, 0.0), (4, 1.5), (5, -6.0), (7, 1.0)]:
        model = toys.make(seed=seed, eos_bonus=eos_bonus)
        found = search(model, SOURCES, BOUNDS, settings, toys.ids)
        for hypotheses, source, bound in zip(found, SOURCES, BOUNDS, strict=True):
            agree(hypotheses, define(toys, model, source, bound, settings))
        felt |= found != search(model, SOURCES, BOUNDS, shrinking, toys.ids)
    assert felt == (beam > 1), "another beam finds other hypotheses, unless it is of one"


def test_ties_in_a_full_beam_are_broken_as_the_definition_does(toys: SimpleNamespace) -> None:
    """All tokens alike, so that whole lengths tie: in a beam of 7, more at once than a short sort keeps in order."""
    model = toys.make(11, table=np.zeros((997, 11)))
    settings = GenerationSettings(beam_size=7, n_best=7, length_penalty="none", beam="full")
    for hypotheses, bound in zip(search(model, SOURCES, BOUNDS, settings, toys.ids), BOUNDS, strict=True):
        agree(hypotheses, define(toys, model, SOURCES[0], bound, settings))


FORCED = [
    {"min_tokens": 4},
    {"forced_bos": 5},
    {"forced_eos": True},
    {"renormalize_logits": True, "no_repeat_ngram": 1},
    {"min_tokens": 99, "forced_bos": 0, "forced_eos": True, "renormalize_logits": True, "no_repeat_ngram": 2},
]


@pytest.mark.parametrize("constraints", FORCED, ids=lambda constraints: ", ".join(constraints))
@pytest.mark.parametrize("beam", ["shrinking", "full"])
@pytest.mark.usefixtures("_candidates")
def test_forced_tokens_and_least_lengths_equal_the_definition(
    toys: SimpleNamespace, beam: Any, constraints: Any
) -> None:
    free = GenerationSettings(beam_size=3, n_best=3, length_penalty="average", beam=beam)
    settings, model = replace(free, **constraints), toys.make(seed=8, eos_bonus=0.5)
    found = search(model, SOURCES, BOUNDS, settings, toys.ids)
    for hypotheses, source, bound in zip(found, SOURCES, BOUNDS, strict=True):
        agree(hypotheses, define(toys, model, source, bound, settings))
        for one in hypotheses:
            # Without repeats a row may run out of tokens, and then ends before its time.
            early = settings.no_repeat_ngram == 0 and one.finished and one.length < min(settings.min_tokens, bound)
            assert not early
            assert one.ids[:1] in {(), (settings.forced_bos,)} or settings.forced_bos is None
            assert one.finished or not settings.forced_eos
    assert found != search(model, SOURCES, BOUNDS, free, toys.ids)  # the rule was felt


def test_a_forced_end_costs_nothing_and_counts_in_the_length(toys: SimpleNamespace) -> None:
    model, (source, bound) = toys.make(seed=5, eos_bonus=-9.0), (SOURCES[0], 4)
    cut = GenerationSettings(beam_size=2, length_penalty="average", alpha=1.0)
    (free,), (forced,) = (
        search(model, [source], [length], settings, toys.ids)[0]
        for length, settings in [(bound - 1, cut), (bound, replace(cut, forced_eos=True))]
    )
    assert (free.ids, free.finished) == (forced.ids, not forced.finished)
    assert forced.logprob == free.logprob
    assert forced.score == pytest.approx(free.logprob / bound)
