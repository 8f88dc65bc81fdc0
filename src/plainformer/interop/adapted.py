"""A checkpoint with a LoRA adapter of PEFT's: its weights, each changed as it is read.

A pair is A (rank, d_in) and B (d_out, rank), and adds alpha / rank · B A to a matrix of PyTorch's, (d_out, d_in), or,
turned, to that of a Conv1D; of an embedding, (tokens, d), A is (rank, tokens). With DoRA (Liu et al. 2024) every row of
the sum then gets a length that was learned. Other arrays in the file take the place of the base's.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np

from plainformer.errors import InputError
from plainformer.files.safetensors import ADAPTER_CONFIG, ADAPTERS, PREFIX, Shape, check_finite, check_shapes
from plainformer.interop.family import Family
from plainformer.interop.peft import ANOTHER, Lora
from plainformer.interop.weight_map import Pair, canonical, is_ignored, pairs_of, repeated_by
from plainformer.interop.weights import Weights, open_weights
from plainformer.models.parameters import AnyConfig

WRAPPED = (".base_layer.", ".modules_to_save.default.", ".modules_to_save.")  # what PEFT puts into names of the base's
CLASSIFIERS = {"bert": "BertForSequenceClassification"}
"""The class of theirs that tells texts apart, by `model_type`; its output is called `classifier`."""

_PART = re.compile(r"(.+)\.(lora_(?:embedding_)?[AB]|lora_magnitude_vector)(?:\.default)?(?:\.weight)?")


@dataclass
class Change:
    """What an adapter does to one weight: `whole` takes its place, or the parts of a pair are added.

    Attributes:
        module: the layer, as the adapter's file calls it.
        parts: by PEFT's names.
    """

    module: str = ""
    whole: np.ndarray | None = None
    parts: dict[str, np.ndarray] = field(default_factory=dict)


def adapted(lora: Lora, family: Family, values: Mapping[str, Any], base: Weights) -> tuple[dict[str, Any], Weights]:
    """The settings and the weights of the model that an adapter makes of its base's.

    Args:
        values: the base's `config.json`.

    Returns:
        The settings, which say what the adapter makes of them: a classifier, more tokens, an output that is no longer
        tied. The weights have the table's names, and are computed as they are read.

    Raises:
        InputError: the adapter's file is damaged, does not go with the base, or is not finite; all that is wrong.
    """
    given = open_weights(lora.folder, ADAPTERS)
    values = _settings(lora, family, values, given)
    pairs = _pairs(family, values, base)
    changes = _changes(family, list(pairs.values()), given)
    table = family.table[0].theirs
    if (change := changes.get(table)) and change.whole is not None and "vocab_size" in values:
        values["vocab_size"] = len(change.whole)
        pairs = _pairs(family, values, base)
    _check(lora, family, pairs, changes, str(given.where))
    found = _Adapted(lora, family, pairs, changes, base)
    if found.comes_apart():
        values["tie_word_embeddings"] = False
        found.pairs = _pairs(family, values, base)
    return values, Weights(base.where, found.shapes(), found.read)


def _pairs(family: Family, values: Mapping[str, Any], base: Weights) -> dict[str, Pair]:
    config = cast(AnyConfig, family.config_from(values, str(base.where)))
    return {pair.theirs: pair for pair in pairs_of(family, config)}


def _settings(lora: Lora, family: Family, values: Mapping[str, Any], given: Weights) -> dict[str, Any]:
    """The base's settings, as those of a classifier if need be. Raises InputError where there is none of the family."""
    found = dict(values)
    if lora.classifies:
        if (architecture := CLASSIFIERS.get(family.model_type)) is None:
            what = f"task_type is SEQ_CLS, and no classifier of texts is made of a {family.model_type} here"
            raise InputError(what, where=str(lora.folder / ADAPTER_CONFIG), fix="use it where it was made")
        found["architectures"] = [architecture]
        labels, output = found.get("id2label"), given.shapes.get(f"{PREFIX}classifier.weight")
        if output and not (isinstance(labels, dict) and len(labels) == output[0]):
            found["id2label"] = {str(number): f"LABEL_{number}" for number in range(output[0])}
    return found


def _changes(family: Family, pairs: Sequence[Pair], given: Weights) -> dict[str, Change]:
    """By the table's names; what the family leaves out of a checkpoint is left out here, too. Raises InputError for
    numbers that are not finite."""
    found: dict[str, Change] = {}
    broken = []
    for name in given.shapes:
        inner = name.removeprefix(PREFIX)
        part = _PART.fullmatch(inner)
        for word in WRAPPED:
            inner = inner.replace(word, ".")
        weight = canonical(family, f"{part[1]}.weight" if part else inner, pairs)
        if is_ignored(family, weight) and weight not in {pair.theirs for pair in pairs}:
            continue
        array = given.read(name)
        broken += [] if np.isfinite(array).all() else [name]
        change = found.setdefault(weight, Change())
        if part:
            change.module, change.parts[part[2]] = part[1], array
        else:
            change.whole = array
    check_finite(broken, len(given.shapes), where=str(given.where), fix="train it again at a lower learning rate")
    return found


def _check(lora: Lora, family: Family, pairs: Mapping[str, Pair], changes: Mapping[str, Change], where: str) -> None:
    """Raises InputError where the adapter's arrays are not those that its settings and the base ask for."""
    tied = {copy: pairs[of] for copy, of in _tied(family, pairs) if of in pairs}
    known = dict(pairs) | tied
    wanted: dict[str, Shape] = {}
    found: dict[str, Shape] = {}
    for weight in sorted({*changes, *_targeted(lora, pairs)}):
        change, base = changes.get(weight, Change()), known.get(weight)
        module = weight.removesuffix(".weight")
        found |= {f"{module}.{part}": array.shape for part, array in change.parts.items()}
        if change.whole is not None:
            found[weight] = change.whole.shape
        if base is None:
            continue
        if change.whole is not None:
            wanted[weight] = base.shape
        if change.parts or change.whole is None:
            wanted |= {f"{module}.{part}": shape for part, shape in _parts(lora, change, weight in tied, base).items()}
    check_shapes(wanted, found, f"the pairs do not go with {ADAPTER_CONFIG} and the base", where=where, fix=ANOTHER)


def _tied(family: Family, pairs: Mapping[str, Pair]) -> list[tuple[str, str]]:
    """The copies that the table has no weight for, and what each repeats that it has, if anything."""
    return [(copy, repeated_by(family, copy, set(pairs))) for copy in family.copies if copy not in pairs]


def _parts(lora: Lora, change: Change, is_output: bool, base: Pair) -> dict[str, Shape]:
    """The shapes of a pair beside a matrix."""
    rank = lora.rank_of(change.module)
    if any(part.startswith("lora_embedding") for part in change.parts):
        tokens, width = base.shape
        return {"lora_embedding_A": (rank, tokens), "lora_embedding_B": (width, rank)}
    d_out, d_in = base.shape if base.layout == "transposed" or is_output else base.shape[::-1]
    found: dict[str, Shape] = {"lora_A": (rank, d_in), "lora_B": (d_out, rank)}
    return found | ({"lora_magnitude_vector": (d_out,)} if lora.dora else {})


def _targeted(lora: Lora, pairs: Mapping[str, Pair]) -> list[str]:
    """The matrices of the layers that must have a pair, for the settings name them."""
    ends = tuple(f".{target}.weight" for target in lora.targets)
    return [
        name
        for name, pair in pairs.items()
        if len(pair.shape) == 2 and re.search(r"\.\d+\.", name) and f".{name}".endswith(ends)
    ]


@dataclass
class _Adapted:
    """The weights of a base, by the table's names, each changed as it is read."""

    lora: Lora
    family: Family
    pairs: Mapping[str, Pair]
    changes: Mapping[str, Change]
    base: Weights

    def __post_init__(self) -> None:
        pairs = list(self.pairs.values())
        self._names = {canonical(self.family, name, pairs): name for name in self.base.shapes}

    def shapes(self) -> dict[str, Shape]:
        """All there are; of a classifier what belongs to it alone, not what its base was for."""
        copies = self.family.copies
        names = {*self._names, *(name for name in self.pairs if name in copies), *self.changes}
        if self.lora.classifies:
            names = {name for name in names if name in self.pairs}
        return {name: self._shape(name) for name in names}

    def comes_apart(self) -> bool:
        """Whether the adapter makes two weights differ that are one in the base."""
        for copy, of in _tied(self.family, self.pairs):
            if of not in self.pairs or not {copy, of} & set(self.changes):
                continue
            if self._shape(copy) != self._shape(of) or not np.array_equal(self.read(copy), self.read(of)):
                return True
        return False

    def read(self, name: str) -> np.ndarray:
        change = self.changes.get(name, Change())
        array = self.base.read(self._at(name)) if change.whole is None else change.whole
        return self._with_pair(array, change, name) if change.parts else array

    def _at(self, name: str) -> str:
        """Where the base has a weight: under its own name or, tied, under another."""
        while name not in self._names and name in self.family.copies:
            name = self.family.copies[name]
        return self._names.get(name, name)

    def _shape(self, name: str) -> Shape:
        change = self.changes.get(name)
        return self.base.shapes[self._at(name)] if change is None or change.whole is None else change.whole.shape

    def _with_pair(self, array: np.ndarray, change: Change, name: str) -> np.ndarray:
        parts, scale = change.parts, np.float32(self.lora.scale_of(change.module))
        if "lora_embedding_A" in parts:
            return array + scale * (parts["lora_embedding_B"] @ parts["lora_embedding_A"]).T
        turned = name in self.pairs and self.pairs[name].layout == "same"
        rows = (array.T if turned else array) + scale * (parts["lora_B"] @ parts["lora_A"])
        if self.lora.dora:
            lengths = np.linalg.norm(rows, axis=1)
            rows = rows * (parts["lora_magnitude_vector"] / lengths)[:, None]
        return rows.T if turned else rows
