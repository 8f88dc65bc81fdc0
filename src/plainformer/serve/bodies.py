"""Bodies of requests: read so far and no farther, and taken for JSON or a form, whatever they are."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from email.message import Message
from email.parser import BytesParser
from typing import Any, NoReturn
from urllib.parse import parse_qsl

from plainformer.serve.call import Refused

MOST_FIELDS = 1000  # of a form

Receive = Callable[[], Awaitable[Any]]


class Gone(Exception):
    """The client has gone."""


async def read(receive: Receive, length: str | None, most: int, seconds: float) -> bytes:
    """The body, from ASGI's messages.

    Args:
        length: the header that says how long it is, if it came.
        most: bytes. seconds: for all of it.

    Raises:
        Refused: it is longer, or did not come in time. Gone: nobody waits.
    """
    if length is not None and (not length.isascii() or not length.isdigit() or int(length[:20]) > most):
        raise _too_long(most)
    parts, size = [], 0
    try:
        async with asyncio.timeout(seconds):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Gone
                parts.append(message.get("body", b""))
                size += len(parts[-1])
                if size > most:
                    raise _too_long(most)
                if not message.get("more_body", False):
                    return b"".join(parts)
    except TimeoutError:
        raise Refused(408, f"the body did not come within {seconds:g} seconds", code="slow_body") from None


def _too_long(most: int) -> Refused:
    return Refused(413, f"the body is too long; give at most {most:,} bytes", code="too_long")


def parse(content_type: str, body: bytes, *, forms: bool) -> dict[str, Any]:
    """The fields of a body. Raises Refused for one that cannot be read."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind in ("", "application/json") or kind.endswith("+json"):
        return _json(body)
    if forms and kind == "application/x-www-form-urlencoded":
        return _form(body)
    if forms and kind == "multipart/form-data":
        return _parts(content_type, body)
    either = "application/json" + (" or a form" if forms else "")
    raise Refused(415, f"a body must be {either}, by its Content-Type", code="content_type")


def _json(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(body.decode(), parse_constant=_no_constant)
        # A pair of escapes may spell half a character, which no answer could have in it.
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeError:
        raise Refused(400, "the body is not UTF-8", code="not_utf8") from None
    except RecursionError:
        raise Refused(400, "the body is nested too deeply", code="not_json") from None
    except ValueError:
        raise Refused(400, "the body is not JSON", code="not_json") from None
    if not isinstance(found, dict):
        raise Refused(400, "the body must be an object of JSON", code="not_json")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


def _form(body: bytes) -> dict[str, Any]:
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=MOST_FIELDS, errors="strict")
    except ValueError:
        raise Refused(400, "the form cannot be read", code="not_a_form") from None
    return _fields(pairs)


def _parts(content_type: str, body: bytes) -> dict[str, Any]:
    """Of a form in parts those that are text; the library of letters reads it, whose format it is."""
    if "\r" in content_type or "\n" in content_type or body.count(b"--") > 100 * MOST_FIELDS:
        raise Refused(400, "the form cannot be read", code="not_a_form")
    head = f"Content-Type: {content_type}\r\n\r\n".encode("latin-1", "replace")
    try:
        message = BytesParser().parsebytes(head + body)
        parts = message.get_payload()
        if not message.is_multipart() or not isinstance(parts, list) or len(parts) > MOST_FIELDS:
            raise ValueError
        return _fields([_named(part) for part in parts if isinstance(part, Message)])
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise Refused(400, "the form cannot be read", code="not_a_form") from None


def _named(part: Message) -> tuple[str, str]:
    name, content = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
    if not isinstance(name, str) or not isinstance(content, bytes):
        raise ValueError
    return name, content.decode()


def _fields(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """A field that comes again has a list."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name not in found:
            found[name] = value
        elif isinstance(found[name], list):
            found[name].append(value)
        else:
            found[name] = [found[name], value]
    return found
