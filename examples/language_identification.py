"""Labelled texts to tell languages apart: `python examples/language_identification.py OUT en=FILE de=FILE hi=FILE:1 …`

Each argument is a label, a file of one text a line and, for a file of columns, the column (from 0). OUT then has
`train.tsv`, `val.tsv` and `test.tsv`, label and text, ready for `plainformer train`. Every label gets as many texts as
the smallest has, a text of a label stands in one set only, and the order is the same each time.
"""

import random
import sys
from pathlib import Path

SHARES = {"val": 0.1, "test": 0.1}


def texts_of(source: str) -> list[str]:
    """The distinct texts of FILE or FILE:COLUMN."""
    path, _, column = source.partition(":")
    lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
    texts = (line.split("\t")[int(column)] if column else line for line in lines if line.strip())
    return list(dict.fromkeys(text.strip().replace("\t", " ") for text in texts))


def split(texts: list[str], random_order: random.Random) -> dict[str, list[str]]:
    """The texts, shuffled, as `val`, `test` and the rest, `train`."""
    random_order.shuffle(texts)
    sets, start = {}, 0
    for name, share in SHARES.items():
        count = max(1, round(share * len(texts)))
        sets[name], start = texts[start : start + count], start + count
    return {**sets, "train": texts[start:]}


def write(folder: Path, labelled: dict[str, list[str]]) -> None:
    """Write `{label: texts}` as the three sets."""
    order = random.Random(1)
    smallest = min(map(len, labelled.values()))
    rows: dict[str, list[str]] = {}
    for label, texts in labelled.items():
        for name, part in split(order.sample(texts, smallest), order).items():
            rows.setdefault(name, []).extend(f"{label}\t{text}\n" for text in part)
    folder.mkdir(parents=True, exist_ok=True)
    for name, lines in rows.items():
        order.shuffle(lines)
        (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
        print(f"{folder / name}.tsv: {len(lines):,} texts")


if __name__ == "__main__":
    if len(sys.argv) < 4 or not all("=" in argument for argument in sys.argv[2:]):
        sys.exit(__doc__)
    named = (argument.split("=", 1) for argument in sys.argv[2:])
    write(Path(sys.argv[1]), {label: texts_of(source) for label, source in named})
