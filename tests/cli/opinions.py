"""Labelled texts to train a classifier on, and its recipe."""

import random
from pathlib import Path

RECIPE = """\
name = "critic"
task = "classification"

[data]
folder = "{folder}"
test = "test"
max_tokens = 40
min_label_count = 1
batch_tokens = 640
buckets = 1

[tokenizer]
kind = "character"
byte_fallback = false

[model]
{model}

{training}"""
SHAPE = """\
d_model = 16
d_ff = 24
heads = 2
layers = 1
context = 48
dropout = 0.1"""

WORDS = {"good": ["lovely", "kind", "fine"], "bad": ["awful", "cruel", "sad"]}


def some_texts(seed: int, count: int) -> list[str]:
    """Lines of label, tab, text; every third text is of the other kind than its label, so that none is perfect."""
    draw = random.Random(seed)
    lines = []
    for number in range(count):
        label, other = draw.sample(sorted(WORDS), 2)
        word = draw.choice(WORDS[other if number % 3 == 0 else label])
        lines.append(f"{label}\tthe {draw.choice(['film', 'play', 'song'])} is {word} {draw.randrange(100)}\n")
    return lines


ONCE = "odd\ta thing of its own\n"
LONG = "good\t" + "very " * 9 + "fine\n"


def write_texts(folder: Path) -> Path:
    """A folder of labelled texts: in the training set a blank line, one that is too long and a label that is rare."""
    (folder / "train.tsv").write_text("".join([*some_texts(1, 60), "\n", LONG, ONCE]))
    (folder / "val.tsv").write_text("".join(some_texts(2, 17)))
    (folder / "test.tsv").write_text("".join([*some_texts(3, 11), "\n", *some_texts(4, 8)]))
    return folder
