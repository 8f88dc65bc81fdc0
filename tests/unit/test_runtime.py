"""What a process does with its memory."""

import ctypes
from types import SimpleNamespace

import pytest

from plainformer.runtime import return_freed_memory


def test_memory_is_handed_back_before_large_arrays_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """Going through a large heap before each of the hundred small weights of a model took longer than reading them."""
    handed_back: list[int] = []
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: SimpleNamespace(malloc_trim=handed_back.append))
    for needed in (0, 4 * 512 * 511, 2**20, 2**30):
        return_freed_memory(needed)
    assert handed_back == [0, 0]
