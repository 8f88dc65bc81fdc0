"""What is waited for is shown while it lasts, and taken away before who waited goes on."""

import time

import pytest

from plainformer import waiting


def test_what_is_waited_for_is_shown_and_taken_away(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[list[str] | None] = []
    monkeypatch.setattr(waiting, "EVERY", 0.01)
    monkeypatch.setattr(waiting, "_clear", None)
    waiting.watch(lambda what: said.append(list(what)), lambda: said.append(None))

    def wait_until(shown: list[str]) -> None:
        end = time.monotonic() + 10.0
        while shown not in said and time.monotonic() < end:
            time.sleep(0.01)
        assert shown in said

    with waiting.waiting_for("kernels"):
        wait_until(["kernels"])
        with pytest.raises(ZeroDivisionError), waiting.waiting_for("a program"):
            raise ZeroDivisionError
        assert None not in said  # something is still waited for
        with waiting.waiting_for("another"):
            wait_until(["kernels", "another"])
    assert said[-1] is None
    assert waiting.under_way() == {}
    length = len(said)
    time.sleep(0.05)
    assert len(said) == length  # nothing to show
