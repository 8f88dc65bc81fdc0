"""The OpenAPI document of a server: what each endpoint is asked and answers, from the types that check it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from plainformer import __version__
from plainformer.serve.call import Api, Endpoint

_REF = "#/components/schemas/{model}"
Refs = Mapping[type[BaseModel], Any]
EVENT = {
    "type": "object",
    "properties": {"data": {"type": "string", "description": "An answer as JSON, of what came since; or [DONE]."}},
    "required": ["data"],
}
ERRORS = {
    "400": "The request is wrong.",
    "404": "There is no such model.",
    "408": "The body came too slowly.",
    "413": "The body is too long.",
    "415": "The body is of another type.",
    "421": "The server has another name.",
    "429": "Too many requests; Retry-After says when.",
    "503": "Too much is under way; Retry-After says when.",
    "504": "There was no answer in time.",
}


def document(apis: Sequence[Api], *, needs_key: bool) -> dict[str, Any]:
    """OpenAPI 3.1 of these APIs."""
    models = {
        model
        for api in apis
        for model in (api.error_schema, *(one for end in api.endpoints for one in (end.asked, end.answer) if one))
    }
    modes = [(model, "validation") for model in sorted(models, key=lambda model: (model.__module__, model.__name__))]
    found_refs, schemas = models_json_schema(modes, ref_template=_REF)  # pyright: ignore[reportArgumentType]
    refs = {model: found_refs[model, "validation"] for model, _ in modes}
    paths: dict[str, Any] = {}
    for api in apis:
        for end in api.endpoints:
            paths.setdefault(end.path, {})[end.method.lower()] = _operation(api, end, refs, needs_key)
    found: dict[str, Any] = {
        "openapi": "3.1.0",
        "info": {"title": "plainformer", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas.get("$defs", {})},
    }
    if needs_key:
        found["components"]["securitySchemes"] = {"key": {"type": "http", "scheme": "bearer"}}
    return found


def _operation(api: Api, end: Endpoint, refs: Refs, needs_key: bool) -> dict[str, Any]:
    error = _content(refs, api.error_schema)
    statuses = dict(ERRORS) | ({str(api.unauthorised): "The key is missing or wrong."} if needs_key else {})
    answer = {"description": "The answer.", "content": _content(refs, end.answer)}
    if end.path == "/v1/completions":
        answer["content"]["text/event-stream"] = {"schema": EVENT}
    said: dict[str, Any] = {
        "operationId": f"{end.method.lower()}{re.sub(r'[^a-z]+', '_', end.path)}",
        "summary": end.summary,
        "tags": [api.name],
        "responses": {
            "200": answer,
            **{status: {"description": text, "content": error} for status, text in sorted(statuses.items())},
        },
    }
    if end.asked is not None:
        said["requestBody"] = {"required": True, "content": _content(refs, end.asked)}
        if end.forms:
            said["requestBody"]["content"] |= _content(refs, end.asked, "application/x-www-form-urlencoded")
    if names := re.findall(r"{(\w+)}", end.path):
        said["parameters"] = [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names
        ]
    if needs_key and not end.is_open:
        said["security"] = [{"key": []}]
    return said


def _content(refs: Refs, model: type[BaseModel] | None, kind: str = "application/json") -> dict[str, Any]:
    return {kind: {"schema": refs[model] if model else {}}}
