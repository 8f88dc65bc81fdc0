"""The recipes that come with plainformer: where they are, and what the lines above their settings say about them."""

import os
import re
import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from plainformer.errors import InputError


@dataclass(frozen=True)
class Shipped:
    """A recipe that comes with plainformer.

    Attributes:
        name: what it is called on the command line and in `load_recipe`.
        path: its file.
        task: what its model learns.
        description: what it is for.
        data, cost, score: what it reads, how long it takes, and what it reached, as its header says.
    """

    name: str
    path: Path
    task: str
    description: str
    data: str
    cost: str
    score: str


def shipped_files() -> dict[str, Path]:
    """The files of the recipes that come with plainformer, by name."""
    package = Path(__file__).resolve().parent
    # Installed, they are inside the package; in a checkout, beside `src`.
    folders = (package.parents[1] / "recipes", package / "recipes")
    return dict(sorted((file.stem, file) for folder in folders for file in folder.glob("*.toml")))


def shipped_recipes() -> list[Shipped]:
    """What is known of each of them, by name."""
    return [_described(name, path) for name, path in shipped_files().items()]


def find_recipe(name: str | os.PathLike[str]) -> Path:
    """The recipe file `name`, or the shipped recipe of that name (`demo`, `multi30k-tiny`).

    Raises:
        InputError: there is neither; those that there are, are named.
    """
    said, path, known = os.fspath(name), Path(name), shipped_files()
    if path.is_file():
        return path
    if said in known:
        return known[said]
    if path.is_dir():
        inside = path / "recipe.toml"
        fix = f"name {inside}" if inside.is_file() else "name a .toml file in it"
        raise InputError("this is a folder, and a recipe is a file", where=said or ".", fix=fix)
    if path.suffix == ".toml" or path.parent != Path():
        raise InputError("there is no such recipe", where=said, fix=_recipes_near(path, list(known)))
    fix = f"name a .toml file, or one of {', '.join(known)}{did_you_mean(said, known)}"
    raise InputError(f"there is no recipe {said!r}", fix=fix)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What follows a list of the known names, where one is close to `name`."""
    return "".join(f": did you mean {found}?" for found in get_close_matches(name, list(known), n=1))


def _recipes_near(path: Path, known: list[str]) -> str:
    """What to do about a recipe file that is not there."""
    beside = sorted(entry.name for entry in path.parent.glob("*.toml"))
    if near := get_close_matches(path.name, beside, n=1) or get_close_matches(f"{path.name}.toml", beside, n=1):
        return f"did you mean {path.parent / near[0]}"
    here = f"the recipes in {path.parent} are {', '.join(beside)}" if beside else f"{path.parent} has no recipes"
    if path.stem in known:
        return f"{here}; did you mean {path.stem}, which comes with plainformer"
    return f"{here}, and those that come with plainformer are {', '.join(known)}"


def _described(name: str, path: Path) -> Shipped:
    text = path.read_text(encoding="utf-8")
    document, said = tomllib.loads(text), dict(_header(text))
    built_in = document.get("data", {}).get("embedded")
    return Shipped(
        name,
        path,
        document.get("task", "translation"),
        document.get("description", ""),
        said.get("data") or (f"built in ({built_in}), no download" if built_in else "yours"),
        said.get("cost", "not stated"),
        said.get("score", "not stated"),
    )


def _header(text: str) -> Iterator[tuple[str, str]]:
    """The facts in the comment above the first setting: `# key: value`, gone on with in lines that are indented."""
    comment = re.match(r"(?:#.*\n)*", text)
    for fact in re.finditer(r"^# (\w+): (.*(?:\n# {2,}.*)*)", comment.group() if comment else "", re.MULTILINE):
        yield fact[1], re.sub(r"\s*\n#\s*", " ", fact[2])
