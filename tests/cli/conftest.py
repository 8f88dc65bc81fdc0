"""What these tests share: the command line, in this process or in one of its own, and a tiny trained run."""

import io
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from small_runs import training

Pair = tuple[str, str]
MadeOnce = Callable[[str, Callable[[Path], Any]], tuple[Path, Any]]

WHO = {
    "the man": "der mann",
    "the woman": "die frau",
    "a child": "ein kind",
    "the dog": "der hund",
    "a cat": "eine katze",
    "the bird": "der vogel",
}
DOES = {"sees": "sieht", "likes": "mag", "finds": "findet", "draws": "malt", "wants": "will"}
WHAT = {"an apple": "einen apfel", "the house": "das haus", "a book": "ein buch", "the sea": "das meer"}

RECIPE = """\
name = "micro"

[data]
folder = "{folder}"
source = "en"
target = "de"
train = "train"
dev = "val"
max_tokens = 40
batch_tokens = 700
buckets = 1

[tokenizer]
kind = "bpe"
vocab_size = 330

[model]
d_model = 16
d_ff = 24
heads = 2
encoder_layers = 1
decoder_layers = 1
norm_position = "pre"
dropout = 0.1

{training}
[decode]
beam_size = 2
max_margin = 3
"""


@dataclass(frozen=True)
class Outcome:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    def error(self, code: int, *, out: str = "") -> str:
        """The error of a command that ended with `code`, having written `out` and then one line on stderr."""
        assert (self.code, self.out) == (code, out), self
        return self.last_line()

    def written(self) -> str:
        """What a command wrote that ended well."""
        assert self.code == 0, self
        return self.out

    def last_line(self) -> str:
        """The one line of error, after lines of progress if there are any, and of files that were edited."""
        *before, line = self.err.splitlines()
        assert self.err.endswith("\n"), self
        edited = "if you changed it, remove SHA256SUMS beside it"
        assert all(one.startswith(("step ", "compiling ", '  "')) or one.endswith(edited) for one in before), self.err
        assert line.startswith("plainformer: "), self.err
        return line.removeprefix("plainformer: ")


@dataclass(frozen=True)
class Micro:
    """A recipe file and the folder of the text that it trains on."""

    recipe: Path
    data: Path


@dataclass(frozen=True)
class Trained:
    """A finished run of the micro recipe."""

    recipe: Path
    data: Path
    folder: Path
    outcome: Outcome


def _run_here(*arguments: object, stdin: bytes | BinaryIO = b"") -> Outcome:
    from plainformer.cli.main import main

    source = io.BytesIO(stdin) if isinstance(stdin, bytes) else stdin
    out, err = io.BytesIO(), io.BytesIO()
    code: Any = 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["plainformer", *map(str, arguments)])
        patch.setattr(sys, "stdin", io.TextIOWrapper(source, encoding="utf-8"))
        patch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="utf-8", write_through=True))
        patch.setattr(sys, "stderr", io.TextIOWrapper(err, encoding="utf-8", write_through=True))
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code or 0
        written, told = out.getvalue().decode(), err.getvalue().decode()
    return Outcome(code, written, told)


@pytest.fixture(scope="session")
def cli() -> Callable[..., Outcome]:
    """`cli("translate", run, stdin=b"...")`: the command line in this process, without the cost of starting one."""
    return _run_here


def _spawn(
    *arguments: object, program: Sequence[str] = ("-m", "plainformer"), **options: Any
) -> subprocess.Popen[bytes]:
    pipe = subprocess.PIPE
    settings: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": pipe, "stderr": pipe} | options
    process: Any = subprocess.Popen([sys.executable, *program, *map(str, arguments)], **settings)
    return process


@pytest.fixture(scope="session")
def spawn() -> Callable[..., subprocess.Popen[bytes]]:
    """The command line in a process of its own; it takes seconds to start. `program`: how Python is told of it."""
    return _spawn


def _finished(process: subprocess.Popen[bytes], stdin: bytes | None = None) -> Outcome:
    out, err = process.communicate(stdin, timeout=600)  # on a busy machine, too
    return Outcome(process.returncode, out.decode(), err.decode())


@pytest.fixture(scope="session")
def finished() -> Callable[..., Outcome]:
    """Wait for a process to end."""
    return _finished


def _write_pairs(folder: Path, name: str, pairs: Sequence[Pair]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix, side in (("en", 0), ("de", 1)):
        (folder / f"{name}.{suffix}").write_text("".join(pair[side] + "\n" for pair in pairs), encoding="utf-8")


@pytest.fixture(scope="session")
def write_pairs() -> Callable[..., None]:
    """Write `name.en` and `name.de` into a folder."""
    return _write_pairs


def _micro(folder: Path) -> Micro:
    """80 distinct pairs, a blank and an overlong one to train on, 7 to watch, 11 to score, all different."""
    pairs = [
        (f"{who} {does} {what}", f"{WHO[who]} {DOES[does]} {WHAT[what]}")
        for who, does, what in itertools.product(WHO, DOES, WHAT)
    ]
    random.Random(3).shuffle(pairs)
    data = folder / "data"
    _write_pairs(data, "train", [*pairs[:80], ("", ""), ("the dog " * 60, "der hund " * 60)])
    _write_pairs(data, "val", pairs[80:87])
    _write_pairs(data, "test", pairs[87:98])
    recipe = folder / "micro.toml"
    recipe.write_text(RECIPE.format(folder=data, training=training(steps=30, warmup=10, keep_last=3)), encoding="utf-8")
    return Micro(recipe, data)


@pytest.fixture
def micro(tmp_path: Path) -> Micro:
    """The micro recipe, and text of its own to change."""
    return _micro(tmp_path)


@pytest.fixture(scope="session")
def trained(made_once: MadeOnce) -> Trained:
    """The micro recipe, trained once. To be read, and copied where it must change."""

    def make(root: Path) -> tuple[int, str, str]:
        outcome = _run_here("train", _micro(root).recipe, "--run", root / "run")
        assert outcome.code == 0, outcome
        return astuple(outcome)

    root, outcome = made_once("micro", make)
    return Trained(root / "micro.toml", root / "data", root / "run", Outcome(*outcome))


TEXT = ["the moon and the sun\n", "a man, a cat\n", "über 10 Nächte — नमस्ते 😀\n"]


@pytest.fixture(scope="session")
def models(made_once: MadeOnce) -> dict[str, Path]:
    """Folders of small random models: language models of three kinds of tokens, a translator, and encoders.

    The context is of 16 tokens; `wide` has more. `endless` has no token that ends a text. `masked` and `classifier`
    have characters for tokens, `masked-bpe` has words with the space before them.
    """
    root, names = made_once("models", _save_small_models)
    return {name: root / name for name in names}


def _save_small_models(root: Path) -> list[str]:
    """Those of `models`, each in the folder of its name; all names."""
    import jax

    from plainformer.folder import ModelFolder, save_folder
    from plainformer.models import (
        Classifier,
        EncoderConfig,
        LanguageModel,
        LanguageModelConfig,
        MaskedLanguageModel,
        Transformer,
        TransformerConfig,
    )
    from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer, train_bpe, train_character

    tokenizers = {
        "character": train_character(TEXT[:2]),
        "byte": byte_tokenizer(),
        "bpe": train_bpe(TEXT, 340, lead_space=False),
    }
    # Without a token that ends a text.
    tokenizers["character"].save(root / "tokenizer.json")
    roles = root / "tokenizer_config.json"
    roles.write_text(json.dumps({**json.loads(roles.read_text()), "eos_token": None}))
    tokenizers["endless"] = Tokenizer.load(root / "tokenizer.json")
    tokenizers["wide"] = tokenizers["character"]
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 23, "heads": 2}

    def sharpened(drawn: Any) -> Any:
        """Matrices larger than at the start, so that predictions are far from uniform."""
        return jax.tree.map(lambda leaf: 2.0 * leaf if leaf.ndim == 2 else leaf, drawn)

    for name, tokenizer in tokenizers.items():
        context = 64 if name == "wide" else 16
        config = LanguageModelConfig(vocab=tokenizer.vocab_size, layers=1, context=context, **sizes)
        model = sharpened(LanguageModel(config, key=jax.random.key(0)))
        save_folder(ModelFolder(model, tokenizer, tokenizer, {"max_tokens": 33, "seed": 5}), root / name)
    tokenizer = tokenizers["character"]
    vocab = tokenizer.vocab_size
    translator = Transformer(
        TransformerConfig(vocab, vocab, encoder_layers=1, decoder_layers=1, **sizes), key=jax.random.key(0)
    )
    save_folder(ModelFolder(translator, tokenizer, tokenizer), root / "translator")
    gap, encoders = SpecialTokens(mask="<mask>"), ("masked", "masked-bpe", "classifier")
    for name, labels in zip(encoders, ((), (), ("sky", "sea", "neither")), strict=True):
        tokenizer = (
            train_bpe(TEXT, 340, special=gap) if name == "masked-bpe" else train_character(TEXT[:2], special=gap)
        )
        config = EncoderConfig(vocab=tokenizer.vocab_size, layers=1, context=16, labels=labels, **sizes)
        model = sharpened((Classifier if labels else MaskedLanguageModel)(config, key=jax.random.key(0)))
        save_folder(ModelFolder(model, tokenizer, tokenizer), root / name)
    return [*tokenizers, "translator", *encoders]


@pytest.fixture(scope="session")
def checkpoint(models: dict[str, Path], made_once: MadeOnce) -> Path:
    """A GPT-2 folder, exported from the model of byte pairs."""

    def make(root: Path) -> None:
        said = _run_here("export", models["bpe"], "--to", "huggingface", "-o", root / "moon").written()
        assert said == f"{root / 'moon'}: GPT2LMHeadModel\n"

    root, _ = made_once("exported", make)
    return root / "moon"


@pytest.fixture(scope="session")
def spoilt(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """`spoilt(folder)`: the model with every weight so large that what it gives is not finite, or what is given."""
    import numpy as np
    from safetensors.numpy import load_file, save_file

    def spoil(folder: Path, weight: float = 1e38) -> Path:
        copy = shutil.copytree(folder, tmp_path_factory.mktemp("spoilt") / "model")
        weights = load_file(copy / "model.safetensors")
        save_file({name: np.full_like(value, weight) for name, value in weights.items()}, copy / "model.safetensors")
        (copy / "SHA256SUMS").unlink(missing_ok=True)
        return copy

    return spoil


def _results(run: Path) -> dict[str, object]:
    """All that must not depend on how often a run was interrupted: weights to the byte, and every figure but times."""
    from plainformer.train.log import is_timing

    lines = (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = [{key: value for key, value in json.loads(line).items() if not is_timing(key)} for line in lines]
    # An adapter's are in adapter_model.safetensors.
    files = {name: sorted((run / name).glob("*model.safetensors")) for name in ("last", "best", "average")}
    weights = {name: file.read_bytes() for name, (file,) in files.items()}
    return {"metrics": metrics, **weights}


@pytest.fixture(scope="session")
def results() -> Callable[[Path], dict[str, object]]:
    """What a run came to, for comparing two."""
    return _results


@pytest.fixture
def check_interruption(cli, results, tmp_path, monkeypatch) -> Callable[[Path, Path, int], None]:
    """`check_interruption(recipe, run, step)`: stopped by a signal in that step and resumed, a run ends as `run` did,
    weights and figures to the bit."""

    def check(recipe: Path, run: Path, step: int) -> None:
        from plainformer.train import loop

        real, raised = loop._due, []

        def due(now: int, every: int, last: int | None = None) -> bool:
            if now == step and not raised:
                raised.append(now)
                signal.raise_signal(signal.SIGINT)
            return real(now, every, last)

        with monkeypatch.context() as patch:
            patch.setattr(loop, "_due", due)
            assert cli("train", recipe, "--run", tmp_path / "run").code == 130
        assert raised == [step]
        resumed = cli("train", recipe, "--run", tmp_path / "run", "--resume")
        assert resumed.code == 0, resumed
        assert f"resuming after step {step}\n" in resumed.out
        assert results(tmp_path / "run") == results(run)

    return check


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    """`small_disk(folder, "3m")`: `folder` on a disk of its own with so much room; skips where nobody may mount one."""
    mounted: list[Path] = []

    def mount(folder: Path, size: str) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            pytest.skip("a disk of a few megabytes, to be filled up, needs the mount command, which this system lacks")
        if done.returncode:
            pytest.skip(
                "a disk of a few megabytes, to be filled up, may not be mounted here; on Linux root may,"
                " and so may anyone under `unshare --user --map-root-user --mount`"
            )
        mounted.append(folder)
        return folder

    yield mount
    for folder in reversed(mounted):
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


@pytest.fixture
def fill() -> Callable[[Path, int], Path]:
    """`fill(folder, left)`: a file that takes all the room of the folder's disk but `left` bytes."""

    def take(folder: Path, left: int) -> Path:
        free = os.statvfs(folder)
        filler = folder / "filler"
        with filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize - left)
        return filler

    return take
