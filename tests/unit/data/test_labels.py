"""The labels to be told apart, and those of held-out texts."""

import pytest
from labelled_rows import labelled

from plainformer.data import check_labels, label_names
from plainformer.data.labels import check_counts, check_readable
from plainformer.errors import InputError


def test_labels_are_sorted_numbers_by_their_value() -> None:
    assert label_names(labelled(("b", "x"), ("a", "y"), ("b", "z"), ("", ""))) == ("a", "b")
    assert label_names(labelled(*((label, "x") for label in ("10", "9", "1")))) == ("1", "9", "10")
    assert label_names(labelled(*((label, "x") for label in ("10", "9", "b")))) == ("10", "9", "b")


def test_one_label_is_nothing_to_tell_apart() -> None:
    with pytest.raises(InputError, match="every text has the label 'a', and there is nothing to tell apart"):
        label_names(labelled(("a", "x"), ("a", "y")))
    with pytest.raises(InputError, match="no text has a label"):
        label_names(labelled(("", "")))


def test_the_rarest_label_is_refused_where_it_is_too_rare() -> None:
    texts = labelled(("a", "x"), ("b", "y"), ("", ""), ("a", "z"), ("b", "u"), ("b", "v"))
    check_counts(texts, 2)
    with pytest.raises(InputError, match=r"train.tsv:1: the label 'a' occurs only 2 times; .*min_label_count = 2"):
        check_counts(texts, 3)
    with pytest.raises(InputError, match=r"train.tsv:2: the label 'b' occurs only once"):
        check_counts(labelled(("a", "x"), ("b", "y"), ("a", "z")), 2)


def test_a_held_out_label_that_training_does_not_have_is_named_with_its_line() -> None:
    check_labels(labelled(("good", "x"), ("", ""), ("bad", "y")), ("bad", "good"))
    with pytest.raises(InputError, match=r"train.tsv:2: the training set has no label 'goood'; did you mean 'good'\?"):
        check_labels(labelled(("bad", "x"), ("goood", "y")), ("bad", "good"))
    with pytest.raises(InputError, match=r"no label '7'; the labels there are bad, good"):
        check_labels(labelled(("7", "y")), ("bad", "good"))


def test_a_held_out_text_that_cannot_be_read_is_named_with_its_line() -> None:
    held_out = labelled(("good", "x"), ("", ""), ("bad", "y"), ("bad", "z"))
    check_readable(held_out, [[5], [], [6, 7], [8]], 2)
    with pytest.raises(InputError, match=r"train.tsv:3: this text and 1 more are longer than the 2 tokens"):
        check_readable(held_out, [[5], [], [6, 7, 8], [6, 7, 8]], 2)
    with pytest.raises(InputError, match=r"train.tsv:4: the text is longer than the 2 tokens"):
        check_readable(held_out, [[5], [], [6, 7], [6, 7, 8]], 2)
    with pytest.raises(InputError, match=r"train.tsv:1: the text is empty"):
        check_readable(held_out, [[], [], [6, 7], [8]], 2)
