"""`results/rows.toml`: which results are reproduced, by which recipe, and what was published.

    [[row]]
    name = "char-gpt"
    group = "language-models"
    about = "tinyshakespeare, character by character, at nanoGPT's setting for a CPU"
    recipe = "recipes/char-gpt.toml"
    set = ["data.text=data/tinyshakespeare.txt"]
    metric = "nll"
    published = { source = "nanoGPT, README", url = "https://github.com/karpathy/nanoGPT", value = 1.88 }

What was measured is beside it, in `NAME.json` (`record.py`) and `NAME.seedN.txt.gz` (`outputs.py`), written by
`plainformer reproduce NAME --record`.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError

from plainformer.errors import InputError
from plainformer.evaluate.bleu import BleuTokenizer
from plainformer.files import toml
from plainformer.files.validation import first_error
from plainformer.recipe import LanguageRecipe, Recipe, TranslationRecipe, load_recipe
from plainformer.recipe.sections import FromList, Section
from plainformer.shipped import did_you_mean
from plainformer.spelling import Said

FILE = "rows.toml"

Metric = Literal["bleu", "chrf", "nll", "perplexity", "bits_per_byte"]
"""BLEU and chrF of 0 to 100; nats a token and exp of that; bits a byte of text."""

LOWER_IS_BETTER = frozenset({"nll", "perplexity", "bits_per_byte"})

Names = Annotated[tuple[str, ...], FromList]


class Published(Section):
    """What somebody else measured."""

    source: str = Field(description="Who, where: paper and table, or repository and file.")
    url: str = Field(default="", description="Where that is read.")
    value: float | None = Field(default=None, description="The figure, of the row's metric.")
    perplexity: float | None = Field(default=None, description="Of a translator, beside its BLEU: in their tokens.")
    ref_len: int | None = Field(default=None, description="BLEU's reference length there, which shows the same text.")
    note: str = Field(default="", description="In what it is not the same measurement.")


class Scoring(Section):
    """A second way in which the same translations are scored by sacreBLEU."""

    tokenize: BleuTokenizer = Field(default="13a", description="sacreBLEU's tokenizer.")
    lowercase: bool = Field(default=False, description="Ignore case.")


class Row(Section):
    """One result: a recipe, what was published, and the seeds that it is run with."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$", description="Of the row, and of its files in results/.")
    group: str = Field(description="The table of docs/results.md that it stands in.")
    about: str = Field(description="What is trained and scored, in a line.")
    recipe: str = Field(description="The recipe's file, from the folder above results/.")
    set: Names = Field(default=(), description="Settings that the row changes in it, as --set has them.")
    metric: Metric = Field(description="What is compared.")
    also: Annotated[tuple[Scoring, ...], FromList] = Field(
        default=(), description="Other scorings of the same outputs."
    )
    seeds: Annotated[tuple[int, ...], FromList] = Field(default=(1,), min_length=1, description="Those it is run with.")
    corpus: str = Field(
        default="", description="What follows `plainformer data fetch` for the text; empty: nothing does."
    )
    compared_with: str = Field(default="", description="A row of the same test set, for the paired bootstrap.")
    published: Published | None = Field(default=None, description="What was published, if anything.")
    note: str = Field(default="", description="What a reader of the row should know.")

    @property
    def is_better_lower(self) -> bool:
        return self.metric in LOWER_IS_BETTER


class Rows(Section):
    """The file."""

    row: Annotated[tuple[Row, ...], FromList] = Field(description="The rows, in the order of the tables.")


def results_folder() -> Path:
    """Where the rows are: in a checkout beside `src`, installed inside the package. Raises InputError."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package.parents[1] / "results", package / "results"):
        if (folder / FILE).is_file():
            return folder
    raise InputError(f"there is no results/{FILE}", where=str(package), fix="name the folder with --results FOLDER")


def read_rows(folder: Path) -> tuple[Row, ...]:
    """All rows, in order.

    Raises:
        InputError: the file is missing, or a row will not do.
    """
    path = folder / FILE
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as failure:
        fix = "name the folder that has it with --results FOLDER"
        raise InputError(f"the rows cannot be read ({failure.strerror})", where=str(path), fix=fix) from failure
    try:
        rows = Rows.model_validate(toml.parse(text, where=str(path))).row
    except ValidationError as failure:
        _, what, fix = first_error(failure, Rows)
        raise InputError(what, where=str(path), fix=fix) from failure
    names = [row.name for row in rows]
    if twice := [name for at, name in enumerate(names) if name in names[:at]]:
        raise InputError(f"two rows are called {twice[0]}", where=str(path), fix="rename one of them")
    return rows


def find_row(rows: Sequence[Row], name: str) -> Row:
    """The row of that name. Raises InputError."""
    for row in rows:
        if row.name == name:
            return row
    names = [row.name for row in rows]
    fix = f"name one of {', '.join(names)}{did_you_mean(name, names)}"
    raise InputError(f"there is no row {name!r}", fix=fix)


def recipe_of(row: Row, folder: Path, *, seed: int | None = None, data: Path | None = None) -> Recipe:
    """The recipe that a row is trained by.

    Args:
        folder: of the rows, beside which the recipes are.
        seed: instead of the recipe's.
        data: where the text is, instead of where the recipe says: its folder, or a folder that has it; for running
            text the file, too.

    Raises:
        InputError: the recipe is missing or will not do, or its task has no rows.
    """
    changes = [*_settings_of(row, folder), *([f"train.seed={seed}"] if seed is not None else [])]
    recipe = load_recipe(folder.resolve().parent / row.recipe, changes)
    if not isinstance(recipe, TranslationRecipe | LanguageRecipe):
        what = f"a row is of a translator or a language model, and this recipe's task is {recipe.task}"
        raise InputError(what, where=row.recipe)
    moved = [] if data is None else moved_to(recipe, data)
    return load_recipe(folder.resolve().parent / row.recipe, [*changes, *moved]) if moved else recipe


def _settings_of(row: Row, folder: Path) -> list[str]:
    """What the row sets in its recipe, which an error places in the row's file."""
    return [Said(change, f"{folder / FILE}: {change!r} in the row {row.name}") for change in row.set]


def moved_to(recipe: Recipe, data: Path) -> list[str]:
    """The settings with which a recipe finds its text in `data`, which is it, or has it."""
    if isinstance(recipe, LanguageRecipe):
        name = Path((recipe.data.text or ("",))[0]).name
        file = data if data.is_file() else _inside(data, name) or data / name
        return [f"data.text={toml.inline([str(file)])}", "data.embedded="] if name else []
    if recipe.data.folder is None:
        return []
    return [f"data.folder={toml.inline(str(_inside(data, Path(recipe.data.folder).name) or data))}"]


def _inside(folder: Path, name: str) -> Path | None:
    """What is called so in a folder, or in a folder of it."""
    return next((path for path in (folder / name, *sorted(folder.glob(f"*/{name}"))) if path.exists()), None)


def settings_hash(row: Row, folder: Path) -> str:
    """SHA-256 of what the recipe's file and the row set: a setting that the row has is the row's, whatever the file's.

    Comments, names and the order do not count.

    Raises:
        InputError: the recipe's file cannot be read, or what the row sets is no setting.
    """
    path = folder.resolve().parent / row.recipe
    try:
        document: dict[str, Any] = toml.parse(path.read_text(encoding="utf-8"), where=str(path))
    except OSError as failure:
        raise InputError(f"the recipe cannot be read ({failure.strerror})", where=str(path)) from failure
    for change in _settings_of(row, folder):
        toml.assign(document, change)
    settings = {key: value for key, value in document.items() if key not in ("name", "description")}
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()
