"""What a run holds out of its training set: divided as the recipe says, kept in the run's folder, found there again.

    runs/NAME/held_out/dev.jsonl     a line of JSON for each pair or labelled text, with the place it came from
    runs/NAME/held_out/test.jsonl

So a model is scored on what it has not seen, whatever becomes of the file that all of it came from.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeVar

from plainformer.data import Pairs
from plainformer.data.held_out import Parts, hold_out
from plainformer.data.labelled import Labelled, read_labelled
from plainformer.data.pairs import read_pairs
from plainformer.errors import InputError
from plainformer.recipe.classification import LabelledOptions
from plainformer.recipe.translation import PairOptions
from plainformer.spelling import option

FOLDER = "held_out"
"""In a run's folder."""

Set = TypeVar("Set", Pairs, Labelled)


def split_pairs(pairs: Pairs, data: PairOptions) -> Parts:
    """The parts of a training set, as `data` wants them. Raises InputError where so much cannot be held out."""
    rows = list(zip(pairs.source, pairs.target, strict=True))
    return hold_out(rows, data.dev_pairs, data.test_pairs, where=data.train, what="pairs")


def split_labelled(texts: Labelled, data: LabelledOptions) -> Parts:
    """The parts of labelled texts, each label giving its share. Raises InputError as `split_pairs`."""
    rows = [(text,) for text in texts.texts]
    counts = data.dev_texts, data.test_texts
    return hold_out(rows, *counts, labels=texts.labels, where=data.train, what="texts")


def divided(
    whole: Set, parts: Parts, dev: Callable[[], Set], test: Callable[[], Set | None]
) -> tuple[Set, Set, Set | None]:
    """Training, development and test set: the parts that are held out, and what `dev` and `test` read otherwise."""
    return (
        whole.select(parts.train) if parts.dev or parts.test else whole,
        whole.select(parts.dev) if parts.dev else dev(),
        whole.select(parts.test) if parts.test else test(),
    )


def split_line(name: str, parts: Parts, what: str) -> str:
    """The split, for a log."""
    held = [f"{len(part):,} for {name}" for name, part in (("dev", parts.dev), ("test", parts.test)) if part]
    return (
        f"{name}: of {sum(map(len, parts)):,} {what}, {' and '.join(held)} are held out, and {len(parts.train):,} are "
        f"left to train on; no sentence is in two of them (kept in {FOLDER}/ of the run's folder)"
    )


def kept_pairs(part: Pairs, data: PairOptions) -> str:
    """Pairs as the lines of a file."""
    one, other = _keys(data)
    rows = zip(part.source, part.target, part.origin, strict=True)
    return _lines({one: source, other: target, "origin": origin} for source, target, origin in rows)


def kept_labelled(part: Labelled) -> str:
    """Labelled texts as the lines of a file."""
    rows = zip(part.labels, part.texts, part.origin, strict=True)
    return _lines({"label": label, "text": text, "origin": origin} for label, text, origin in rows)


def find_kept(run: Path | None, name: str | None, *, is_held_out: bool) -> Path | None:
    """The file in a run's folder that has the set `name`: dev or test, where that was held out; None if it is no such.

    Args:
        run: the run's folder, if there is one.
        name: of the set that is asked for; None: the recipe's test set.
        is_held_out: whether the recipe holds a test set out.

    Raises:
        InputError: the test set was held out, and is no longer there.
    """
    if run is None or name not in (None, "dev", "test"):
        return None
    path = run / FOLDER / f"{name or 'test'}.jsonl"
    if path.exists():
        return path
    if name is None and is_held_out:
        what = "the test set that this run held out is no longer in its folder"
        other = option("pairs", "NAME", python="data.test=NAME in changes")
        raise InputError(what, where=str(path), fix=f"put it back, or give {other}")
    return None


def read_kept_pairs(path: Path, data: PairOptions) -> Pairs:
    """Pairs that a run kept. Raises InputError as `read_pairs`."""
    return read_pairs(path.parent, path.name, *_keys(data))


def read_kept_labelled(path: Path) -> Labelled:
    """Labelled texts that a run kept. Raises InputError as `read_labelled`."""
    return read_labelled(path.parent, path.name)


def _keys(data: PairOptions) -> Sequence[str]:
    """What a line calls its two sides: by their languages, unless these are one."""
    return (data.source, data.target) if data.source != data.target else ("source", "target")


def _lines(records: Iterable[dict[str, str]]) -> str:
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)
