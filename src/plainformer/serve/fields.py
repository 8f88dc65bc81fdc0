"""What a body says, checked against what its endpoint asks."""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from plainformer.errors import cut
from plainformer.serve.call import Refused

Fields = TypeVar("Fields", bound=BaseModel)


def fields(
    wanted: type[Fields],
    body: Mapping[str, Any],
    *,
    missing: str = "you must give {}",
    unknown: str = "there is no field {} here",
) -> Fields:
    """The fields of a body, of the types that `wanted` says.

    Raises:
        Refused: naming the first that is missing, unknown or wrong, in the API's words for it.
    """
    try:
        return wanted.model_validate(dict(body))
    except ValidationError as found:
        first = found.errors(include_url=False, include_context=False, include_input=False)[0]
    name = cut(".".join(map(str, first["loc"][:1])))
    if first["type"] == "missing":
        raise Refused(400, missing.format(name), field=name, code="missing")
    if first["type"] == "extra_forbidden":
        raise Refused(400, unknown.format(name), field=name, code="unknown_field")
    said = first["msg"].removeprefix("Value error, ")
    raise Refused(400, f"{name}: {said[:1].lower()}{said[1:]}", field=name, code="wrong_value")
