"""Where recipes are found: as a file, or by name among those that come with plainformer."""

from pathlib import Path

from plainformer.errors import InputError


def find_recipe(name: str) -> Path:
    """The recipe file `name`, or the shipped recipe of that name (`demo`, `multi30k-tiny`).

    Raises:
        InputError: there is neither.
    """
    path = Path(name)
    if path.suffix == ".toml" or path.is_file():
        return path  # a missing file is explained where it is opened
    package = Path(__file__).resolve().parents[1]
    # Installed, they are inside the package; in a checkout, beside `src`.
    shipped = {
        file.stem: file
        for folder in (package.parents[1] / "recipes", package / "recipes")
        for file in sorted(folder.glob("*.toml"))
    }
    if name in shipped:
        return shipped[name]
    known = sorted(shipped)
    if path.is_dir():
        raise InputError("this is a folder, and a recipe is a file", where=name, fix="name a .toml file in it")
    raise InputError(f"there is no recipe {name!r}", fix=f"name a .toml file, or one of {', '.join(known)}")
