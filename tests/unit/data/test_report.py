"""Filtering: every pair is kept or counted, and the report's numbers are worked by hand."""

import json

import pytest

from plainformer.data import Pairs, clean
from plainformer.errors import InputError

UNKNOWN = 1


def pairs(*texts: tuple[str, str]) -> Pairs:
    return Pairs([s for s, _ in texts], [t for _, t in texts], [f"train.tsv:{i}" for i, _ in enumerate(texts, 1)])


def ids(*lengths: int) -> list[list[int]]:
    return [[7] * length for length in lengths]


TEXT = pairs(
    ("a", "A"),  # 2, 3 tokens: kept
    (" \t\u2003", "B"),  # blank source: empty
    ("c", "C"),  # no target token: empty
    ("d", "D"),  # 12 tokens: too long
    ("e", "E"),  # 1 against 4: ratio
    ("a", "A"),  # again: duplicate
    ("a", "F"),  # the same source, another target: kept
    ("g", "G"),  # exactly at both limits: kept
)
SOURCE, TARGET = ids(2, 3, 5, 12, 1, 2, 2, 11), ids(3, 2, 0, 11, 4, 3, 4, 4)
LIMITS = {"source_ids": SOURCE, "target_ids": TARGET, "max_tokens": 11, "max_ratio": 2.75}


def test_every_pair_is_kept_or_counted_under_one_reason():
    kept = clean(TEXT, **LIMITS, drop_duplicates=True)
    report = kept.report
    assert report.dropped == {"empty": 2, "too long": 1, "length ratio": 1, "duplicate": 1}
    assert report.read == report.kept + sum(report.dropped.values()) == 8
    assert report.first == {
        "empty": "train.tsv:2",
        "too long": "train.tsv:4",
        "length ratio": "train.tsv:5",
        "duplicate": "train.tsv:6",
    }
    assert kept.pairs == TEXT.select([0, 6, 7])
    assert kept.source_ids == ids(2, 2, 11)
    assert kept.target_ids == ids(3, 4, 4)


def test_repetitions_that_are_kept_are_counted():
    report = clean(TEXT, **LIMITS).report
    assert (report.kept, report.repeated, report.dropped["duplicate"]) == (4, 1, 0)
    assert any("repeated: 1" in line for line in report.lines())


def test_without_a_ratio_only_length_counts():
    report = clean(TEXT, source_ids=SOURCE, target_ids=TARGET, max_tokens=11).report
    assert (report.kept, report.dropped["length ratio"]) == (5, 0)


def test_a_pair_counts_under_the_first_reason_that_holds():
    text = pairs(("a", "A"), ("b", " "), ("c", "C"))
    report = clean(text, source_ids=ids(1, 30, 30), target_ids=ids(1, 1, 1), max_tokens=5, max_ratio=2.0).report
    assert report.dropped == {"empty": 1, "too long": 1, "length ratio": 0, "duplicate": 0}


def test_lengths_are_those_of_the_kept_pairs():
    text = pairs(*[(f"s{i}", f"t{i}") for i in range(41)])
    lengths = [*range(1, 41), 500]
    report = clean(text, source_ids=ids(*lengths), target_ids=ids(*[3] * 41), max_tokens=100).report
    source = report.source
    assert (source.minimum, source.median, source.mean, source.p95, source.maximum) == (1, 20.5, 20.5, 38, 40)
    assert source.total == 820
    assert (report.target.median, report.target.p95, report.target.total) == (3, 3, 120)


def test_the_unknown_rate_is_per_kept_token():
    text = pairs(("a", "A"), ("b", "B"), ("", "C"))
    source, target = [[UNKNOWN, 5, 6], [5, 5, 5, UNKNOWN, 5], [UNKNOWN]], [[4], [UNKNOWN], [UNKNOWN]]
    report = clean(text, source_ids=source, target_ids=target, max_tokens=9, source_unk_id=UNKNOWN).report
    assert report.source_unknown == 2 / 8
    assert report.target_unknown is None
    assert [line.endswith("unknown 25.00 %") for line in report.lines()] == [False, False, True, False]


def test_held_out_pairs_in_the_training_text_are_counted_apart_from_shared_sources():
    held_out = {"val": pairs(("a", "A"), ("a", "A"), ("a", "X"), ("x", "A"), ("e", "E")), "test": pairs(("z", "Z"))}
    overlap = clean(TEXT, **LIMITS, held_out=held_out).report.held_out
    # ("e", "E") was dropped for its ratio, so the model never sees it.
    assert (overlap["val"].pairs, overlap["val"].both, overlap["val"].source_only) == (5, 2, 1)
    assert (overlap["test"].both, overlap["test"].source_only) == (0, 0)


def test_the_report_tells_everything_in_plain_lines():
    report = clean(TEXT, **LIMITS, drop_duplicates=True, held_out={"val": pairs(("a", "A"), ("g", "?"))}).report
    assert report.lines() == [
        "8 pairs read, 3 kept, 5 dropped",
        "  dropped as empty: 2 (first: train.tsv:2)",
        "  dropped as too long: 1 (first: train.tsv:4)",
        "  dropped as length ratio: 1 (first: train.tsv:5)",
        "  dropped as duplicate: 1 (first: train.tsv:6)",
        "  source tokens a sentence: min 2, median 2, mean 5.0, 95 % 11, max 11",
        "  target tokens a sentence: min 3, median 4, mean 3.7, 95 % 4, max 4",
        "  val: of 2 pairs, 1 are also in the training text, and 1 more by their source sentence",
        "  warning: val is no held-out set: 50% of its pairs are in the training text, and its figures say little "
        "about new text; hold out others",
    ]


def test_the_report_survives_json():
    report = clean(TEXT, **LIMITS, held_out={"val": TEXT}).report
    told = json.loads(json.dumps(report.as_dict()))
    assert told == report.as_dict()
    assert told["held_out"]["val"] == {"pairs": 8, "both": 4, "source_only": 0}


@pytest.mark.parametrize(
    ("text", "source", "target", "limits", "said"),
    [
        (TEXT, ids(1), TARGET, {"max_tokens": 5}, "8 pairs with the ids of 1 sources and 8 targets"),
        (TEXT, SOURCE, TARGET, {"max_tokens": 0}, "must be at least 1"),
        (TEXT, SOURCE, TARGET, {"max_tokens": 5, "max_ratio": 0.5}, "must be at least 1"),
        (TEXT, SOURCE, TARGET, {"max_tokens": 1}, "no pair is left (2 empty, 6 too long)"),
        (pairs(), [], [], {"max_tokens": 5}, "no pair is left (there was none)"),
    ],
)
def test_limits_that_leave_nothing_are_refused(text, source, target, limits, said):
    with pytest.raises(InputError) as caught:
        clean(text, source_ids=source, target_ids=target, **limits)
    assert said in str(caught.value)
