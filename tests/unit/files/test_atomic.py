"""Files that are there whole: readable by whom new files are readable."""

import os
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from plainformer.files import atomic


def test_what_a_library_writes_for_its_user_alone_may_be_read_as_other_files_are(tmp_path: Path) -> None:
    usual = os.umask(0o022)
    try:
        with atomic.replacing(tmp_path / "weights") as partial:
            save_file({"a": np.zeros(3, np.float32)}, partial)
        with atomic.replacing(tmp_path / "private") as partial:
            partial.write_bytes(b"x")
            partial.chmod(0o600)
    finally:
        os.umask(usual)
    assert [oct((tmp_path / name).stat().st_mode & 0o777) for name in ("weights", "private")] == ["0o644"] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["private", "weights"]


def test_what_cannot_be_written_is_named_as_it_was_asked_for(tmp_path: Path) -> None:
    """Not the file beside it that is written first."""
    with pytest.raises(OSError, match="No such file") as caught:
        atomic.write_text(tmp_path / "nowhere" / "a.txt", "a")
    assert caught.value.filename == str(tmp_path / "nowhere" / "a.txt")
