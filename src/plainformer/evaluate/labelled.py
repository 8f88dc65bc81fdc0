"""One classifier on one set of labelled texts: which labels it tells, and how well."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from plainformer.data.labelled import Labelled
from plainformer.data.labels import check_labels, check_readable
from plainformer.decode.text_classifier import TextClassifier
from plainformer.errors import InputError
from plainformer.evaluate.classification import ClassificationScores, score_labels
from plainformer.evaluate.report import Likelihood, environment
from plainformer.tokenizer.truncation import said_of_cut

CHUNK = 512  # texts told apart between two reports of progress


@dataclass(frozen=True)
class LabelledReport:
    """One classifier on one set of labelled texts.

    Attributes:
        model, data: what they are called.
        texts: how many texts were told apart: all of the set.
        blank: lines of the set that are blank, and so no texts.
        unknown: tokens that were read as unknown.
        truncated: which texts were not read as a whole, in words; empty where all were.
        likelihood: how well the right labels were predicted; its `tokens` are texts.
        scores: accuracy, macro-F1, and every label's own.
        seconds: wall time.
    """

    model: str
    data: str
    texts: int
    blank: int
    unknown: int
    truncated: str
    likelihood: Likelihood
    scores: ClassificationScores
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values, with the versions that the numbers depend on."""
        return {
            "model": self.model,
            "data": self.data,
            "texts": self.texts,
            "blank": self.blank,
            "unknown": self.unknown,
            "truncated": self.truncated,
            "nll": self.likelihood.nll,
            "scores": self.scores.as_dict(),
            "seconds": self.seconds,
            "versions": environment(),
        }

    def __str__(self) -> str:
        blank = f" ({self.blank:,} blank lines left out)" if self.blank else ""
        return "\n".join(
            [
                f"{self.model} on {self.data}: {self.texts:,} texts{blank} in {self.seconds:.1f} s",
                str(self.scores),
                "",
                f"nll {self.likelihood.nll:z.4f} nats a text",
                *([f"{self.unknown:,} tokens were read as unknown"] if self.unknown else []),
                *([self.truncated] if self.truncated else []),
                *(f"warning: {warning}" for warning in self.scores.warnings),
            ]
        )


def evaluate_labelled(
    labeller: TextClassifier,
    held_out: Labelled,
    *,
    model: str,
    data: str,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[LabelledReport, list[str]]:
    """The report, and the label that each line of the set was given; nothing for a blank line.

    Every text counts. One that is too long is truncated as the labeller does, or an error where it does not. What the
    vocabulary lacks is read as unknown, as in training.

    Args:
        model, data: what to call them in the report.
        progress: called after each chunk with the numbers of texts done and of all.

    Raises:
        InputError: a label is none of the model's, a text cannot be read by it, or there is no text; the line is named.
    """
    began = time.monotonic()
    check_labels(held_out, labeller.labels)
    rows = labeller.tokenizer.encode_batch(held_out.texts)
    most, way = labeller.max_text_tokens, labeller.truncate
    check_readable(held_out, rows, most if way == "no" else None)
    long = [held_out.origin[index] for index, ids in enumerate(rows) if len(ids) > most]
    lines = [index for index, label in enumerate(held_out.labels) if label]
    if not lines:
        raise InputError("there are only blank lines", where=data, fix="give at least one text and its label")
    texts, found = held_out.select(lines), []
    for at in range(0, len(texts), CHUNK):
        part = texts.texts[at : at + CHUNK]
        found.append(labeller.logprobs(part, allow_unknown=True, on_cut=lambda _: None))  # counted above
        if progress is not None:
            progress(min(at + CHUNK, len(texts)), len(texts))
    logprobs = np.concatenate(found)
    given = [labeller.labels[place] for place in logprobs.argmax(axis=1)]
    of_right = logprobs[np.arange(len(texts)), [labeller.labels.index(label) for label in texts.labels]]
    told = [""] * len(held_out)
    for line, label in zip(lines, given, strict=True):
        told[line] = label
    report = LabelledReport(
        model=model,
        data=data,
        texts=len(texts),
        blank=len(held_out) - len(texts),
        unknown=sum(map(labeller.tokenizer.count_unknown, rows)),
        truncated=said_of_cut(len(long), long[0], most, way) if long else "",
        likelihood=Likelihood(nll=0.0 - float(of_right.astype(np.float64).mean()), tokens=len(texts)),
        scores=score_labels(texts.labels, given, labeller.labels),
        seconds=time.monotonic() - began,
    )
    return report, told
