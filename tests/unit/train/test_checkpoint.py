"""Where checkpoints are, the room they take, and what is said of one that could not be written or read."""

import errno
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import equinox as eqx
import jax
import pytest

from plainformer.errors import WorkError
from plainformer.train.checkpoint import Checkpoints, _reason
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import initial_state


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


def test_their_folder_is_made_with_those_above_it(tmp_path: Path) -> None:
    with Checkpoints(tmp_path / "of a run" / "checkpoints", keep=1, say=print):
        assert (tmp_path / "of a run" / "checkpoints").is_dir()


def test_a_disk_without_the_room_for_one_is_found_before_it_is_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = initial_state(eqx.nn.Linear(3, 5, key=jax.random.key(0)), make_optimizer(constant(peak=0.1)))
    with Checkpoints(tmp_path / "measured", keep=1, say=print) as checkpoints:
        checkpoints.save(state, {})
    taken = sum(path.stat().st_size for path in (tmp_path / "measured").rglob("*") if path.is_file())
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: SimpleNamespace(free=taken - 1))
    with Checkpoints(tmp_path / "full", keep=1, say=print) as checkpoints:
        with pytest.raises(WorkError, match=r"full: a checkpoint could not be written \(No space left on device\)"):
            checkpoints.save(state, {})
        assert checkpoints.steps() == []
