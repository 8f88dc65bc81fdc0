"""A sentence encoder here and in PyTorch: how far the vectors of 100 texts are apart.

    python tests/parity/sentence_vectors.py FOLDER TEXT…

FOLDER is of the Sentence Transformers library, such as all-MiniLM-L6-v2's; its vectors are made by hand of the states
that transformers gives: the mean over the mask, then the length 1. From the files of running text come 100 stretches of
1 to 200 words. The largest difference of a number is printed, and with `--seconds` how long 1,000 of their sentences
take in each, in turn.
"""

import argparse
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

from plainformer.decode.load import load


def stretches(words: Sequence[str], count: int, most: int, seed: int = 0) -> list[str]:
    """So many stretches of 1 to `most` words, of each length about as often."""
    chosen = random.Random(seed)
    lengths = [1 + number * (most - 1) // max(1, count - 1) for number in range(count)]
    starts = [chosen.randrange(len(words) - length) for length in lengths]
    return [" ".join(words[at : at + length]) for at, length in zip(starts, lengths, strict=True)]


def by_hand(folder: Path, batch: int = 32) -> Callable[[list[str]], np.ndarray]:
    """Texts to vectors, by transformers; those of like length together, as their library has them."""
    tokenizer, model = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder).eval()
    most = json.loads((folder / "sentence_bert_config.json").read_text())["max_seq_length"]

    def embed(texts: list[str]) -> np.ndarray:
        order = np.argsort([-len(text) for text in texts])
        found: Any = [None] * len(texts)
        for start in range(0, len(texts), batch):
            members = order[start : start + batch]
            chosen = [texts[member] for member in members]
            given = tokenizer(chosen, padding=True, truncation=True, max_length=most, return_tensors="pt")
            with torch.no_grad():
                states = model(**given).last_hidden_state
            mask = given["attention_mask"][:, :, None].float()
            mean = (states * mask).sum(dim=1) / mask.sum(dim=1)
            for member, vector in zip(members, torch.nn.functional.normalize(mean), strict=True):
                found[member] = vector.numpy()
        return np.stack(found)

    return embed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("text", type=Path, nargs="+")
    parser.add_argument("--seconds", action="store_true")
    given = parser.parse_args()
    files = [path.read_text(encoding="utf-8") for path in given.text]
    words = [word for text in files for word in text.split()]
    ours, theirs = load(given.folder), by_hand(given.folder)
    texts, cut = stretches(words, 100, 200), []
    difference = np.abs(ours.embed(texts, allow_unknown=True, on_cut=cut.extend) - theirs(texts)).max()
    print(f"{len(texts)} texts of 1 to 200 words, {len(cut)} of them truncated: largest difference {difference:.1e}")
    if given.seconds:
        lines = [line.strip() for text in files for line in text.splitlines() if len(line.split()) > 3][:1000]
        for turn in range(3):
            for name, embed in (
                ("plainformer", lambda: ours.embed(lines, allow_unknown=True)),
                ("PyTorch", lambda: theirs(lines)),
            ):
                began = time.perf_counter()
                embed()
                print(f"turn {turn + 1}: {name} {time.perf_counter() - began:.2f} s for {len(lines):,} sentences")


if __name__ == "__main__":
    main()
