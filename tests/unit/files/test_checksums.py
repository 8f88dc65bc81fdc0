"""`SHA256SUMS`: every flipped bit and every truncation is found, and a save that was killed leaves a good folder."""

import random
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.files import atomic, checksums


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "model"
    made.mkdir()
    with checksums.keeping(made):
        atomic.write_bytes(made / "weights", random.Random(3).randbytes(5_000))
        atomic.write_text(made / "settings", '{"heads": 3}')
        atomic.write_text(made / "README.md", "# a card")
    return made


def flip(path: Path, bit: int) -> None:
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def cut(path: Path, at: int) -> None:
    path.write_bytes(path.read_bytes()[: at // 8])


def load(folder: Path) -> None:
    with checksums.checked(folder):
        pass


@pytest.mark.parametrize("spoil", [flip, cut])
def test_every_damage_is_found_and_its_file_is_named(folder: Path, tmp_path: Path, spoil: Callable) -> None:
    """At 40 random places of random files, the list itself among them."""
    chance = random.Random(7)
    load(folder)
    for number in range(40):
        damaged = shutil.copytree(folder, tmp_path / str(number))
        path = damaged / chance.choice(["weights", "settings", checksums.NAME])
        spoil(path, chance.randrange(8 * path.stat().st_size))
        with pytest.raises(InputError, match=f"{path.name} is not what was written: .*remove .*{checksums.NAME}"):
            load(damaged)
        with pytest.raises(checksums.Damage, match=path.name):
            checksums.check(damaged)


def test_a_card_that_was_edited_is_said_and_used(folder: Path) -> None:
    (folder / "README.md").write_text("# my card")
    with checksums.checked(folder) as edited:
        pass
    assert edited == ["README.md"]
    with pytest.warns(
        UserWarning, match=re.escape("README.md is not what was written; if you changed it, remove SHA256SUMS")
    ):
        checksums.say_edited(folder, "README.md")
    (folder / "README.md").unlink()
    with checksums.checked(folder) as edited:
        pass
    assert not edited


def test_other_tools_can_check_a_folder(folder: Path) -> None:
    command = shutil.which("sha256sum")
    if command is None:
        pytest.skip(
            "sha256sum, the other tool that checks the list here, is no command of this system (coreutils has it)"
        )
    done = subprocess.run([command, "-c", checksums.NAME], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["README.md: OK", "settings: OK", "weights: OK"]
    assert not done.stderr


def test_a_folder_without_a_list_is_read_as_it_is(folder: Path) -> None:
    (folder / checksums.NAME).unlink()
    cut(folder / "weights", 8)
    load(folder)


@pytest.mark.parametrize("line", [f"{'0' * 64}  weights", f"{'0' * 64} *weights", f"SHA256 (weights) = {'0' * 64}"])
def test_a_list_of_another_librarys_is_none_of_ours(folder: Path, line: str) -> None:
    (folder / checksums.NAME).write_text(line + "\n")
    load(folder)
    checksums.check(folder)


def test_a_save_that_changes_nothing_keeps_the_list(folder: Path) -> None:
    before = (folder / checksums.NAME).read_bytes()
    with checksums.keeping(folder):
        atomic.write_text(folder / "settings", '{"heads": 3}')
    assert (folder / checksums.NAME).read_bytes() == before


def test_what_a_save_leaves_alone_keeps_its_checksum_and_its_damage(folder: Path) -> None:
    flip(folder / "weights", 11)
    with checksums.keeping(folder):
        atomic.write_text(folder / "settings", "{}")
        (folder / "README.md").unlink()
    with pytest.raises(InputError, match="weights is not what was written"):
        load(folder)


def test_a_save_that_was_killed_leaves_no_list_of_other_files(folder: Path) -> None:
    class Killed(BaseException):
        pass

    def save(count: int) -> None:
        with checksums.keeping(folder):
            for _ in range(count):
                atomic.write_text(folder / "settings", "{}")
            raise Killed

    # One that could not begin leaves all as it was.
    for count in (0, 1):
        with pytest.raises(Killed):
            save(count)
        load(folder)
    assert not (folder / checksums.NAME).exists()


def test_a_folder_that_is_saved_while_it_is_read_is_not_called_damaged(folder: Path) -> None:
    with checksums.checked(folder), checksums.keeping(folder):
        atomic.write_text(folder / "settings", "{}")
    load(folder)


def test_what_reading_itself_finds_comes_first(folder: Path) -> None:
    cut(folder / "settings", 8)
    with pytest.raises(InputError, match="a brace is missing"), checksums.checked(folder):
        raise InputError("a brace is missing")
