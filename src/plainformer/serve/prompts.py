"""A text, several, or the tokens of one or several, as OpenAI's clients may give them."""

from typing import Annotated, Any

from pydantic import Field

from plainformer.errors import InputError
from plainformer.serve.call import Refused

Tokens = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1)]
Prompt = str | Annotated[list[str], Field(min_length=1)] | Tokens | Annotated[list[Tokens], Field(min_length=1)]


def texts_of(tokenizer: Any, given: Prompt, name: str) -> list[str]:
    """The texts. Tokens must be those of a text, as this tokenizer reads it: no model here is asked in any other way.

    Raises:
        Refused: they are not.
    """
    if isinstance(given, str):
        return [given]
    if isinstance(given[0], int):
        return [_text_of(tokenizer, given, name)]  # pyright: ignore[reportArgumentType]
    return [one if isinstance(one, str) else _text_of(tokenizer, one, name) for one in given]


def _text_of(tokenizer: Any, ids: Any, name: str) -> str:
    try:
        text = tokenizer.decode(ids)
    except InputError as error:
        raise Refused(400, str(error), field=name, code="wrong_value") from None
    if tokenizer.encode(text) != list(ids):
        said = f"{name}: these tokens are not as the tokenizer of the model reads a text; give the text"
        raise Refused(400, said, field=name, code="wrong_value")
    return text
