"""Vocabularies kept between runs: learnt once from a text, found again by the next run on it.

    CACHE/tokenizers/KEY.json, KEY_config.json     as `Tokenizer.save` writes them

The key is a hash of the text, the options and the code that learns, so that a change in any of them is another file.
"""

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import plainformer.tokenizer
from plainformer.errors import InputError, WorkError
from plainformer.runtime import cache_folder
from plainformer.tokenizer import Tokenizer


def learnt(learn: Callable[[], Tokenizer], *key: Any) -> Tokenizer:
    """The tokenizer that `learn` gives, or the same one as it was kept.

    Args:
        key: what else than the code the result depends on: the text by its fingerprint, the options. Each is told
            from others by its `repr`.
    """
    name = hashlib.sha256(repr((_code(), *key)).encode()).hexdigest()[:32]
    path = cache_folder() / "tokenizers" / f"{name}.json"
    if path.exists():
        with suppress(InputError):  # damaged: learnt again
            return Tokenizer.load(path)
    tokenizer = learn()
    with suppress(WorkError, OSError):  # a disk that is full costs the next run a little time
        path.parent.mkdir(parents=True, exist_ok=True)
        tokenizer.save(path)
    return tokenizer


@cache
def _code() -> str:
    """A hash of the code that learns: ours, and the library's by its version."""
    digest = hashlib.sha256(version("tokenizers").encode())
    for file in sorted(Path(plainformer.tokenizer.__file__).parent.glob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
