"""Multi30k as all translators here train on it: a joint BPE of 10,000, batches of 4,096 tokens in five buckets.

The recipe is plainformer's for a quick run, with those two numbers changed. What comes of it is kept in the folder of
the measurement, so that every contestant reads the same ids: the first prepares it, the others load it.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECIPE = Path(__file__).parents[1] / "recipes" / "multi30k-tiny-quick.toml"
CHANGES = ("data.batch_tokens=4096", "tokenizer.vocab_size=10000", "data.test=")


@dataclass(frozen=True)
class Text:
    """The ids of both sides of the training set, and the tokenizer as a plainformer `Tokenizer`."""

    source: list[list[int]]
    target: list[list[int]]
    tokenizer: Any

    def lengths(self) -> tuple[np.ndarray, np.ndarray]:
        """Of every pair, each with the eos that follows it."""
        source, target = (np.array([len(row) + 1 for row in side]) for side in (self.source, self.target))
        return source, target


def prepare(data: Path, work: Path) -> Text:
    """The training set of the folder `data` as ids, kept in `work`."""
    from plainformer.tokenizer import Tokenizer

    folder = work / "multi30k"
    if not (folder / "ids.json").exists():
        _prepare(data, folder)
    ids = json.loads((folder / "ids.json").read_text())
    return Text(ids["source"], ids["target"], Tokenizer.load(folder / "tokenizer.json"))


def _prepare(data: Path, folder: Path) -> None:
    from plainformer.data import clean
    from plainformer.recipe import load_recipe
    from plainformer.runs.task import Console
    from plainformer.runs.translation import TranslationTask

    recipe: Any = load_recipe(RECIPE, [*CHANGES, f"data.folder={json.dumps(str(data))}"])
    task = TranslationTask(recipe)
    tokenizer = task.learn_tokenizers(Console(lambda text: None)).source
    pairs = task.train
    cleaned = clean(
        pairs,
        source_ids=tokenizer.encode_batch(pairs.source),
        target_ids=tokenizer.encode_batch(pairs.target),
        max_tokens=recipe.data.max_tokens,
        source_unk_id=tokenizer.unk_id,
        target_unk_id=tokenizer.unk_id,
    )
    folder.mkdir(exist_ok=True)
    tokenizer.save(folder / "tokenizer.json")
    ids = {"source": list(map(list, cleaned.source_ids)), "target": list(map(list, cleaned.target_ids))}
    (folder / "ids.json").write_text(json.dumps(ids))


def loader(text: Text, *, buckets: int = 5) -> Any:
    """plainformer's loader of those batches."""
    from plainformer.data.loader import PairLoader, SpecialIds

    one = text.tokenizer
    special = SpecialIds(one.pad_id, one.eos_id, one.pad_id, one.bos_id, one.eos_id)
    return PairLoader(text.source, text.target, special, batch_tokens=4096, buckets=buckets, seed=1)


def batches(text: Text, count: int) -> list[dict[str, np.ndarray]]:
    """The first `count` batches of an epoch, by the names of plainformer's `Batch`."""
    made = loader(text)
    return [made.batch(step)._asdict() for step in range(1, count + 1)]
