"""How well labels were told: accuracy, macro-F1, and for every label precision, recall and F1."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from plainformer.errors import InputError
from plainformer.evaluate.report import versions
from plainformer.table import aligned

MOST_IN_MATRIX = 12
"""Labels for which the confusion matrix is still printed; `as_dict` has it whatever their number."""


@dataclass(frozen=True)
class LabelScores:
    """What one label scored. What would be 0/0 is 0.

    Attributes:
        label: its name.
        precision: of the texts that were given it, the share that have it.
        recall: of the texts that have it, the share that were given it.
        f1: the harmonic mean of the two, 2 · hits / (given + had).
        support: how many texts have it.
    """

    label: str
    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class ClassificationScores:
    """What predicted labels scored against the right ones. All shares are from 0 to 1.

    Attributes:
        accuracy: the share of texts that were given their label.
        macro_f1: the mean of the labels' F1, each label counting alike, over the labels that occur among the right or
            the predicted ones; others are left out.
        labels: the scores of each label.
        confusion: how many texts with label i (row) were given label j (column), in the order of `labels`.
        texts: how many texts were scored.
        warnings: what a reader of the numbers should know, one sentence each.
    """

    accuracy: float
    macro_f1: float
    labels: tuple[LabelScores, ...]
    confusion: tuple[tuple[int, ...], ...]
    texts: int
    warnings: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values, with the versions of what computed them."""
        return {
            **asdict(self),
            "labels": [asdict(label) for label in self.labels],
            "confusion": [list(row) for row in self.confusion],
            "warnings": list(self.warnings),
            "versions": versions("plainformer"),
        }

    def __str__(self) -> str:
        right = sum(row[at] for at, row in enumerate(self.confusion))
        head = f"accuracy {self.accuracy:.2%} ({right:,} of {self.texts:,}), macro-F1 {self.macro_f1:.2%}"
        rows = [("label", "precision", "recall", "F1", "texts")] + [
            (one.label, f"{one.precision:.1%}", f"{one.recall:.1%}", f"{one.f1:.1%}", f"{one.support:,}")
            for one in self.labels
        ]
        lines = [head, "", *aligned(rows)]
        if len(self.labels) <= MOST_IN_MATRIX:
            names = [one.label for one in self.labels]
            counts = zip(names, self.confusion, strict=True)
            matrix = [("right \\ given", *names), *((name, *(f"{count:,}" for count in row)) for name, row in counts)]
            lines += ["", *aligned(matrix)]
        return "\n".join(lines)


def score_labels(right: Sequence[str], given: Sequence[str], labels: Sequence[str] = ()) -> ClassificationScores:
    """Score predicted labels.

    Args:
        right: the label that each text has.
        given: the label that each was given, in the same order.
        labels: the order of the labels in the result; those that it lacks come after, sorted.

    Raises:
        InputError: the counts differ, or there is nothing to score.
    """
    if len(right) != len(given):
        raise InputError(
            f"there are {len(right)} right labels and {len(given)} predicted ones",
            fix="give one predicted label for each right one, in the same order",
        )
    if not right:
        raise InputError("there are no labels to score", fix="give at least one text and its label")
    both = Counter(zip(right, given, strict=True))
    had, got = Counter(right), Counter(given)
    occurring = {*had, *got}
    names = [label for label in dict.fromkeys(labels) if label in occurring]
    names += sorted(occurring - set(names))
    scores = tuple(
        LabelScores(
            label=name,
            precision=both[name, name] / got[name] if got[name] else 0.0,
            recall=both[name, name] / had[name] if had[name] else 0.0,
            f1=2 * both[name, name] / (got[name] + had[name]),
            support=had[name],
        )
        for name in names
    )
    return ClassificationScores(
        accuracy=sum(both[name, name] for name in names) / len(right),
        macro_f1=sum(one.f1 for one in scores) / len(scores),
        labels=scores,
        confusion=tuple(tuple(both[row, column] for column in names) for row in names),
        texts=len(right),
        warnings=tuple(_warnings(had, got)),
    )


def _warnings(had: Counter[str], got: Counter[str]) -> list[str]:
    never = [label for label in sorted(had) if label not in got]
    found = [f"{_listed(never)} was never predicted"] if len(never) == 1 else []
    if len(never) > 1:
        found.append(f"{_listed(never)} were never predicted")
    return found


def _listed(labels: Sequence[str]) -> str:
    more = f" and {len(labels) - 8} more labels" if len(labels) > 8 else ""
    return ", ".join(labels[:8]) + more
