"""The settings of decoding that a folder has, or what is wrong with them: that is said when something is decoded."""

import re
from collections.abc import Mapping
from pathlib import Path

from plainformer.decode.settings import Settings, changed, check_tokens
from plainformer.errors import InputError
from plainformer.folder import ModelFolder


def settings_in(content: ModelFolder, defaults: Settings, vocab: int) -> tuple[Settings, InputError | None]:
    """The folder's settings, what it does not say being as in `defaults`; or these and what is wrong with the folder's.

    What is wrong is said in the words of the folder's file, which may be another library's, and with its place. It is
    no error yet: a model whose search will not do can still be asked how probable a text is.

    Args:
        vocab: how many ids there are.
    """
    file = content.generation_file
    try:
        if file.damage is not None:
            raise file.damage
        settings = changed(defaults, dict(content.generation))
        check_tokens(settings, vocab)
    except InputError as error:
        return defaults, error if error is file.damage else _in_their_words(error, file.path, file.keys)
    return settings, None


def _in_their_words(error: InputError, path: Path | None, keys: Mapping[str, str]) -> InputError:
    """The error with the names that the file has for our settings, and the file for its place."""

    def said(text: str | None) -> str | None:
        return text and re.sub(r"[a-z_]+", lambda word: keys.get(word[0], word[0]), text)

    return InputError(said(error.what) or "", where=error.where if path is None else str(path), fix=said(error.fix))
