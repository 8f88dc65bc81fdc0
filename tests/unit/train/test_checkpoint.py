"""What is said of a checkpoint that could not be written or read."""

import errno
import os

import pytest

from plainformer.train.checkpoint import _reason


@pytest.mark.parametrize(
    ("failure", "said"),
    [
        (OSError(errno.ENOSPC, "the disk is full", "a/file"), "the disk is full"),
        (ValueError(f"many words [source='x' os_error_code='{errno.EDQUOT}']"), os.strerror(errno.EDQUOT)),
        (ValueError("\nthe first line\nand another"), "the first line"),
        (ValueError("x" * 999), "x" * 160),
        (KeyError(), "KeyError"),
    ],
    ids=["of the system", "of TensorStore", "of many lines", "endless", "wordless"],
)
def test_a_failure_is_told_in_a_few_words(failure: Exception, said: str) -> None:
    assert _reason(failure) == said
