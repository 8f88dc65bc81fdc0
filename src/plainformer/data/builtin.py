"""The corpora that ship inside the library, and the text that ships inside Python."""

from __future__ import annotations

from collections.abc import Callable

from plainformer.errors import InputError


def _phrasebook(part: str) -> list[tuple[str, str]]:
    """English and Hindi sentences. Raises InputError where there is no such part."""
    from plainformer.data.phrasebook import phrasebook  # which makes its phrases at import: a quarter of a second

    return phrasebook(part)


EMBEDDED: dict[str, Callable[[str], list[tuple[str, str]]]] = {"phrasebook": _phrasebook}
"""Pairs of sentences. Name -> loader; a loader takes "train", "dev" or "test", InputError for anything else."""

LANGUAGES: dict[str, tuple[str, str]] = {"phrasebook": ("en", "hi")}
"""Name of a corpus of pairs -> source and target language, as ISO 639-1 codes."""


def python_docs() -> list[str]:
    """The language reference that Python's own `help()` shows: one document a topic, sorted by the topic's name.

    Another version of Python has another text.

    Raises:
        InputError: this Python was installed without it.
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise InputError(
            "this Python was installed without its language reference (pydoc_data)", fix="give a file of text"
        ) from error
    return [topics[name] for name in sorted(topics)]


TEXTS: dict[str, Callable[[], list[str]]] = {"python-docs": python_docs}
"""Running text, for a language model. Name -> loader of its documents."""
