"""The page of a model and a text, written to a file: with the model in it or, of one too large to travel, its arrays.

saved = plainformer.save_page(plainformer.load("runs/demo"), "page.html", "I like pizza")
plainformer.load("runs/demo").look("I like pizza").save_page("page.html")
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args

from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.text_classifier import SETTINGS, TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.errors import InputError, shown
from plainformer.files.atomic import write_text
from plainformer.folder import ModelFolder
from plainformer.given import place, string
from plainformer.inspect.look import Look
from plainformer.models.parameters import named_parameters
from plainformer.page.bundle import Bundle, TravelDtype, bundle
from plainformer.page.document import page_of, recorded_page_of
from plainformer.page.readable import check_tokenizer
from plainformer.page.recorded import Recording, recording_of
from plainformer.spelling import option

MEGABYTE = 1_000_000
LARGEST = 40.0  # megabytes of a page, unless told
HINT = " (--max-size)"  # what tells it
BYTES = {"float32": 4, "float16": 2, "int8": 1}

User = Translator | TextGenerator | MaskFiller | TextClassifier


@dataclass(frozen=True)
class SavedPage:
    """A page that was written.

    Attributes:
        path: of the file. size: its bytes.
        is_recorded: it has the arrays of its text alone, and no model.
        notes: what is not as one would expect, in words.
    """

    path: Path
    size: int
    is_recorded: bool
    notes: tuple[str, ...] = ()


def save_page(
    seen: Look | User,
    path: str | Path,
    text: str | None = None,
    *,
    title: str = "",
    weights: TravelDtype = "float16",
    max_size: float = LARGEST,
    overwrite: bool = False,
) -> SavedPage:
    """Write one HTML file in which a model runs, offline, in any browser.

    A page that would be larger than `max_size`, or whose tokenizer the page does not read, has the arrays of the text
    alone instead, and says so.

    Args:
        seen: what `plainformer.load` gives, or what its `look` saw.
        text: what is read first; of a look, its own.
        title: what stands above it; the text, if not given.
        weights: what they are rounded to: float16, int8 or float32.
        max_size: of a page with a model in it, in megabytes.
        overwrite: replace what is at `path`.

    Raises:
        InputError: the path will not do, an argument is out of range, or the text is none that the model reads.
        OSError: the disk refused.
    """
    if not isinstance(seen, Look | Translator | TextGenerator | MaskFiller | TextClassifier):
        raise InputError(
            f"{shown(seen)} is no loaded model, and nothing seen of one", fix="give what load or look gave"
        )
    user, text = (seen.subject.user, seen.text) if isinstance(seen, Look) else (seen, string(text, "text"))
    path = check_path(place(path, "a file for the page"), overwrite)
    check_options(weights, max_size)
    model = seen.subject.model if isinstance(seen, Look) else user.model
    settings = seen.subject.settings if isinstance(seen, Look) else None
    content, read = _content(user, model, settings), user.read(text)
    if why := _too_much(content, weights, max_size):
        html, is_recorded = _recorded(seen, content, text, why, title), True
    else:
        carried = bundle(content, content.generation, weights)
        html, is_recorded = page_of(carried, title=title or text, text=text, written=_written(seen)), False
        if len(html.encode()) > max_size * MEGABYTE:
            html, is_recorded = _recorded(seen, content, text, _said_of_size(max_size), title), True
    write_text(path, html)
    return SavedPage(path, path.stat().st_size, is_recorded, read.notes)


def carried_by(user: User, *, weights: TravelDtype = "float16", max_size: float = LARGEST) -> Bundle:
    """The model as a page carries it. Raises InputError, saying why, where it does not travel."""
    content = _content(user, user.model, None)
    if why := _too_much(content, weights, max_size, hint=""):
        raise InputError(why.removesuffix("."))
    return bundle(content, content.generation, weights)


def recorded_by(user: User, text: str, why: str) -> Recording:
    """What a model that does not travel, for the reason `why`, makes of a text. Raises InputError as its `look`."""
    return recording_of(user.look(text), _content(user, user.model, None), why)


def check_path(path: Path, overwrite: bool) -> Path:
    """Where a page is to be written. Raises InputError where it cannot be."""
    if str(path) == "-":
        raise InputError("a page is written to a file", where="-", fix="name one, such as page.html")
    if path.is_dir():
        raise InputError("this is a folder, and a page is a file", where=str(path), fix="name a file in it")
    if not path.parent.is_dir():
        raise InputError("there is no such folder", where=str(path.parent), fix="make it, or name another")
    if path.exists() and not overwrite:
        fix = f"name another, or replace it ({option('overwrite')})"
        raise InputError("there is such a file already", where=str(path), fix=fix)
    return path


def check_options(weights: str, max_size: float) -> None:
    """Raises InputError for what cannot be."""
    if weights not in get_args(TravelDtype):
        named = weights if isinstance(weights, str) else shown(weights)
        raise InputError(
            f"a page has no {named} weights",
            where=option("weights", python="weights"),
            fix=f"choose {', '.join(BYTES)}",
        )
    if (
        isinstance(max_size, bool)
        or not isinstance(max_size, int | float)
        or not math.isfinite(max_size)
        or max_size <= 0
    ):
        raise InputError(
            f"a page of {max_size} MB was asked for",
            where=option("max_size", python="max_size"),
            fix="give more than 0",
        )


def _content(user: User, model: Any, changed: Any) -> ModelFolder:
    """A loaded model as its folder has it, with all settings of decoding: the user's, unless they were changed."""
    settings: Mapping[str, Any] = {}
    if isinstance(user, Translator | TextGenerator):
        if user.unusable is not None:
            raise user.unusable
        settings = asdict(changed or user.settings)
    elif isinstance(user, TextClassifier):
        settings = {name: getattr(user, name) for name in SETTINGS}
    if isinstance(user, Translator):
        return ModelFolder(model, user.source_tokenizer, user.target_tokenizer, settings)
    return ModelFolder(model, user.tokenizer, user.tokenizer, settings)


def _written(seen: Look | User) -> Sequence[int]:
    """The target of a translation that was not searched for: it is held on the page."""
    if isinstance(seen, Look) and seen.kind == "translation" and seen.beam is None:
        return seen.subject.chosen
    return ()


def _too_much(content: ModelFolder, weights: TravelDtype, max_size: float, hint: str = HINT) -> str:
    """Why the model does not travel, as far as that is known before it is packed; nothing where it may."""
    numbers = sum(array.size for array in named_parameters(content.model).values())
    if numbers * BYTES[weights] * 4 / 3 > max_size * MEGABYTE:  # base64 has four letters for three bytes
        return _said_of_size(max_size, hint)
    try:
        for tokenizer in (content.source_tokenizer, content.target_tokenizer):
            check_tokenizer(tokenizer.description)
    except InputError as error:
        return f"{error.what}."
    return ""


def _said_of_size(max_size: float, hint: str = HINT) -> str:
    return f"the model is larger than the {max_size:g} MB of a page{hint}."


def _recorded(seen: Look | User, content: ModelFolder, text: str, why: str, title: str) -> str:
    whole = seen if isinstance(seen, Look) else seen.look(text)
    return recorded_page_of(recording_of(whole, content, why), title=title or text, text=text)
