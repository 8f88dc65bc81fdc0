"""Training as a user runs it, everything included: batches made, steps done, losses logged.

plainformer's `run_recipe`, which is what `plainformer train` calls, beside Joey NMT's `train`, each in a thread of its
contestant's process. A turn is so many batches, from one logged line to the next; between turns the thread waits at its
logging, where we hold it. The first turn, not counted, ends with the first line: reading, compiling and the first
batches are before that. Nobody evaluates or saves in between. Both count the target tokens that are no padding, and
both end a batch at 4,096 tokens, padding included. Ours are packed in one row, so that next to all of them are real;
Joey NMT has neither packing nor length buckets, so fewer of its tokens are.
"""

import json
import queue
import re
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import multi30k
from benchmarks.contest import ContestError, Result
from benchmarks.row import Contestant, Ratio, Row, chosen, per_second

BATCHES = 20  # of a turn; an epoch of ours has some 111
RECIPE = Path(__file__).parents[1] / "recipes" / "multi30k-tiny.toml"
FOR_EVER = 1_000_000


def rows(options: Namespace) -> dict[str, Row]:
    missing = "" if options.joey else "give its interpreter, --joey"
    joey = Contestant("Joey NMT 2.3.0", str(options.joey or sys.executable), missing)
    row = Row(
        f"Transformer-Tiny on Multi30k, everything included, turns of {BATCHES} batches within an epoch",
        "train_epoch",
        "tiny",
        (Contestant("plainformer"), joey),
        (Ratio(8.0),),
        _same_shape,
        "The same pieces, pairs and shape (the counts of parameters differ by what pads the vocabulary); Adam, label "
        "smoothing 0.1, dropout 0.3, batches of 4,096 tokens. Joey NMT also drops attention's weights.",
        per_second("target tokens"),
        missing="" if options.data else "give the folder of Multi30k, --data",
    )
    return {"tiny-epoch": row}


def _same_shape(results: Any) -> None:
    ours, *peers = results
    for peer in peers:
        if abs(peer.facts["parameters"] / ours.facts["parameters"] - 1) > 0.01:
            raise ContestError(f"{peer.name}: {peer.facts['parameters']:,} parameters")
        _same(ours, peer, "pairs")


def _same(ours: Result, peer: Result, fact: str) -> None:
    if ours.facts[fact] != peer.facts[fact]:
        raise ContestError(f"{peer.name}: {fact} {peer.facts[fact]}, and ours are {ours.facts[fact]}")


class Gate:
    """Holds a training thread at every line that it logs, until the next turn."""

    def __init__(self, training: Callable[[], None]) -> None:
        self._go: queue.Queue[None] = queue.Queue()
        self._passed: queue.Queue[float | BaseException] = queue.Queue()
        self._thread = threading.Thread(target=self._run, args=(training,), daemon=True)

    def hold(self, tokens: float) -> None:
        """Called by the training thread, with the tokens since the last line."""
        self._passed.put(tokens)
        self._go.get()

    def turn(self) -> float:
        """The seconds of a token, from line to line."""
        began = time.perf_counter()
        if self._thread.ident is None:
            self._thread.start()
        else:
            self._go.put(None)
        found = self._passed.get()
        if isinstance(found, BaseException):
            raise found
        return (time.perf_counter() - began) / found

    def _run(self, training: Callable[[], None]) -> None:
        try:
            training()
            raise ContestError("the training ended")
        except BaseException as failure:
            self._passed.put(failure)


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of a real target token."""
    facts: dict[str, Any] = {"warm_up": 0}
    gate = (_ours if name == "plainformer" else _joey)(folder, threads, facts)
    facts["first"] = gate.turn()  # until the first line: this is the warm-up
    return gate.turn, facts


def _ours(folder: Path, threads: int, facts: dict[str, Any]) -> Gate:
    from benchmarks.train_translator import CASES
    from plainformer.recipe import load_recipe
    from plainformer.runs.run import run_recipe
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory
    from plainformer.train.checkpoint import silence_orbax
    from plainformer.train.log import Log

    text = multi30k.prepare(chosen(folder, "data"), folder)
    source, target = text.lengths()
    facts["flops"] = CASES["tiny"].step_flops(source, target) / float(target.sum())
    facts["pairs"] = len(source)
    keep_freed_memory()  # one heap, since `Gate` trains in a thread: a heap of its own would end at 64 MB
    keep_compiled_programs()
    silence_orbax()
    often = {"steps": FOR_EVER, "log_every": BATCHES, "evaluate_every": FOR_EVER, "save_every": FOR_EVER}
    changes = [f"train.{name}={value}" for name, value in (often | {"bleu_every": 0}).items()]
    recipe = load_recipe(
        RECIPE, [*changes, "data.row_tokens=4096", f"data.folder={json.dumps(str(chosen(folder, 'data')))}"]
    )

    def say(line: str) -> None:
        if found := re.fullmatch(r"model: ([\d,]+) parameters", line):
            facts["parameters"] = int(found[1].replace(",", ""))

    gate = Gate(lambda: run_recipe(recipe, folder / "run", say=say) and None)
    write = Log.metrics

    def metrics(log: Log, kind: str, step: int, values: Any) -> None:
        write(log, kind, step, values)
        gate.hold(values["tokens"])

    Log.metrics = metrics
    return gate


def _joey(folder: Path, threads: int, facts: dict[str, Any]) -> Gate:
    import torch
    from joeynmt.helpers import make_model_dir  # pyright: ignore[reportMissingImports]
    from joeynmt.training import TrainManager, train  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(threads)
    config = joey_config(folder, facts)
    make_model_dir(Path(config["model_dir"]))
    gate = Gate(lambda: train(rank=0, world_size=None, cfg=config, skip_test=True))
    write = TrainManager._log_scores

    def log_scores(manager: Any, epoch: int, elapsed: float, start_tokens: int, *others: Any) -> None:
        write(manager, epoch, elapsed, start_tokens, *others)
        facts["parameters"] = sum(one.numel() for one in manager.model.parameters())
        gate.hold(manager.stats.total_tokens - start_tokens)

    TrainManager._log_scores = log_scores
    return gate


def joey_config(folder: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The same training, as Joey NMT's YAML would say it; the pieces are written out as words, each its number."""
    ids = json.loads((folder / "multi30k" / "ids.json").read_text())
    facts["pairs"] = len(ids["source"])
    for side in ("source", "target"):
        lines = [" ".join(f"p{id}" for id in row) for row in ids[side]]
        (folder / f"train.{side}").write_text("\n".join(lines) + "\n")
        (folder / f"dev.{side}").write_text("\n".join(lines[:100]) + "\n")
    (folder / "pieces").write_text("\n".join(f"p{id}" for id in range(4, 10_000)) + "\n")
    language = {"level": "word", "max_length": 128, "voc_file": str(folder / "pieces")}
    stack = {
        "type": "transformer",
        "num_layers": 4,
        "num_heads": 4,
        "embeddings": {"embedding_dim": 128, "scale": True, "dropout": 0.3},
        "hidden_size": 128,
        "ff_size": 256,
        "dropout": 0.3,
        "layer_norm": "post",
    }
    return {
        "name": "tiny",
        "model_dir": str(folder / "joey"),
        "use_cuda": False,
        "data": {
            "train": str(folder / "train"),
            "dev": str(folder / "dev"),
            "dataset_type": "plain",
            "src": {"lang": "source", **language},
            "trg": {"lang": "target", **language},
        },
        "testing": {"beam_size": 1, "batch_size": 4096, "batch_type": "token", "eval_metrics": []},
        "training": {
            "optimizer": "adam",
            "adam_betas": [0.9, 0.98],
            "scheduling": "warmupinversesquareroot",
            "learning_rate": 0.005,
            "learning_rate_min": 0.0,
            "learning_rate_warmup": 2000,
            "normalization": "tokens",
            "label_smoothing": 0.1,
            "loss": "crossentropy",
            "batch_size": 4096,
            "batch_type": "token",
            "epochs": 1000,
            "logging_freq": BATCHES,
            "validation_freq": BATCHES * FOR_EVER,
            "early_stopping_metric": "ppl",
        },
        "model": {
            "initializer": "xavier_uniform",
            "tied_embeddings": True,
            "tied_softmax": True,
            "encoder": dict(stack),
            "decoder": dict(stack),
        },
    }
