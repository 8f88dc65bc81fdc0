"""LibreTranslate's API, for clients that were written for it: texts and HTML translated, languages told.

What it answers is as in its description (docs.libretranslate.com); `confidence` is in percent.
"""

import asyncio
import re
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel

from plainformer.decode.batch import position_limit
from plainformer.decode.limits import MOST_SOURCE
from plainformer.serve import html, sentences
from plainformer.serve.call import Api, Call, Endpoint, Refused
from plainformer.serve.detect import Detected, detect
from plainformer.serve.fields import fields
from plainformer.serve.house import House, Served
from plainformer.serve.languages import name_of
from plainformer.serve.tagged import Tagged

MOST_ALTERNATIVES = 20
BEAMS = 4, 8, 1 + MOST_ALTERNATIVES  # of which alternatives are taken, where the model's own has not enough
MOST_CHARACTERS_A_TOKEN = 16  # on average, of a long sentence

Texts = str | list[str]

_DIGITS = "^[0-9]{1,9}$"


def _number(said: Any) -> Any:
    """A whole number as a form has it, in digits. Raises ValueError for what JSON has instead of one."""
    if isinstance(said, str) and re.fullmatch(_DIGITS, said, flags=re.ASCII):
        return int(said)
    if type(said) is not int and not (isinstance(said, float) and said.is_integer()):
        raise ValueError("it must be a whole number")
    return said


class TranslateFields(BaseModel):
    q: Annotated[Texts, Field(description="A text, or several.", examples=["a man in the park"])]
    source: Annotated[str, Field(description="Code of the language of q, or auto.", examples=["en"])]
    target: Annotated[str, Field(description="Code of the language wanted.", examples=["de"])]
    format: Annotated[str, Field(description="text, or html, whose tags are kept.", pattern="^(text|html)$")] = "text"
    alternatives: Annotated[
        int,
        Field(description="So many other translations.", ge=0, le=MOST_ALTERNATIVES),
        BeforeValidator(_number, json_schema_input_type=int | Annotated[str, Field(pattern=_DIGITS)]),
    ] = 0
    api_key: Annotated[str | None, Field(description="Where the server wants one.")] = None


class DetectFields(BaseModel):
    q: Annotated[str, Field(description="A text.", examples=["a man in the park"])]
    api_key: Annotated[str | None, Field(description="Where the server wants one.")] = None


class Translated(BaseModel):
    translatedText: Texts
    alternatives: list[str] | list[list[str]] | None = None
    detectedLanguage: "DetectedLanguage | list[DetectedLanguage] | None" = None


class DetectedLanguage(BaseModel):
    language: str
    confidence: Annotated[float, Field(description="In percent.", ge=0, le=100)]


class DetectedLanguages(RootModel[list[DetectedLanguage]]):
    """The most probable first."""


class Language(BaseModel):
    code: str
    name: str
    targets: list[str]


class Languages(RootModel[list[Language]]):
    """Of all translators together."""


class Settings(BaseModel):
    apiKeys: bool
    charLimit: int
    filesTranslation: bool
    frontendTimeout: int
    keyRequired: bool
    language: dict[str, dict[str, str]]
    suggestions: bool
    supportedFilesFormat: list[str]


class Health(BaseModel):
    status: Literal["ok"]


class ErrorBody(BaseModel):
    model_config = ConfigDict(extra="forbid")
    error: str


async def translate(house: House, call: Call) -> dict[str, Any]:
    asked = fields(TranslateFields, call.body, missing="Invalid request: missing {} parameter")
    texts = [asked.q] if isinstance(asked.q, str) else asked.q
    if not texts:
        raise Refused(400, "Invalid request: missing q parameter", field="q")
    house.check_texts(texts, "q")
    _check_language(house, asked.source, "source", "auto")
    _check_language(house, asked.target, "target")
    found = await asyncio.to_thread(_languages_of, house, texts, asked.source)
    wanted = [_translator(house, one.language, asked.target) for one in found]
    answers = await _translations(house, call, asked, texts, wanted)
    return _as_asked(asked, answers, found)


def _as_asked(asked: TranslateFields, answers: list[list[str]], found: list[Detected]) -> dict[str, Any]:
    """The answer: a list where a list came, of which a single text has no layer."""
    columns: dict[str, list[Any]] = {"translatedText": [options[0] for options in answers]}
    if asked.alternatives:
        columns["alternatives"] = [options[1:] for options in answers]
    if asked.source == "auto":
        columns["detectedLanguage"] = [one._asdict() for one in found]
    return {name: column[0] if isinstance(asked.q, str) else column for name, column in columns.items()}


async def _translations(
    house: House, call: Call, asked: TranslateFields, texts: Sequence[str], wanted: Sequence[Served | None]
) -> list[list[str]]:
    """Of each text its translation and the others. All of one model go to it together."""
    documents = await asyncio.to_thread(
        lambda: [Tagged(html.parts(text)) if asked.format == "html" else None for text in texts]
    )
    pieces = [[text] if document is None else document.texts for text, document in zip(texts, documents, strict=True)]
    found: dict[int, list[list[str]]] = {}
    for model in dict.fromkeys(wanted):
        members = [index for index, one in enumerate(wanted) if one is model]
        flat = [piece for index in members for piece in pieces[index]]
        done = iter(await _translated(house, call, model, flat, asked.alternatives))
        found |= {index: [next(done) for _ in pieces[index]] for index in members}
    answers = []
    for index, document in enumerate(documents):
        ranked = [[options[rank] for options in found[index]] for rank in range(1 + asked.alternatives)]
        joined = [one[0] if document is None else document.joined(one) for one in ranked]
        answers.append([joined[0], *(one for one in dict.fromkeys(joined[1:]) if one != joined[0])])
    return answers


async def _translated(
    house: House, call: Call, model: Served | None, texts: Sequence[str], alternatives: int
) -> list[list[str]]:
    """Of each text as many translations as are asked for, of which some may be equal; without a model the text."""
    if model is None:
        return [[text] * (1 + alternatives) for text in texts]
    translator = model.engine.model
    cuts = await asyncio.to_thread(lambda: [sentences.cut(text, _fits(translator)) for text in texts])
    flat = [sentence for cut in cuts for sentence in cut.sentences]
    changes: dict[str, Any] = {}
    if alternatives:
        size = beam_for(1 + alternatives, translator.settings.beam_size)
        changes = {"n_best": size, "beam_size": size}
    deadline = house.bounds.seconds
    found = await model.engine.translate_n_best(flat, client=call.client, deadline=deadline, **changes)
    call.note("translated_sentences", len(flat))
    answers, ends = [], [0, *accumulate(len(cut.sentences) for cut in cuts)]
    for cut, start, end in zip(cuts, ends[:-1], ends[1:], strict=True):
        own = [[option.text for option in options] or [""] for options in found[start:end]]
        answers.append([cut.joined([one[min(rank, len(one) - 1)] for one in own]) for rank in range(1 + alternatives)])
    return answers


def beam_for(wanted: int, own: int) -> int:
    """Beams of few sizes, each compiled once, however many translations are asked for."""
    return next(size for size in (own, *BEAMS) if size >= max(wanted, own))


def _fits(translator: Any) -> Callable[[str], bool]:
    """Whether a sentence can be read at once."""
    limit = position_limit(translator.model.config)
    most = MOST_SOURCE if limit is None else min(MOST_SOURCE, limit - 1)

    def fits(sentence: str) -> bool:
        # A character has at most four bytes, a token at least one; and none has many characters.
        if 4 * len(sentence) <= most or len(sentence) > MOST_CHARACTERS_A_TOKEN * most:
            return 4 * len(sentence) <= most
        return len(translator.source_tokenizer.encode(sentence)) <= most

    return fits


def _languages_of(house: House, texts: Sequence[str], source: str) -> list[Detected]:
    """Of each text; what cannot be told is the first language that is read here."""
    if source != "auto":
        return [Detected(source, 100.0)] * len(texts)
    codes = _codes(house)
    other = Detected(next(iter(house.pairs))[0], 0.0)
    return [next(iter(detect(text, codes)), other) for text in texts]


def _codes(house: House) -> list[str]:
    return list(dict.fromkeys(code for pair in house.pairs for code in pair))


def _check_language(house: House, code: str, name: str, *others: str) -> None:
    if code not in (*_codes(house), *others):
        raise Refused(400, f"{code[:40]} is not supported", field=name)


def _translator(house: House, source: str, target: str) -> Served | None:
    """None where there is nothing to do."""
    if source == target:
        return None
    if (found := house.pairs.get((source, target))) is None:
        raise Refused(400, f"{target} is not supported as a target of {source}", field="target")
    return found


async def detected(house: House, call: Call) -> list[dict[str, Any]]:
    asked = fields(DetectFields, call.body, missing="Invalid request: missing {} parameter")
    house.check_texts([asked.q], "q")
    found = await asyncio.to_thread(detect, asked.q, _codes(house))
    return [one._asdict() for one in found]


async def languages(house: House, call: Call) -> list[dict[str, Any]]:
    targets = {code: [target for source, target in house.pairs if source == code] for code in _codes(house)}
    return [{"code": code, "name": name_of(code), "targets": own} for code, own in targets.items()]


async def settings(house: House, call: Call) -> dict[str, Any]:
    first = next(iter(house.pairs), None)
    pair = {
        side: {"code": code, "name": name_of(code)}
        for side, code in zip(("source", "target"), first or ("", ""), strict=True)
    }
    return {
        "apiKeys": house.needs_key,
        "charLimit": house.bounds.characters,
        "filesTranslation": False,
        "frontendTimeout": 500,
        "keyRequired": house.needs_key,
        "language": pair,
        "suggestions": False,
        "supportedFilesFormat": [],
    }


async def health(house: House, call: Call) -> dict[str, Any]:
    return {"status": "ok"}


def error(refused: Refused) -> dict[str, Any]:
    return {"error": refused.said}


API = Api(
    "LibreTranslate",
    [
        Endpoint("POST", "/translate", translate, "Translate texts.", TranslateFields, Translated, forms=True),
        Endpoint(
            "POST", "/detect", detected, "Tell the language of a text.", DetectFields, DetectedLanguages, forms=True
        ),
        Endpoint(
            "GET", "/languages", languages, "What each language is translated into.", None, Languages, is_open=True
        ),
        Endpoint("GET", "/frontend/settings", settings, "What a page needs to know.", None, Settings, is_open=True),
        Endpoint("GET", "/health", health, "Whether the server works.", None, Health, is_open=True),
    ],
    error,
    ErrorBody,
    unauthorised=403,
)
