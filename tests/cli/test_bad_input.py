"""Whatever is put in, the end is one line: what, where, what to do; the right exit code; and nothing is lost."""

import errno
import os
import random
import re
import shutil

import pytest
from interrupted import Interrupted
from small_runs import assert_refused


def folder_of(trained, tmp_path):
    """A copy of the training text, to spoil."""
    return shutil.copytree(trained.data, tmp_path / "spoilt")


def train(cli, trained, data, *options):
    """Try to train on `data`; nothing may be left on the disk."""
    run = data.parent / "run"
    outcome = cli("train", trained.recipe, "--run", run, "--data", data, *options)
    assert not run.exists()
    return outcome


# Data


def test_files_of_different_length_are_told_with_counts_and_the_first_suspicious_line(
    cli, trained, tmp_path, write_pairs
):
    # Each line is told from its neighbours by its length, so that the missing one can be guessed.
    sides = [["a" * (3 + 7 * number % 29) for number in range(40)] for _ in range(2)]
    data = folder_of(trained, tmp_path)
    (data / "train.en").write_text("\n".join(sides[0]) + "\n")
    (data / "train.de").write_text("\n".join(sides[1][:16] + sides[1][17:]) + "\n")
    error = train(cli, trained, data).error(2)
    assert error.startswith(
        f"{data}/train.en:17: train.en has 40 lines and train.de has 39; near line 17 they lose step"
    )


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("train.de", None, "train.de is missing beside train.en"),
        ("val.en", None, "val.en is missing beside val.de"),
        ("train.en", b"", "spoilt/train.en: the file is empty; give a file with one sentence a line"),
        ("train.de", b"ein hund\nein m\xe4dchen\n", "spoilt/train.de:2: not UTF-8: 0xE4 at byte 6 of the line"),
        ("val.de", b"\xff\xfee\0i\0n\0", "val.de: the file begins with the byte order mark of UTF-16"),
        ("train.en", b"PK\x03\x04\0\0\0\0", "spoilt/train.en:1: NUL byte at byte 5 of the line"),
        ("train.en", b"\x1f\x8b\x08\0", "the file is gzip-compressed, and its name does not say so; add .gz"),
    ],
)
def test_a_file_that_is_missing_or_is_no_text_is_one_line(cli, trained, tmp_path, name, content, said):
    data = folder_of(trained, tmp_path)
    if content is None:
        (data / name).unlink()
    else:
        (data / name).write_bytes(content)
    assert said in train(cli, trained, data).error(2)


def test_text_of_which_nothing_is_left_is_one_line(cli, trained, tmp_path, write_pairs):
    data = folder_of(trained, tmp_path)
    write_pairs(data, "val", [("", "ein hund"), ("a dog", "")])
    outcome = train(cli, trained, data)
    assert "no pair is left" in outcome.last_line()
    assert outcome.code == 2


def test_a_data_folder_that_is_not_there_is_one_line_with_the_nearest(cli, trained, tmp_path):
    data = folder_of(trained, tmp_path)
    assert "did you mean 'spoilt'?" in train(cli, trained, data.with_name("spoild")).error(2)


# Recipes


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (["train.stpes=3"], "--set train.stpes=3: unknown key train.stpes; did you mean train.steps"),
        (["model.heads=3"], "d_model 16 is not divisible by 3 heads; choose a number of heads that divides d_model"),
        (["train.steps=many"], 'train.steps is "many" and must be a whole number'),
        (["train.steps"], "--set"),
        (["model.preset=paper-bse"], "did you mean paper-base"),
        (["tokenizer.vocab_size=200"], "200"),
        (["train.mesh=4096"], "train.mesh: 4096 devices wanted"),
    ],
)
def test_a_setting_that_will_not_do_is_one_line(cli, trained, tmp_path, settings, said):
    assert_refused(cli, trained.recipe, tmp_path / "run", settings, said)


def test_bad_data_does_not_cost_the_run_that_was_to_be_overwritten(cli, trained, results, tmp_path):
    run = shutil.copytree(trained.folder, tmp_path / "run")
    data = folder_of(trained, tmp_path)
    (data / "val.de").unlink()
    assert cli("train", trained.recipe, "--run", run, "--data", data, "--overwrite").code == 2
    assert results(run) == results(trained.folder)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("heads = 2", "heads = 3"), "micro.toml:20: model.heads: d_model 16 is not divisible by 3 heads"),
        (("steps = 30", "setps = 30"), "micro.toml:32: unknown key train.setps; did you mean train.steps"),
        (("[train]", "[train"), "micro.toml:31: this is not TOML"),
        (('name = "micro"', 'name = "micro'), "micro.toml:1: this is not TOML"),
    ],
)
def test_a_recipe_that_will_not_do_is_one_line_with_its_line(cli, micro, tmp_path, change, said):
    text = micro.recipe.read_text(encoding="utf-8")
    assert text.count(change[0]) == 1
    micro.recipe.write_text(text.replace(*change), encoding="utf-8")
    assert said in cli("train", micro.recipe, "--run", tmp_path / "run").error(2)
    assert not (tmp_path / "run").exists()


def test_a_recipe_that_is_not_there_is_one_line(cli, micro):
    near = micro.recipe.with_name("mikro.toml")
    assert cli("train", near).error(2) == f"{near}: there is no such recipe; did you mean {micro.recipe}"
    error = cli("train", "multi30k-tny").error(2)
    assert error.startswith("there is no recipe 'multi30k-tny'; name a .toml file, or one of ")
    assert " demo, " in error


# Lines to translate


def test_a_cache_that_cannot_be_used_is_one_line_and_all_works(trained, spawn, finished, tmp_path):
    (tmp_path / "file").write_text("")
    environment = os.environ | {"PLAINFORMER_CACHE": str(tmp_path / "file" / "cache")}
    outcome = finished(spawn("translate", trained.folder, "the dog", env=environment))
    assert outcome.written().count("\n") == 1
    (line,) = [line for line in outcome.err.splitlines() if "reached the length bound" not in line]
    assert line.startswith("plainformer: compiled programs are not kept, and are made anew each time: ")
    assert line.endswith("Not a directory; set PLAINFORMER_CACHE to a folder of your own")


def test_a_line_of_ten_thousand_words_is_refused_with_its_place(cli, trained):
    text = b"the dog\n" + b"word " * 10_000 + b"\nthe cat\n"
    for batch in (1, 64):
        outcome = cli("translate", trained.folder, "--batch", batch, stdin=text)
        assert outcome.code == 2
        assert outcome.out.count("\n") == 1  # the line before it
        assert outcome.last_line().startswith("stdin:2: the line has ")
        assert "at most 1,024 are taken at once; split it into sentences" in outcome.last_line()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"the dog\nein m\xe4dchen\n", "stdin:2: byte 6 of the line is not UTF-8; give UTF-8 text"),
        (b"the dog\nthe\0cat\n", "stdin:2: the line has a NUL: this is not text"),
        (b"\x7fELF\x02\x01\x01\0\0\0" + random.Random(5).randbytes(70_001), "stdin:1: "),
        (random.Random(6).randbytes(70_001), "stdin:1: "),
        ("the dog".encode("utf-16"), "stdin:1: byte 1 of the line is not UTF-8"),
    ],
)
def test_binary_junk_on_standard_input_is_one_line(cli, trained, text, said):
    outcome = cli("translate", trained.folder, "--batch", "1", stdin=text)
    assert outcome.code == 2
    assert outcome.last_line().startswith(said)


def test_binary_junk_in_a_file_is_named_by_the_file(cli, trained, tmp_path):
    (tmp_path / "junk").write_bytes(b"\xff")
    assert cli("translate", trained.folder, "-f", tmp_path / "junk").error(2).startswith(f"{tmp_path}/junk:1: byte 1 ")


# Usage


@pytest.mark.parametrize(
    "words",
    [
        ["trian"],
        ["train"],
        ["train", "demo", "--rnu", "x"],
        ["translate", "run", "--beam", "four"],
        ["translate", "run", "--batch", "0"],
        ["info", "one", "other"],
        ["fill"],
        ["classify", "run", "--probability"],
        ["embed", "run", "--top", "3"],
        ["data", "fetch"],
        ["--colour"],
    ],
    ids=" ".join,
)
def test_unknown_verbs_and_options_are_one_line(cli, words):
    error = cli(*words).error(2)
    assert re.fullmatch(r"[a-z].*; see .*plainformer.* --help", error), error


@pytest.mark.parametrize("words", [["--beam", "2", "a", "--beam=3"], ["-f", "one", "--file", "other"]], ids=" ".join)
def test_an_option_of_which_one_would_be_forgotten_is_refused(cli, words):
    name = "--beam" if "--beam" in words else "--file"
    assert cli("translate", "run", *words).error(2) == f"{name} is given twice; give it once"


def test_what_stands_after_two_hyphens_is_no_option(cli, trained):
    assert cli("translate", trained.folder, "--beam", "2", "--", "--beam", "--beam").out.count("\n") == 2


def test_debug_shows_the_traceback_that_is_hidden_otherwise(trained, monkeypatch):
    from plainformer.cli.main import main
    from plainformer.errors import InputError

    monkeypatch.setattr("sys.argv", ["plainformer", "info", "nothing", "--debug"])
    with pytest.raises(InputError, match="nothing is neither"):
        main()


def test_ctrl_c_is_one_line_after_what_was_done(cli, trained):
    outcome = cli("translate", trained.folder, stdin=Interrupted(b"the dog\n"))
    assert outcome.out.count("\n") == 1
    assert (outcome.code, outcome.err) == (130, "plainformer: interrupted\n")


def test_an_interrupted_process_leaves_at_once(monkeypatch):
    """Taken down in order, with JAX half imported, it would end in a segmentation fault."""
    from plainformer.cli import main

    def interrupted():
        raise main.Interrupted(130)

    left = []
    monkeypatch.setattr(main, "main", interrupted)
    monkeypatch.setattr(os, "_exit", left.append)
    main.run()
    assert left == [130]


# The disk


@pytest.mark.parametrize("place", ["file/run", "file"])
def test_a_folder_that_cannot_be_made_is_one_line(cli, trained, tmp_path, place):
    (tmp_path / "file").write_text("mine")
    error = cli("train", trained.recipe, "--run", tmp_path / place)
    assert str(tmp_path / place) in error.last_line()
    assert error.code in (1, 2)
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_that_may_not_be_written_is_one_line(cli, trained, tmp_path, small_disk):
    """Root may write in spite of the mode, but not to a disk that is mounted to be read."""
    locked = tmp_path / "locked"
    if os.geteuid():
        locked.mkdir(mode=0o555)
        reason = "Permission denied"
    else:
        small_disk(locked, "1m")
        assert os.system(f"mount -o remount,ro '{locked}'") == 0
        reason = "Read-only file system"
    outcome = cli("train", trained.recipe, "--run", locked / "run")
    assert outcome.code == 1
    said = f"the run's folder cannot be written ({reason}); make room, or name another"
    assert outcome.last_line() == f"{locked}/run: {said}"
    assert list(locked.iterdir()) == []


def test_a_report_that_cannot_be_written_is_one_line(cli, trained, tmp_path):
    place = tmp_path / "file" / "result"
    place.parent.write_text("mine")
    outcome = cli("evaluate", trained.folder, "--pairs", "test", "--json", place)
    assert outcome.code == 1
    assert outcome.last_line().startswith(str(place))


@pytest.mark.parametrize("name", ["file/result", "nowhere/result", "folder"])
def test_a_place_that_takes_no_lines_is_refused_before_the_work(cli, trained, tmp_path, monkeypatch, name):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    monkeypatch.setattr("plainformer.runs.evaluation.load_as", None)  # which the work begins with
    error = cli("evaluate", trained.folder, "--pairs", "test", "--output", tmp_path / name).error(2)
    assert error.startswith(str(tmp_path))


@pytest.fixture(scope="module")
def longer(cli, trained, tmp_path_factory):
    """The micro recipe trained for 40 steps on a disk with room."""
    run = tmp_path_factory.mktemp("longer") / "run"
    assert cli("train", trained.recipe, "--run", run, "--set", "train.steps=40").code == 0
    return run


@pytest.mark.parametrize(
    ("full", "left", "said"),
    [
        (".", 0, "recipe.toml: the recipe could not be written ("),
        (".", 1 << 16, ""),  # whichever of checkpoint and model meets the end of the disk first
        ("checkpoints", 1 << 16, "checkpoints: a checkpoint could not be written ("),
    ],
)
def test_a_full_disk_ends_training_and_costs_no_checkpoint(
    cli, spawn, finished, trained, longer, results, tmp_path, small_disk, fill, full, left, said
):
    disk = small_disk(tmp_path / "run" / full, "24m")
    run = shutil.copytree(trained.folder, tmp_path / "run", dirs_exist_ok=True)
    filler = fill(disk, left)
    command = ("train", trained.recipe, "--run", run, "--resume", "--set", "train.steps=40")
    outcome = finished(spawn(*command))
    assert outcome.code == 1, outcome
    assert outcome.last_line().startswith(f"{run}/{said}")
    assert "No space left on device" in outcome.last_line()
    # With room again it goes on from what was there, and nothing shows that it ever stopped.
    filler.unlink()
    resumed = cli(*command)
    assert resumed.code == 0, resumed
    assert "cannot be read" not in resumed.out
    assert int(resumed.out.partition("resuming after step ")[2].split()[0]) >= 30
    assert results(run) == results(longer)


@pytest.mark.parametrize("size", ["4k", "40k"])
def test_a_full_disk_while_a_model_is_written_is_one_line_and_loses_nothing(
    cli, trained, results, tmp_path, small_disk, size
):
    """The first size has no room for the tokenizer, the second none for the weights."""
    run = shutil.copytree(trained.folder, tmp_path / "run", ignore=shutil.ignore_patterns("last"))
    disk = small_disk(run / "last", size)
    command = ("train", trained.recipe, "--run", run, "--resume")
    outcome = cli(*command)
    assert outcome.code == 1, outcome
    assert str(disk) in outcome.last_line()
    assert "No space left on device" in outcome.last_line()
    assert not (disk / "model.safetensors").exists()
    assert {path.name for path in (run / "checkpoints").iterdir()} == {"10", "20", "30"}
    assert cli("info", run / "best").code == 0
    assert os.system(f"mount -o remount,size=4m '{disk}'") == 0
    assert cli(*command).code == 0
    assert results(run) == results(trained.folder)


def test_weights_that_cannot_be_written_leave_the_weights_that_were_there(cli, trained, results, tmp_path, monkeypatch):
    def breaks_off(arrays, path, metadata):
        path.write_bytes(b"the first half of the wei")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    run = shutil.copytree(trained.folder, tmp_path / "run")
    monkeypatch.setattr("plainformer.files.safetensors.save_file", breaks_off)
    outcome = cli("train", trained.recipe, "--run", run, "--resume")
    assert outcome.code == 1, outcome
    weights = run / "last" / "model.safetensors"
    assert outcome.last_line().startswith(f"{weights}: the weights could not be written (")
    assert results(run) == results(trained.folder)
    assert not weights.with_name("model.safetensors.partial").exists()
