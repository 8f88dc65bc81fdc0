"""What `lowered.py` runs: tiny texts, recipes of every task in variants of which each pair occurs, and the verbs.

Settings and options are those of the shell, so that nothing here depends on how the package is arranged.
"""

import itertools
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Case = Mapping[str, Any]

# Devices, and whether there are CPU kernels.
WHERE = (1, True), (1, False), (8, True), (8, False)

STACK: dict[str, Sequence[Any]] = {
    "norm": ("layer", "rms"),
    "norm_position": ("post", "pre"),
    "gated": (False, True),
    "bias": (True, False),
    "scale_embeddings": (True, False),
    "heads": ({"heads": 2}, {"heads": 4, "d_k": 16, "d_v": 32}),
    "dropout": (0.1, 0.0),
    "label_smoothing": (0.1, 0.0),
    "scan": ("off", "on"),
    "remat": (False, True),
    "accumulate": (1, 2),
    "compute_dtype": ("float32", "bfloat16"),
    "optimizer": (
        {"name": "adam"},
        {"name": "adamw", "weight_decay": 0.1, "clip": 1.0},
        {"name": "muon", "weight_decay": 0.1},
    ),
}
SINGLE: dict[str, Sequence[Any]] = {
    "position": ("learned", "sinusoidal", "rotary"),
    "kv_heads": (0, 1),
    "tie": (True, False),
    "kind": ("character", "bpe"),
}
AXES: dict[str, dict[str, Sequence[Any]]] = {
    "translation": {
        "position": ("sinusoidal", "learned"),
        "sinusoidal_order": ("interleaved", "half"),
        "tie": ("three-way", "target-output", "none"),
        "output_bias": (False, True),
        "decoder_start": ("token", "zero"),
        "row_tokens": (0, 64),
        "activation": ("relu", "gelu", "silu"),
        **STACK,
    },
    "language-model": {
        "context": (32, 160),
        "activation": ("gelu_tanh", "relu", "silu"),
        **SINGLE,
        **STACK,
    },
    "masked-language-model": {
        "whole_words": (False, True),
        "activation": ("gelu", "relu"),
        **SINGLE,
        **STACK,
    },
    "classification": {"activation": ("gelu", "gelu_tanh"), **SINGLE, **STACK},
}

# Keys that are not in the recipe's section of the model.
SECTIONS = {
    "label_smoothing": "loss",
    "whole_words": "mask",
    "row_tokens": "data",
    "kind": "tokenizer",
    **dict.fromkeys(("scan", "remat", "accumulate", "compute_dtype"), "train"),
}

RECIPES = {
    "translation": """\
[data]
folder = "{data}/pairs"
source = "en"
target = "de"
dev = "val"
test = "test"
max_tokens = 40
batch_tokens = 1024
buckets = 2
[tokenizer]
kind = "bpe"
vocab_size = 330
[model]
d_model = 32
d_ff = 48
encoder_layers = 2
decoder_layers = 2
[train]
bleu_every = 2
samples = 1
[decode]
max_margin = 3
""",
    "language-model": """\
[data]
text = "{data}/text.txt"
test = "{data}/test.txt"
batch_size = 16
[tokenizer]
vocab_size = 330
[model]
d_model = 32
d_ff = 48
layers = 2
[train]
samples = 1
""",
    "masked-language-model": """\
[data]
text = "{data}/text.txt"
test = "{data}/test.txt"
batch_size = 16
[tokenizer]
vocab_size = 330
[model]
d_model = 32
d_ff = 48
layers = 2
context = 32
[mask]
share = 0.2
[train]
""",
    "classification": """\
[data]
folder = "{data}/labelled"
dev = "val"
test = "test"
max_tokens = 40
batch_tokens = 640
buckets = 2
[tokenizer]
vocab_size = 330
[model]
d_model = 32
d_ff = 48
layers = 2
[train]
""",
}
TRAINING = {"steps": 2, "save_every": 2, "evaluate_every": 2, "log_every": 1, "keep_last": 2, "seed": 7}

# What is done with a model, `{data}` being the folder of texts; each case does three of them, in turn.
VERBS: dict[str, Sequence[tuple[str, ...]]] = {
    "translation": (
        ("translate", "--file", "{data}/lines.txt", "--beam", "4", "--n-best", "2"),
        ("translate", "--file", "{data}/lines.txt", "--beam", "1"),
        ("translate", "--file", "{data}/lines.txt", "--weights", "w8a8"),
        ("translate", "--file", "{data}/lines.txt", "--weights", "int8", "--beam", "3"),
        ("score", "--file", "{data}/pairs.tsv"),
        ("evaluate",),
        (
            *("translate", "--file", "{data}/lines.txt", "--weights", "bfloat16", "--length-penalty", "average"),
            *("--no-repeat-ngram", "2", "--repetition-penalty", "1.2"),
        ),
        ("translate", "the man sees a book", "--weights", "w8a8", "--beam", "1", "--no-repeat-ngram", "2"),
    ),
    "language-model": (
        (
            *("generate", "the sea ", "--max-tokens", "20", "--samples", "3", "--seed", "7", "--temperature", "0.8"),
            *("--top-p", "0.9", "--top-k", "12", "--min-p", "0.01"),
        ),
        ("generate", "the sea ", "--max-tokens", "200", "--temperature", "0"),
        ("generate", "the sea ", "--max-tokens", "12", "--beam", "3", "--n-best", "2", "--length-penalty", "gnmt"),
        ("generate", "the sea ", "--max-tokens", "20", "--weights", "int8", "--temperature", "0"),
        ("generate", "the sea ", "--max-tokens", "20", "--weights", "w8a8", "--seed", "3"),
        ("score", "the man and the sea", "the sea", "--tokens"),
        ("evaluate",),
        (
            *("generate", "the sea ", "--max-tokens", "12", "--weights", "bfloat16", "--seed", "3"),
            *("--repetition-penalty", "1.3", "--samples", "2"),
        ),
        ("generate", "the sea ", "--max-tokens", "12", "--beam", "3", "--weights", "w8a8"),
    ),
    "masked-language-model": (
        ("fill", "the <mask> sees a whale", "a <mask> and the <mask>"),
        ("embed", "--file", "{data}/words.txt"),
        ("evaluate",),
    ),
    "classification": (
        ("classify", "--file", "{data}/words.txt", "--probabilities"),
        ("embed", "--file", "{data}/words.txt"),
        ("evaluate",),
    ),
}


def pairwise(axes: Mapping[str, Sequence[Any]], fits: Callable[[Case], bool], seed: int = 0) -> list[Case]:
    """Few cases in which every pair of two axes' values occurs that may, found as by AETG (Cohen et al. 1997).

    The first case has the first value of every axis, which must fit.
    """
    draw, names = random.Random(seed), list(axes)
    left = {
        frozenset({(one, i), (other, j)})
        for one, other in itertools.combinations(names, 2)
        for i, j in itertools.product(range(len(axes[one])), range(len(axes[other])))
    }

    def case(choice: Mapping[str, int]) -> Case:
        return {name: axes[name][choice[name]] for name in names}

    def new(choice: Mapping[str, int]) -> set[Any]:
        return left & set(map(frozenset, itertools.combinations(choice.items(), 2)))

    def grown(choice: dict[str, int]) -> dict[str, int]:
        """A pair made a whole choice: each axis in turn, in any order, takes what leaves least to do."""
        for name in draw.sample(names, len(names)):
            if name not in choice:
                levels = draw.sample(range(len(axes[name])), len(axes[name]))
                choice[name] = max(levels, key=lambda i: sum({(name, i), one} in left for one in choice.items()))
        return choice

    choice, cases = dict.fromkeys(names, 0), []
    while new(choice):
        cases.append(case(choice))
        left -= new(choice)
        wanted = draw.sample(sorted(map(sorted, left)), min(30, len(left)))
        tried = [one for pair in wanted if fits(case(one := grown(dict(pair))))]
        if not tried:  # then any that has such a pair; where there is none, what is left does not fit
            chances = ({name: draw.randrange(len(axes[name])) for name in names} for _ in range(200 * len(wanted)))
            tried = [
                one
                for pair, chance in zip(itertools.cycle(wanted), chances, strict=False)
                if fits(case(one := {**chance, **dict(pair)}))
            ]
        if tried:
            choice = max(tried, key=lambda one: len(new(one)))
    return cases


def _fits(case: Case) -> bool:
    """Whether a recipe with these settings is one: layers in a loop are refused with Muon."""
    return not (case["scan"] == "on" and case["optimizer"]["name"] == "muon")


@dataclass(frozen=True)
class Run:
    """A training and what is done with its model.

    Attributes:
        name: of its folder.
        task: the recipe's.
        devices: that the process has.
        kernels: whether there are CPU kernels, of the extra `cpu`.
        settings: as `--set` takes them.
        verbs: what is done then, with their options.
        start: the run whose model it starts from, if it does.
    """

    name: str
    task: str
    devices: int
    kernels: bool
    settings: tuple[str, ...]
    verbs: tuple[tuple[str, ...], ...]
    start: str | None = None


def runs() -> list[Run]:
    """All of them; a run that starts from another comes after it."""
    found: list[Run] = []
    for task, axes in AXES.items():
        turns = {where: itertools.cycle(VERBS[task]) for where in WHERE}
        counts = dict.fromkeys(WHERE, 0)
        # Devices and kernels in turn: each variant in one of the four places, each verb in all.
        for case, where in zip(pairwise(axes, _fits), itertools.cycle(WHERE), strict=False):
            counts[where] += 1
            verbs = tuple(next(turns[where]) for _ in range(3))
            found.append(Run(_name(task, *where, counts[where]), task, *where, tuple(_settings(case)), verbs))
    return [*found, *(run for where in WHERE if where != (8, True) for run in _tuned(*where))]


def _tuned(devices: int, kernels: bool) -> list[Run]:
    """Runs that start from a model: as a whole with frozen parameters, by pairs of low rank, as a classifier."""
    where = devices, kernels
    schedule = ("schedule.peak=0.01", "schedule.name=constant", "schedule.warmup=1")
    lora = 'tune.lora_targets=["*.query", "*.value", "*.inner"]'
    tuned = (
        ("language-model", "language-model", ("tune.lora_rank=4", lora)),
        ("translation", "translation", ('tune.freeze=["*embedding*", "encoder.*"]',)),
        ("classification", "masked-language-model", ("model.dropout=0.2",)),
    )
    return [
        Run(
            _name(f"{task} tuned", *where, 1),
            task,
            *where,
            (*schedule, *settings),
            (VERBS[task][0],),
            _name(start, *where, 1),
        )
        for task, start, settings in tuned
    ]


def _name(task: str, devices: int, kernels: bool, number: int) -> str:
    return f"{task}, {devices} device{'s' * (devices > 1)}, {'with' if kernels else 'without'} kernels, {number}"


def _settings(case: Case) -> list[str]:
    flat = {key: value for key, value in case.items() if key not in ("heads", "optimizer")}
    settings = {f"{SECTIONS.get(key, 'model')}.{key}": value for key, value in flat.items()}
    settings |= {f"model.{key}": value for key, value in case["heads"].items()}
    settings |= {f"optimizer.{key}": value for key, value in case["optimizer"].items()}
    if case["optimizer"]["name"] == "adam":
        settings["schedule.warmup"] = 2  # the paper's
    else:
        settings |= {"schedule.name": "linear", "schedule.peak": 0.01, "schedule.warmup": 1}
    return [f"{key}={_toml(value)}" for key, value in settings.items()]


def _toml(value: Any) -> str:
    return {True: "true", False: "false"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def write_recipe(run: Run, data: Path, path: Path) -> None:
    """The recipe of a run without its settings, its model and vocabulary left out where it starts from another."""
    text = RECIPES[run.task].format(data=data)
    training = "".join(f"{key} = {value}\n" for key, value in TRAINING.items())
    text = text.replace("[train]\n", f"[train]\n{training}")
    if run.start is not None:
        sections = ["[" + section for section in text.split("[")[1:]]
        text = "".join(part for part in sections if not part.startswith(("[tokenizer]", "[model]")))
    path.write_text(f'name = "tiny"\ntask = "{run.task}"\n{text}', encoding="utf-8")


def write_data(folder: Path) -> None:
    """Pairs, running text and labelled texts, the same each time."""
    draw = random.Random(3)
    who = {"the man": "der mann", "the woman": "die frau", "a child": "ein kind", "the dog": "der hund"}
    does = {"sees": "sieht", "likes": "mag", "finds": "findet", "draws": "malt"}
    what = {"an apple": "einen apfel", "the house": "das haus", "a book": "ein buch", "the sea": "das meer"}
    pairs = [
        (f"{a} {b} {c}{end}", f"{who[a]} {does[b]} {what[c]}{end}")
        for a, b, c in itertools.product(who, does, what)
        for end in ("", " and the dog" * 3)
    ]
    draw.shuffle(pairs)
    (folder / "pairs").mkdir(parents=True)
    for name, chosen in (("train", pairs[:100]), ("val", pairs[100:107]), ("test", pairs[107:118])):
        for suffix, side in (("en", 0), ("de", 1)):
            _write(folder / "pairs" / f"{name}.{suffix}", (pair[side] for pair in chosen))
    _write(folder / "lines.txt", (source for source, _ in pairs[118:128]))
    _write(folder / "pairs.tsv", map("\t".join, pairs[118:128]))
    words = ["sea", "ship", "whale", "man", "Ahab", "the", "a", "sails", "hunts", "sees", "white", "and", ";", "?"]
    for name, count in (("text", 1500), ("test", 90)):
        _write(folder / f"{name}.txt", [" ".join(draw.choices(words, k=count))])
    _write(folder / "words.txt", (" ".join(draw.choices(words, k=count)) for count in (3, 9, 5, 6, 2)))
    (folder / "labelled").mkdir()
    for name, count in (("train", 60), ("val", 17), ("test", 11)):
        rows = ((label, draw.choices(words, k=draw.randrange(2, 8))) for label in ["good", "bad", "odd"] * count)
        _write(folder / "labelled" / f"{name}.tsv", (f"{label}\t{' '.join(text)} {label}" for label, text in rows))


def _write(path: Path, lines: Any) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    for one in runs():
        print(one.name, *one.settings, *map(" ".join, one.verbs), sep="\n  ")
