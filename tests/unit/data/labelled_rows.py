"""Labelled texts written out in a test."""

from plainformer.data import Labelled


def labelled(*rows: tuple[str, str]) -> Labelled:
    """Each a label and a text, as if they were the lines of train.tsv."""
    origin = [f"train.tsv:{number}" for number in range(1, len(rows) + 1)]
    return Labelled([text for _, text in rows], [label for label, _ in rows], origin)
