"""The settings of decoding that a folder has, or what is wrong with them: that is said when something is decoded."""

from plainformer.decode.length_penalty import check_length
from plainformer.decode.settings import GenerationSettings, SettingError, Settings, changed, check_tokens
from plainformer.errors import InputError
from plainformer.folder import GenerationFile, ModelFolder
from plainformer.tokenizer import Tokenizer


def settings_in(
    content: ModelFolder, defaults: Settings, size: int, longest: int | None = None
) -> tuple[Settings, InputError | None]:
    """The folder's settings, what it does not say being as in `defaults`; or these and what is wrong with the folder's.

    What is wrong is said in the words of the folder's file, which may be another library's, and with its place. It is
    no error yet: a model whose search will not do can still be asked how probable a text is.

    Args:
        size: how many ids there are.
        longest: the most tokens of an output that the model has positions for; None is no such bound.
    """
    file = content.generation_file
    try:
        if file.damage is not None:
            raise file.damage
        settings = changed(defaults, dict(content.generation))
        check_named(settings, content.target_tokenizer, size)
        if isinstance(settings, GenerationSettings):
            check_length(settings, settings.bound(0, longest))  # what an output may have whatever its source
    except InputError as error:
        return defaults, error if error is file.damage else _in_their_words(error, file)
    return settings, None


def check_named(settings: Settings, tokenizer: Tokenizer, size: int) -> None:
    """Raises InputError where an id in the settings is none of `size`, or all that stand for text are forbidden."""
    check_tokens(settings, size)
    if settings.suppress_tokens:
        left = set(range(size)) - silent_ids(tokenizer, size) - set(settings.suppress_tokens)
        if not left | (set(settings.end_tokens) - set(settings.suppress_tokens)):
            raise SettingError("suppress_tokens", "leaves no token to generate", fix="suppress fewer")


def silent_ids(tokenizer: Tokenizer, size: int) -> set[int]:
    """Of so many ids those that stand for no text, and are no end of it: roles of tokens, and rows that are none."""
    roles = {tokenizer.special_id(role) for role in ("pad", "bos", "unk", "mask")}
    silent = {id for id in roles if id is not None and id != tokenizer.special_id("eos")}
    return silent | set(range(tokenizer.vocab_size, size))


def _in_their_words(error: InputError, file: GenerationFile) -> InputError:
    """The error with the name that the file has for the setting, and the file for its place."""
    where = error.where if file.path is None else str(file.path)
    if isinstance(error, SettingError):
        return error.called(file.keys.get(error.setting, error.setting), where)
    return InputError(error.what, where=where, fix=error.fix)
