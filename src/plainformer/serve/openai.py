"""OpenAI's API, for clients that were written for it: completions by language models, vectors by encoders.

What is asked and answered is as in its reference (Completions, Embeddings, Models); what it has and is not here, is
refused by name. More than there: top_k, min_p and repetition_penalty, as other servers of open models have them, and
`truncate` of embeddings.
"""

import asyncio
import base64
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field

from plainformer.serve.call import Api, Call, Endpoint, Refused
from plainformer.serve.completions import Completion, CompletionFields, complete
from plainformer.serve.fields import fields
from plainformer.serve.house import House, Served, quietly
from plainformer.serve.prompts import Prompt, texts_of
from plainformer.tokenizer.truncation import Truncate

EMBEDDERS = "fill", "classify"


class EmbeddingFields(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    model: Annotated[str, Field(description="Name of an encoder.")]
    input: Annotated[Prompt, Field(description="A text, several, or their tokens.", examples=["a man in the park"])]
    encoding_format: Literal["float", "base64"] | None = "float"
    dimensions: Annotated[int | None, Field(description="None but the vectors' own.")] = None
    truncate: Annotated[
        Truncate,
        Field(description="What is read of a text that is too long; no refuses it."),
    ] = "no"
    user: str | None = None


class EmbeddedText(BaseModel):
    object: Literal["embedding"]
    index: int
    embedding: list[float] | str


class Embeddings(BaseModel):
    object: Literal["list"]
    data: list[EmbeddedText]
    model: str
    usage: dict[str, int]


class Model(BaseModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    task: Literal["translate", "generate", "fill", "classify", "embed"]
    languages: Annotated[list[str] | None, Field(description="Of a translator: from, to.")]
    mask: Annotated[str | None, Field(description="How a gap is written for it.")]
    look: Annotated[bool, Field(description="Whether it can be looked at, at /look/ and its name.")]


class Models(BaseModel):
    object: Literal["list"]
    data: list[Model]


class ErrorFields(BaseModel):
    message: str
    type: str
    param: str | None
    code: str | None


class ErrorBody(BaseModel):
    error: ErrorFields


async def completions(house: House, call: Call) -> Any:
    return await complete(house, call, fields(CompletionFields, call.body))


async def embeddings(house: House, call: Call) -> dict[str, Any]:
    asked = fields(EmbeddingFields, call.body)
    served = house.named(asked.model, *EMBEDDERS)
    encoder = served.engine.model
    texts = texts_of(encoder.tokenizer, asked.input, "input")
    house.check_texts(texts, "input")
    how: dict[str, Any] = {"allow_unknown": True, "truncate": asked.truncate, "on_cut": quietly}
    vectors = await served.engine.embed(texts, client=call.client, deadline=house.bounds.seconds, **how)
    if asked.dimensions not in (None, len(vectors[0])):
        said = f"the vectors of {served.name} have {len(vectors[0]):,} dimensions"
        raise Refused(400, said, field="dimensions", code="wrong_value")
    rows = await asyncio.to_thread(encoder.encode_to_embed, texts, **how)
    tokens, as_text = sum(map(len, rows)), asked.encoding_format == "base64"
    data = [
        {"object": "embedding", "index": index, "embedding": _packed(vector) if as_text else _numbers(vector)}
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": served.name, "usage": usage}


def _packed(vector: np.ndarray) -> str:
    """As clients read it: float32, the lowest byte first."""
    return base64.b64encode(np.asarray(vector, "<f4").tobytes()).decode()


def _numbers(vector: np.ndarray) -> list[float]:
    """The shortest decimals that are read back as the same float32 numbers."""
    return [float(str(number)) for number in vector]


async def models(house: House, call: Call) -> dict[str, Any]:
    return {"object": "list", "data": [_model(house, one) for one in house.models]}


async def model(house: House, call: Call) -> dict[str, Any]:
    return _model(house, house.any_named(call.path["model"]))


def _model(house: House, served: Served) -> dict[str, Any]:
    said = {"id": served.name, "object": "model", "created": house.began, "owned_by": "plainformer"}
    mask = served.engine.model.mask if served.task == "fill" else None
    pair = None if served.pair is None else [*served.pair]
    return {**said, "task": served.task, "languages": pair, "mask": mask, "look": served.looks is not None}


def error(refused: Refused) -> dict[str, Any]:
    kinds = {401: "authentication_error", 429: "rate_limit_error", 404: "not_found_error"}
    kind = "server_error" if refused.status >= 500 else kinds.get(refused.status, "invalid_request_error")
    return {"error": {"message": refused.said, "type": kind, "param": refused.field, "code": refused.code}}


API = Api(
    "OpenAI",
    [
        Endpoint("POST", "/v1/completions", completions, "Go on with texts.", CompletionFields, Completion),
        Endpoint("POST", "/v1/embeddings", embeddings, "Turn texts into vectors.", EmbeddingFields, Embeddings),
        Endpoint("GET", "/v1/models", models, "The models of this server.", answer=Models),
        Endpoint("GET", "/v1/models/{model}", model, "One model of this server.", answer=Model),
    ],
    error,
    ErrorBody,
)
