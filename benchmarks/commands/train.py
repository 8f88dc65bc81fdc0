"""`plainformer train` to its first step and to its hundredth, reading the text and learning the vocabulary included.

The run is ended at the line that reports the step. nanoGPT and Joey NMT are told to log that step, too; they are spared
the vocabulary: nanoGPT finds its text encoded, Joey NMT's is in pieces already. nanoGPT cannot be kept from looking at
its loss before the first step; it looks at one batch.
"""

from collections.abc import Sequence

from benchmarks.commands.command import Command, Peer, Place, settings
from benchmarks.row import AtMost

STEPS = (1, 100)
FIRST = {"cold": (AtMost(6.0),), "warm": (AtMost(2.5),)}  # seconds to the first step
GPT = {"layers": 6, "heads": 6, "d_model": 384, "d_ff": 1536, "context": 256, "bias": True}
BATCH = 16


def _gpt(steps: int) -> Command:
    """The 10.7M GPT, beside nanoGPT."""

    def ours(place: Place) -> list[str]:
        shape = {f"model__{key}": value for key, value in GPT.items()} | {"data__batch_size": BATCH}
        text = ["--text", str(place.prepared / "text.txt"), "--run", str(place.own / "run")]
        return ["train", "char-gpt", *text, *settings(train__log_every=steps, **shape)]

    def nano(compiled: bool) -> Peer:
        def arguments(place: Place) -> Sequence[str]:
            (place.own / "configurator.py").symlink_to(f"{place.option('nanogpt')}/configurator.py")
            (place.own / "data").symlink_to(place.prepared / "nanogpt")
            names = {"n_layer": "layers", "n_head": "heads", "n_embd": "d_model", "block_size": "context"}
            given = {name: GPT[key] for name, key in names.items()} | {"bias": True, "dropout": 0.0, "dtype": "float32"}
            given |= {"dataset": "text", "device": "cpu", "compile": compiled, "batch_size": BATCH}
            given |= {"gradient_accumulation_steps": 1, "eval_iters": 1, "eval_interval": 1_000_000, "log_interval": 1}
            return ["-u", f"{place.option('nanogpt')}/train.py", *(f"--{key}={value}" for key, value in given.items())]

        name = f"nanoGPT {'compiled' if compiled else 'eager'}"
        return Peer(name, arguments, option="nanogpt", until=f"iter {steps - 1}:")

    return Command(
        f"The 10.7M GPT on 0.4 MB of text, to the end of step {steps}",
        ours,
        [nano(False), nano(True)],
        prepare="text",
        until=f"step {steps}/",
        goals=FIRST if steps == 1 else {},
        held_equal="The same shape, text and batch size; nanoGPT's text is encoded beforehand.",
    )


def _tiny(steps: int) -> Command:
    """Transformer-Tiny on Multi30k, beside Joey NMT."""

    def ours(place: Place) -> list[str]:
        often = settings(train__log_every=steps)
        return ["train", "multi30k-tiny", "--data", place.option("data"), "--run", str(place.own / "run"), *often]

    def joey(place: Place) -> list[str]:
        return ["-m", "joeynmt", "train", str(place.prepared / f"joey-{steps}.yaml"), "--skip-test"]

    return Command(
        f"Transformer-Tiny on Multi30k, to the end of step {steps}",
        ours,
        [Peer("Joey NMT", joey, option="joey", interpreter=True, until=rf".*Step: +{steps},")],
        needs=("data",),
        prepare="pieces",
        until=f"step {steps}/",
        goals=FIRST if steps == 1 else {},
        held_equal="The same pairs, shape and tokens of a batch; Joey NMT's text is in pieces beforehand.",
    )


COMMANDS = {f"train-gpt-{steps}": _gpt(steps) for steps in STEPS}
COMMANDS |= {f"train-tiny-{steps}": _tiny(steps) for steps in STEPS}
