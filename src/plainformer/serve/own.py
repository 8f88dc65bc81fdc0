"""What neither of the other APIs has: labels of texts, and what could stand in their gaps. In OpenAI's manner."""

import asyncio
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from plainformer.decode.text_classifier import TextClassifier
from plainformer.serve import openai
from plainformer.serve.call import Api, Call, Endpoint, Refused, Written
from plainformer.serve.fields import fields
from plainformer.serve.house import House, quietly
from plainformer.serve.looks import Looks
from plainformer.serve.refusals import DeadlinePassed
from plainformer.tokenizer.truncation import Truncate

MOST_TOP = 100
MOST_LOOKED = 500  # characters of a text whose every array is told

Texts = str | Annotated[list[str], Field(min_length=1)]


class ClassifyFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    input: Annotated[Texts, Field(description="A text, or several.", examples=["what a film"])]
    model: Annotated[str | None, Field(description="Name of a classifier, where there are several.")] = None
    truncate: Annotated[
        Truncate | None,
        Field(description="What is read of a text that is too long; if not given, as in training."),
    ] = None


class LookFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    text: Annotated[str, Field(description="What it reads.", max_length=MOST_LOOKED, examples=["the man"])]


Truncated = Annotated[bool, Field(description="Whether the text is longer than what the model reads at once.")]


class ClassifiedText(BaseModel):
    index: int
    label: str
    probability: float
    probabilities: dict[str, float]
    truncated: Truncated


class Classified(BaseModel):
    object: Literal["list"]
    data: list[ClassifiedText]
    model: str


class FillFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    input: Annotated[Texts, Field(description="A text with gaps, or several.", examples=["I like <mask>."])]
    model: Annotated[str | None, Field(description="Name of a masked language model, where there are several.")] = None
    top: Annotated[int, Field(description="So many words for each gap.", ge=1, le=MOST_TOP)] = 5


class Word(BaseModel):
    text: str
    probability: float


class FilledText(BaseModel):
    index: int
    gaps: Annotated[list[list[Word]], Field(description="Of each gap the words, the most probable first.")]
    truncated: Truncated


class Filled(BaseModel):
    object: Literal["list"]
    data: list[FilledText]
    model: str


async def classify(house: House, call: Call) -> dict[str, Any]:
    asked = fields(ClassifyFields, call.body)
    served, texts = house.only(asked.model, "classify"), _texts(asked.input)
    house.check_texts(texts, "input")
    how: dict[str, Any] = {"allow_unknown": True, "on_cut": quietly}
    how["truncate"] = asked.truncate or served.engine.model.truncate
    found = await served.engine.classify(texts, client=call.client, deadline=house.bounds.seconds, **how)
    cut = await asyncio.to_thread(_truncated, served.engine.model, texts, how)
    data = [
        {"index": at, "label": one.label, "probability": one.probability, "probabilities": one.probabilities}
        | {"truncated": str(at) in cut}
        for at, one in enumerate(found)
    ]
    return {"object": "list", "data": data, "model": served.name}


def _truncated(model: TextClassifier, texts: Sequence[str], how: dict[str, Any]) -> list[str]:
    """The numbers, in digits, of the texts of which not all is read."""
    cut: list[str] = []
    model.encode(texts, **how | {"where": [*map(str, range(len(texts)))], "on_cut": cut.extend})
    return cut


async def fill(house: House, call: Call) -> dict[str, Any]:
    asked = fields(FillFields, call.body)
    served, texts = house.only(asked.model, "fill"), _texts(asked.input)
    house.check_texts(texts, "input")
    found = await served.engine.fill(
        texts, client=call.client, deadline=house.bounds.seconds, top=asked.top, on_cut=quietly
    )
    model = served.engine.model
    lengths = await asyncio.to_thread(lambda: [len(model.encode_gaps(text, "")) for text in texts])
    data = [
        {"index": at, "gaps": [[{"text": one.text, "probability": one.probability} for one in gap] for gap in gaps]}
        | {"truncated": length > model.max_text_tokens}
        for at, (gaps, length) in enumerate(zip(found, lengths, strict=True))
    ]
    return {"object": "list", "data": data, "model": served.name}


async def look(house: House, call: Call) -> Written:
    return Written(await _looks(house, call).carried())


async def look_at(house: House, call: Call) -> Written:
    looks, asked = _looks(house, call), fields(LookFields, call.body)
    try:
        async with asyncio.timeout(house.bounds.seconds):
            return Written(await looks.recorded(asked.text))
    except TimeoutError:
        raise DeadlinePassed(house.bounds.seconds) from None


def _looks(house: House, call: Call) -> Looks:
    served = house.any_named(call.path["model"])
    if served.looks is None:
        raise Refused(404, f"{served.name} cannot be looked at here", field="model", code="no_look")
    return served.looks


def _texts(given: Texts) -> list[str]:
    return [given] if isinstance(given, str) else given


API = Api(
    "plainformer",
    [
        Endpoint("POST", "/v1/classify", classify, "Label texts.", ClassifyFields, Classified),
        Endpoint("POST", "/fill", fill, "Say what could stand in the gaps of texts.", FillFields, Filled),
        Endpoint("GET", "/v1/look/{model}", look, "The model as the page of look runs it, or why it stays here."),
        Endpoint("POST", "/v1/look/{model}", look_at, "What it makes of a text, as that page shows it.", LookFields),
    ],
    openai.error,
    openai.ErrorBody,
)
