"""Parallel text: pairs of sentences, each with the place it came from, read from any of five file formats.

The format is known by the name, each file plain or `.gz`:

    train.en + train.de     one sentence a line, line i beside line i
    train.tsv  (or .txt)    source TAB target; which columns these are, `columns` finds out or is told
    train.csv               CSV, with quotes; columns as in TSV
    train.jsonl             {"translation": {"en": ..., "de": ...}} or {"en": ..., "de": ...} a line
    train.tmx               TMX; also train.en-de.tmx and train.de-en.tmx
"""

import hashlib
import itertools
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from plainformer.data.alignment import first_out_of_step
from plainformer.data.columns import column_pairs
from plainformer.data.find import Listing, listing_for, suffix_of, suggestion, without_gz
from plainformer.data.formats import Row, json_rows, read_lines
from plainformer.data.origins import Origins, select_origins
from plainformer.data.shift import warnings_of
from plainformer.data.tmx import tmx_rows
from plainformer.errors import InputError, some_of

_BY_STEM = (".tsv", ".csv", ".jsonl", ".tmx")
_BY_NAME = (".tsv", ".txt", ".csv", ".jsonl", ".tmx")


@dataclass(frozen=True)
class Pairs:
    """Parallel text: `target[i]` translates `source[i]`, and `origin[i]` is its "file:line".

    `notes` is what its reader should be told about its file: which columns were read, what looks wrong.

    Raises:
        InputError: the three differ in length.
    """

    source: list[str]
    target: list[str]
    origin: Sequence[str]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.source) == len(self.target) == len(self.origin):
            raise InputError(
                f"{len(self.source)} source sentences, {len(self.target)} target sentences and {len(self.origin)} "
                "origins are not pairs"
            )

    def __len__(self) -> int:
        return len(self.source)

    def select(self, indices: Iterable[int]) -> "Pairs":
        """The pairs at `indices` (from 0), in that order."""
        chosen = list(indices)
        origin = select_origins(self.origin, chosen)
        return Pairs([self.source[i] for i in chosen], [self.target[i] for i in chosen], origin)


def read_pairs(
    folder: Path,
    name: str,
    source: str,
    target: str,
    *,
    columns: tuple[int, int] | None = None,
    target_name: str | None = None,
) -> Pairs:
    """Read parallel text, with notes on what is odd about it.

    Blank lines are pairs like any other (empty), so that line numbers hold; `report.clean` counts and drops them.

    Args:
        folder: where the files are.
        name: a stem ("train"), which finds the one format that is there, or a file name ("hin.txt", "train.tsv.gz").
        source, target: language codes: the suffixes of line-aligned files, the keys of JSONL, the languages of TMX.
        target_name: where `name` is the file of the source side alone, that of the target side.
        columns: of TSV and CSV, the columns of source and target, counted from 0; None: see `columns`.

    Raises:
        InputError: no such text (with what is there that is close), several formats for one stem, sides of different
            length, columns that shift (see `columns`), or a file that cannot be read (see `formats` and `tmx`).
    """
    if not (name and source and target):
        raise InputError("the name and both language codes of parallel text must not be empty", where=str(folder))
    if columns is not None and min(columns) < 0:
        raise InputError(f"columns are counted from 0, and {columns} were asked for", where=str(folder))
    if target_name is not None:
        return _aligned(Path(folder) / name, Path(folder) / target_name)
    files = _find(Path(folder), name, source, target)
    if len(files) == 2:
        return _aligned(*files)
    (path,) = files
    suffix = suffix_of(path.name)
    if suffix == ".tmx":
        return _gathered(path, tmx_rows(path, source, target))
    if suffix == ".jsonl":
        return _gathered(path, json_rows(path, source, target))
    rows, notes = column_pairs(path, columns, (source, target))
    return _gathered(path, rows, notes)


def fingerprint(pairs: Pairs) -> str:
    """The SHA-256 (hex) of the text of both sides; origins do not count.

    Each sentence is preceded by its length in bytes, so no two corpora share their bytes: ("ab", "c") is not
    ("a", "bc").
    """
    digest = hashlib.sha256()
    for sentence in itertools.chain.from_iterable(zip(pairs.source, pairs.target, strict=True)):
        data = sentence.encode("utf-8", "surrogatepass")
        digest.update(b"%d:%b" % (len(data), data))
    return digest.hexdigest()


def _gathered(path: Path, rows: Iterable[Row], notes: Sequence[str] = ()) -> Pairs:
    numbers, source, target = array("q"), [], []
    for number, one, other in rows:
        numbers.append(number)
        source.append(one)
        target.append(other)
    if not any(text.strip() for text in source):
        raise InputError("the file holds no pairs", where=str(path), fix="give a file with parallel text")
    origin = Origins(path, numbers)
    return Pairs(source, target, origin, (*notes, *warnings_of(source, target, origin, [path.name])))


def _aligned(source_path: Path, target_path: Path) -> Pairs:
    source, target = read_lines(source_path), read_lines(target_path)
    if len(source) == len(target):
        origin = Origins(source_path, range(1, len(source) + 1))
        names = source_path.name, target_path.name
        return Pairs(source, target, origin, tuple(warnings_of(source, target, origin, names)))
    counts = f"{source_path.name} has {len(source):,} lines and {target_path.name} has {len(target):,}"
    index = first_out_of_step(source, target)
    longer, shorter = (source_path, target_path) if len(source) > len(target) else (target_path, source_path)
    if index is None:
        raise InputError(counts, where=str(longer), fix="give two files in which line i translates line i")
    if index == min(len(source), len(target)):
        raise InputError(
            f"{counts}; all of {shorter.name} seems to fit, and the extra lines come at the end",
            where=f"{longer}:{index + 1}",
            fix=f"complete {shorter.name} or shorten {longer.name}",
        )
    blank = [path.name for path, side in ((source_path, source), (target_path, target)) if not side[index].strip()]
    look = (
        f"line {index + 1} is empty in {blank[0]} only" if len(blank) == 1 else f"near line {index + 1} they lose step"
    )
    raise InputError(
        f"{counts}; {look}", where=f"{longer}:{index + 1}", fix="mend the files so that line i meets line i"
    )


def _find(folder: Path, name: str, source: str, target: str) -> tuple[Path] | tuple[Path, Path]:
    """The one file, or the two, that `name` stands for."""
    listing, name = listing_for(folder, name)
    if name in listing.names and suffix_of(name) in _BY_NAME:
        return (listing.folder / name,)
    sides = listing.present(f"{name}.{source}"), listing.present(f"{name}.{target}")
    single = listing.present(
        *(name + suffix for suffix in _BY_STEM), f"{name}.{source}-{target}.tmx", f"{name}.{target}-{source}.tmx"
    )
    found: list[tuple[Path] | tuple[Path, Path]] = [*itertools.product(*sides), *((path,) for path in single)]
    if files := listing.only(name, found):
        return files
    raise _not_found(listing, name, (source, target), [path.name for side in sides for path in side])


def _not_found(listing: Listing, name: str, languages: tuple[str, str], half: list[str]) -> InputError:
    """The error for a name that stands for nothing, with whatever in the folder is closest to it."""
    where, visible, pair = str(listing.folder), listing.visible, "-".join(languages)
    if half:
        missing = next(code for code in languages if f"{name}.{code}" not in {without_gz(file) for file in half})
        others = [entry for entry in visible if entry not in half]
        fix = suggestion(f"{name}.{missing}", others, otherwise=f"add {name}.{missing}")
        return InputError(f"{name}.{missing} is missing beside {half[0]}", where=where, fix=fix)
    stem, dot, code = without_gz(name).rpartition(".")
    if name in listing.names:
        if (listing.folder / name).is_dir():
            return InputError(f"{name} is a folder", where=where, fix="give it as the folder, and a name inside it")
        if dot and code in languages:
            return InputError(f"{name} is one side of a pair of files", where=where, fix=f"give the name {stem!r}")
        return InputError(f"{name} is in no known format", where=where, fix=f"known are {', '.join(_BY_NAME)} and .gz")
    what = (
        f"no parallel text {name!r} for {pair} (looked for {name}.{languages[0]} with {name}.{languages[1]}, "
        f"{name}.tsv, {name}.csv, {name}.jsonl, {name}.tmx, {name}.{pair}.tmx, plain or .gz)"
    )
    relatives = [entry for entry in visible if entry.startswith(f"{name}.")]
    if relatives:
        return InputError(what, where=where, fix=f"the folder has {some_of(relatives)}")
    stems = {without_gz(entry).rpartition(".")[0] for entry in visible} - {""}
    fix = suggestion(name, sorted(stems | set(visible)), otherwise=listing.described())
    return InputError(what, where=where, fix=fix)
