"""The models of a server, each with its engine, and what is asked of them by name or by languages."""

import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from plainformer.decode.load import VERBS
from plainformer.decode.mask_filler import MaskFiller
from plainformer.errors import InputError
from plainformer.files.json_object import read_object
from plainformer.folder import read_config
from plainformer.locate import find_model
from plainformer.serve.call import Refused
from plainformer.serve.engine import Engine
from plainformer.serve.looks import Looks

CODE = r"[a-z]{2,3}(?:[-_][A-Za-z]{2,8})?"
"""A language, as `en` or `pt-BR`."""

_PAIR = re.compile(rf"(?:.*[-_])?({CODE})-({CODE})")


@dataclass(frozen=True)
class Served:
    """One model of a server.

    Attributes:
        name: what clients call it.
        engine: around it.
        pair: of a translator, the languages that it reads and writes.
        looks: what the page of `look` is given of it; None where it may not be looked at.
    """

    name: str
    engine: Engine
    pair: tuple[str, str] | None = None
    looks: Looks | None = None

    @property
    def verb(self) -> str:
        return VERBS[type(self.engine.model)]

    @property
    def task(self) -> str:
        """What it does: its verb, or, of an encoder without a head, embed."""
        model = self.engine.model
        return "embed" if isinstance(model, MaskFiller) and not model.model.config.head else self.verb


@dataclass(frozen=True)
class Bounds:
    """How much one request may ask.

    Attributes:
        texts: in one request. characters: of all of its texts.
        samples: texts that a language model writes for one request.
        seconds: until it must be answered.
    """

    texts: int = 256
    characters: int = 100_000
    samples: int = 128
    seconds: float = 120.0


@dataclass(frozen=True)
class House:
    """All models of a server."""

    models: Sequence[Served]
    bounds: Bounds = field(default_factory=Bounds)
    needs_key: bool = False
    began: int = field(default_factory=lambda: int(time.time()))

    def named(self, name: str, *verbs: str) -> Served:
        """Raises Refused where there is none of that name, or it is for something else."""
        for one in self.models:
            if one.name == name:
                if one.verb in verbs:
                    return one
                said = f"the model {name} is for {one.verb}; it cannot do this"
                raise Refused(400, said, field="model", code="model_cannot")
        raise _unknown(name)

    def any_named(self, name: str) -> Served:
        """Whatever it is for. Raises Refused where there is none of that name."""
        return self.named(name, *VERBS.values())

    def only(self, name: str | None, *verbs: str) -> Served:
        """`named`, where a name need not be given if there is one such model alone."""
        if name is not None:
            return self.named(name, *verbs)
        fit = [one for one in self.models if one.verb in verbs]
        if len(fit) == 1:
            return fit[0]
        if not fit:
            raise Refused(404, "this server has no model for this", field="model", code="model_not_found")
        raise Refused(400, f"name a model: {', '.join(one.name for one in fit)}", field="model", code="model_missing")

    @property
    def pairs(self) -> Mapping[tuple[str, str], Served]:
        """The translators by their languages; the first of equal ones."""
        found: dict[tuple[str, str], Served] = {}
        for one in self.models:
            if one.pair is not None:
                found.setdefault(one.pair, one)
        return found

    def check_texts(self, texts: Sequence[str], name: str) -> None:
        """Raises Refused where there are too many, or they are too long."""
        if len(texts) > self.bounds.texts:
            said = f"{name} has {len(texts):,} texts; give at most {self.bounds.texts:,} at once"
            raise Refused(400, said, field=name, code="too_many")
        if (size := sum(map(len, texts))) > self.bounds.characters:
            said = f"{name} has {size:,} characters; give at most {self.bounds.characters:,} at once"
            raise Refused(400, said, field=name, code="too_long")


def _unknown(name: str) -> Refused:
    shown = name if len(name) <= 60 else f"{name[:57]}..."
    return Refused(404, f"there is no model {shown!r} here", field="model", code="model_not_found")


def languages_of(folder: Path) -> tuple[str, str] | None:
    """The languages of a translator as far as its folder says them: our own in config.json, a Marian model's in
    tokenizer_config.json, or else its name, as opus-mt-en-de."""
    found = find_model(folder)
    about = str(read_config(found)[1].get("languages", "")).split(" to ")
    if len(about) == 2:
        return about[0], about[1]
    settings = found / "tokenizer_config.json"
    if settings.is_file():
        said = read_object(settings)
        pair = said.get("source_lang"), said.get("target_lang")
        if all(isinstance(one, str) and re.fullmatch(CODE, one) for one in pair):
            return str(pair[0]), str(pair[1])
    match = _PAIR.fullmatch(folder.resolve().name)
    return (match[1], match[2]) if match else None


def given_pair(said: str) -> tuple[str, str]:
    """Languages as they are given: `en-de`, or `en:pt-BR`. Raises InputError for what is no such pair."""
    match = re.fullmatch(rf"({CODE}):({CODE})", said) or re.fullmatch(r"([a-z]{2,3})-([a-z]{2,3})", said)
    if match is None:
        raise InputError(f"{said!r} is no pair of languages", fix="write it as en-de, or as en:pt-BR")
    return match[1], match[2]


def house_of(models: Mapping[str, tuple[Any, tuple[str, str] | None]], **how: Any) -> House:
    """A house of models as `plainformer.load` gives them, by name, whose engines are not started yet.

    Args:
        models: each with its languages, if it is a translator.
        how: `limits` of the engines; `looks`, of each model that may be looked at; what `House` takes.
    """
    limits, looks = how.pop("limits", None), how.pop("looks", {})
    engines = {name: Engine(model, *([limits] if limits else [])) for name, (model, _) in models.items()}
    return House([Served(name, engines[name], pair, looks.get(name)) for name, (_, pair) in models.items()], **how)


def quietly(places: Sequence[str]) -> None:
    """What is told of texts that were truncated where the request has said how."""
