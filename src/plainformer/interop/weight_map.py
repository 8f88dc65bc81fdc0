"""A family's table of weights, laid over one model: which of theirs is which of ours, read in both directions."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from plainformer.errors import InputError
from plainformer.files.safetensors import Shape, check_shapes
from plainformer.interop.family import Family, Layout
from plainformer.models.parameters import AnyConfig, abstract_model, named_shapes


@dataclass(frozen=True)
class Pair:
    """One weight of theirs, and those of ours that it is.

    Attributes:
        theirs: its name, prefix included.
        shape: what it must have.
        ours: the names, with the shape of each.
        layout, tokens: as `family.Row` has them; `tokens` is None where no axis counts the vocabulary.
    """

    theirs: str
    shape: Shape
    ours: Mapping[str, Shape]
    layout: Layout
    tokens: int | None

    def read(self, array: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
        """Our weights, by name, from theirs."""
        array = _turned(array, self.layout)
        if self.tokens is not None:
            axis, shape = self._vocab_axis % array.ndim, next(iter(self.ours.values()))
            if extra := shape[axis] - self.tokens:
                array = np.pad(array, [(0, extra if at == axis else 0) for at in range(array.ndim)])
        ends = np.cumsum([shape[-1] for shape in self.ours.values()])[:-1]
        yield from zip(self.ours, np.split(array, ends, axis=-1), strict=True)

    def write(self, weights: Mapping[str, np.ndarray]) -> np.ndarray:
        """Their weight from ours."""
        array = np.concatenate([weights[name] for name in self.ours], axis=-1)
        if self.tokens is not None:
            array = np.take(array, range(self.tokens), axis=self._vocab_axis)
        return np.ascontiguousarray(array[None, :] if self.layout == "one row" else _turned(array, self.layout))

    @property
    def _vocab_axis(self) -> int:
        """The axis of ours that counts tokens: theirs' first."""
        return -1 if self.layout == "transposed" else 0


def pairs_of(family: Family, config: AnyConfig) -> list[Pair]:
    """The table for one model, its layers counted out, in the table's order."""
    shapes = named_shapes(abstract_model(config))
    found: list[Pair] = []
    for row in family.table:
        if row.when is not None and not row.when(config):
            continue
        layers = range(len(shapes)) if "{layer}" in row.theirs else range(1)
        for layer in layers:
            ours = [name.replace("{layer}", str(layer)) for name in row.ours]
            if not all(name in shapes for name in ours):
                break
            tokens = None if row.vocab is None else int(getattr(config, row.vocab))
            theirs = row.theirs.replace("{layer}", str(layer))
            chosen = {name: shapes[name] for name in ours}
            found.append(
                Pair(theirs, _shape_of_theirs(list(chosen.values()), row.layout, tokens), chosen, row.layout, tokens)
            )
    if forgotten := set(shapes) - {name for pair in found for name in pair.ours}:
        raise InputError(f"{family.model_type} has no weights for {', '.join(sorted(forgotten))}")
    return found


def located(family: Family, pairs: Sequence[Pair], found: Mapping[str, Shape], where: str) -> dict[str, str]:
    """Where each weight of theirs is: its name in the table -> its name in the file, copies that are there included.

    One that is not there under its own name is any of its copies. What is zeros, and is not there, has no place.

    Raises:
        InputError: naming every weight that is missing, unexpected or misshapen, all at once.
    """
    names = {canonical(family, name, pairs): name for name in found}
    wanted = {pair.theirs: pair.shape for pair in pairs}
    copies = {copy for copy in family.copies if copy not in wanted}
    # Who writes a tied weight but once may do so under any of its names.
    for copy in copies:
        original = repeated_by(family, copy, wanted)
        if copy in names and original in wanted and original not in names:
            names[original] = names[copy]
    counted = {
        name: found[names[name]] for name in names if name in wanted or not (name in copies or is_ignored(family, name))
    }
    wanted = {name: shape for name, shape in wanted.items() if name in names or name not in family.zeros}
    check_shapes(wanted, counted, "weights and config.json disagree", where=where)
    return {name: names[name] for name in names if name in wanted or name in copies}


def repeated_by(family: Family, copy: str, own: Collection[str]) -> str:
    """What a copy repeats, through other copies that are no weights of their `own`."""
    original = family.copies[copy]
    while original in family.copies and original not in own:
        original = family.copies[original]
    return original


def canonical(family: Family, name: str, pairs: Sequence[Pair]) -> str:
    """The name as the table has it: with the base model's prefix, which some checkpoints leave out."""
    known = {pair.theirs for pair in pairs} | set(family.copies)
    for old, new in family.renamed.items():
        name = name.removesuffix(old) + new if name.endswith(old) else name
    if name in known or name.startswith(family.prefix):
        return name
    prefixed = family.prefix + name
    return prefixed if prefixed in known or is_ignored(family, prefixed) else name


def is_ignored(family: Family, name: str) -> bool:
    """Whether a weight of theirs has no place in our model."""
    return any(fnmatchcase(name, pattern) for pattern in (*family.ignored, *family.left_out))


def left_out(family: Family, pairs: Sequence[Pair], names: Iterable[str]) -> list[str]:
    """The parts of theirs, among the weights of a file, that our model has no place for: what each is, once."""
    wanted = {pair.theirs for pair in pairs}
    unused = {canonical(family, name, pairs) for name in names} - wanted
    return [what for pattern, what in family.left_out.items() if any(fnmatchcase(name, pattern) for name in unused)]


def _turned(array: np.ndarray, layout: Layout) -> np.ndarray:
    """Theirs as ours lie; for "transposed", the other way round as well."""
    if layout == "transposed":
        return array.T
    return array[0] if layout == "one row" else array


def _shape_of_theirs(ours: Sequence[Shape], layout: Layout, tokens: int | None) -> Shape:
    whole = (*ours[0][:-1], sum(shape[-1] for shape in ours))
    turned = whole[::-1] if layout == "transposed" else whole
    turned = turned if tokens is None else (tokens, *turned[1:])
    return (1, *turned) if layout == "one row" else turned
