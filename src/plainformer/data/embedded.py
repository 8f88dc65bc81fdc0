"""The corpora that ship inside the library: a name, a loader, the two languages."""

from __future__ import annotations

from collections.abc import Callable

from plainformer.data.phrasebook import phrasebook

EMBEDDED: dict[str, Callable[[str], list[tuple[str, str]]]] = {"phrasebook": phrasebook}
"""Name -> loader; a loader takes "train", "dev" or "test" and raises InputError for anything else."""

LANGUAGES: dict[str, tuple[str, str]] = {"phrasebook": ("en", "hi")}
"""Name -> source and target language, as ISO 639-1 codes."""
