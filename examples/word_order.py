"""A task that needs grammar: is a sentence as it was written, or were two neighbouring words exchanged?

    python examples/word_order.py BOOK OUT

BOOK is running text. OUT then has `train.tsv`, `val.tsv` and `test.tsv`, each line a label (`written` or `exchanged`)
and a sentence. `val` and `test` are from the last tenth of the book, which a language model that was trained on it with
`data.dev_share = 0.1` has not seen. Every sentence stands there once, with one of the two labels.
"""

import random
import re
import sys
from pathlib import Path

WORDS = range(6, 31)


def sentences(text: str) -> tuple[list[str], list[str]]:
    """The sentences of 6 to 30 words, with single spaces: those of the first nine tenths, and the others."""
    seen: dict[str, None] = {}
    unseen: dict[str, None] = {}
    for found in re.finditer(r"\S.*?[.!?;](?=\s|$)", text, flags=re.DOTALL):
        one = " ".join(found[0].split())
        if len(one.split()) in WORDS:
            if found.end() <= int(len(text) * 0.9):
                seen[one] = None
            elif found.start() >= int(len(text) * 0.9) and one not in seen:
                unseen[one] = None
    return list(seen), list(unseen)


def exchange(sentence: str, order: random.Random) -> str | None:
    """The sentence with two neighbouring words, which differ, in each other's place; never the first or the last.

    None where there are no such words.
    """
    words = sentence.split()
    places = [at for at in range(1, len(words) - 2) if words[at].lower() != words[at + 1].lower()]
    if not places:
        return None
    at = order.choice(places)
    words[at], words[at + 1] = words[at + 1], words[at]
    return " ".join(words)


def write(folder: Path, name: str, texts: list[str], order: random.Random) -> None:
    lines = []
    for text in texts:
        exchanged = exchange(text, order) if order.random() < 0.5 else None
        lines.append(f"exchanged\t{exchanged}\n" if exchanged else f"written\t{text}\n")
    (folder / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")
    print(f"{folder / name}.tsv: {len(lines):,} sentences")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    book, out, order = Path(sys.argv[1]).read_text(encoding="utf-8-sig"), Path(sys.argv[2]), random.Random(1)
    out.mkdir(parents=True, exist_ok=True)
    seen, unseen = sentences(book)
    order.shuffle(unseen)
    half = len(unseen) // 2
    write(out, "train", seen, order)
    write(out, "val", unseen[:half], order)
    write(out, "test", unseen[half:], order)
