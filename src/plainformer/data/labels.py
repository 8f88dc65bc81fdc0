"""The labels that a classifier is to tell apart, and what held-out texts need for an honest score."""

import difflib
from collections import Counter
from collections.abc import Sequence

from plainformer.data.labelled import Labelled
from plainformer.errors import InputError, some_of


def label_names(train: Labelled) -> tuple[str, ...]:
    """The labels to be told apart, the training set's, sorted; whole numbers by their value.

    Raises:
        InputError: there are fewer than two.
    """
    found = set(train.labels) - {""}
    if len(found) < 2:
        what = f"every text has the label {min(found)!r}" if found else "no text has a label"
        raise InputError(f"{what}, and there is nothing to tell apart", fix="give texts with two labels or more")
    if all(label.isascii() and label.isdigit() for label in found):
        return tuple(sorted(found, key=lambda label: (int(label), label)))
    return tuple(sorted(found))


def check_counts(train: Labelled, least: int) -> None:
    """Refuse a label that too few training texts have: one that occurs once is seldom learnt, and often misspelt.

    Raises:
        InputError: naming the rarest label, and its first line.
    """
    counts = Counter(label for label in train.labels if label)
    label, count = min(counts.items(), key=lambda item: item[1], default=("", least))
    if count < least:
        often = "only once" if count == 1 else f"only {count} times"
        raise InputError(
            f"the label {label!r} occurs {often}",
            where=train.origin[train.labels.index(label)],
            fix=f"give more texts with it, take it out, or set data.min_label_count = {count}",
        )


def check_labels(held_out: Labelled, labels: Sequence[str]) -> None:
    """Refuse held-out texts with a label that the training set does not have.

    Raises:
        InputError: naming the first such line.
    """
    known = {*labels, ""}
    for label, origin in zip(held_out.labels, held_out.origin, strict=True):
        if label not in known:
            near = difflib.get_close_matches(label, labels, n=1)
            fix = f"did you mean {near[0]!r}?" if near else f"the labels there are {some_of(labels)}"
            raise InputError(f"the training set has no label {label!r}", where=origin, fix=fix)


def check_readable(held_out: Labelled, ids: Sequence[list[int]], context: int | None) -> None:
    """Refuse texts that a model cannot read, where all of them have to be: a score of the others would flatter it.

    Blank lines, which have no label either, are nothing to read.

    Args:
        ids: their tokens, one list a text.
        context: the most tokens that a text may have; None where a longer one is truncated.

    Raises:
        InputError: a text with a label is empty, or some are longer than the context; the first such line is named.
    """
    rows = zip(held_out.labels, held_out.texts, ids, held_out.origin, strict=True)
    for label, text, tokens, origin in rows:
        if label and not (tokens and text.strip()):
            raise InputError("the text is empty", where=origin, fix="give it a text, or take the line out")
    if context is None:
        return
    long = [index for index, tokens in enumerate(ids) if len(tokens) > context]
    if long:
        many = f"this text and {len(long) - 1:,} more are" if len(long) > 1 else "the text is"
        raise InputError(
            f"{many} longer than the {context:,} tokens that the model reads",
            where=held_out.origin[long[0]],
            fix="set data.truncate to head, tail or both, or train with a larger data.max_tokens",
        )
