"""What is put on one line can be read back."""

import pytest
from hypothesis import given, strategies as st

from plainformer.cli.escapes import escaped, unescaped
from plainformer.errors import InputError


@given(st.text(st.one_of(st.sampled_from("\n\t\r\\nxu0"), st.characters(exclude_categories=["Cs"]))))
def test_escaped_text_is_one_visible_line_and_stands_for_the_text(text: str) -> None:
    line = escaped(text)
    assert line.isprintable()
    assert unescaped(line, "here") == text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a b\n\tc\\n", "a b\\n\\tc\\\\n"),
        ("\x1b[1m\x85", "\\x1b[1m\\x85"),
        ("नमस्ते\u2028", "नमस्ते\\u2028"),
        ("\U000e0001😀", "\\U000e0001😀"),
    ],
)
def test_escapes_known_by_hand(text: str, line: str) -> None:
    assert escaped(text) == line


@pytest.mark.parametrize("wrong", ["\\", "a\\", "\\d", "\\x1", "\\u12", "\\ud800", "\\U00110000", "\\\n"])
def test_what_is_no_escape_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match=r"is no escape; write \\n"):
        unescaped(wrong, "--stop")
