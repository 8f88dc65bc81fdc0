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
    shipped = [folder / f"{name}.toml" for folder in (package / "recipes", package.parents[1] / "recipes")]
    for candidate in shipped:
        if candidate.exists():
            return candidate
    known = sorted({file.stem for candidate in shipped for file in candidate.parent.glob("*.toml")})
    raise InputError(f"there is no recipe {name!r}", fix=f"name a .toml file, or one of {', '.join(known)}")
