"""The tokens that stand for no text: their roles, and how files in the Hugging Face layout name them."""

import unicodedata
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from plainformer.errors import InputError, cut, shown
from plainformer.files.json_object import read_object


@dataclass(frozen=True)
class SpecialTokens:
    """The tokens that stand for no text, by role; None where a vocabulary has no such token.

    One token may have two roles: GPT-2's <|endoftext|> begins and ends a text, and Marian's <pad> also is what its
    decoder begins with.

    Attributes:
        pad: fills a batch.
        bos: begins a sequence; the decoder's first input. In BERT's vocabularies, [CLS].
        eos: ends a sequence. In BERT's vocabularies, [SEP].
        unk: stands for what the vocabulary does not have.
        mask: hides a token from a masked language model.
    """

    pad: str | None = "<pad>"
    bos: str | None = "<s>"
    eos: str | None = "</s>"
    unk: str | None = "<unk>"
    mask: str | None = None

    def tokens(self) -> list[str]:
        """The tokens there are, each once, in the order of the roles."""
        return list(dict.fromkeys(token for token in asdict(self).values() if token is not None))

    def check_for_training(self, *, unk_needed: bool, taken: Collection[str] = ()) -> None:
        """Refuse special tokens that a new vocabulary cannot keep apart from text and from each other.

        Raises:
            InputError: pad, bos, eos (or a needed unk) is missing, two roles share a token, a token is one of `taken`,
                or it is not a mixture of letters and punctuation: such a mixture is never one piece of text, so no
                text can become it.
        """
        for role in ("pad", "bos", "eos", *(("unk",) if unk_needed else ())):
            if getattr(self, role) is None:
                raise InputError(f"the {role} token is missing", fix=f"name one, such as <{role}>")
        tokens = [token for token in asdict(self).values() if token is not None]
        for token in tokens:
            kinds = {unicodedata.category(character)[0] for character in token}
            if tokens.count(token) > 1 or token in taken:
                raise InputError(f"the special token {cut(token)} is used twice", fix="give every role its own token")
            if not (kinds & set("LN") and kinds & set("PS")):
                raise InputError(
                    f"the special token {shown(token)} could be a word of the text",
                    fix="write it with brackets, as in <pad>",
                )


# What the tokens are called where no configuration says so; the first that the vocabulary has is taken.
_CONVENTIONAL: dict[str, tuple[str, ...]] = {
    "pad": ("<pad>", "[PAD]"),
    "bos": ("<s>", "[CLS]", "<|begin_of_text|>", "<|endoftext|>"),
    "eos": ("</s>", "[SEP]", "<|end_of_text|>", "<|endoftext|>"),
    "unk": ("<unk>", "[UNK]"),
    "mask": ("<mask>", "[MASK]"),
}

# The keys that name a role, the first that a configuration has. BERT's says "cls" and "sep" for what begins and ends.
_KEYS: dict[str, tuple[str, ...]] = {
    "pad": ("pad_token",),
    "bos": ("bos_token", "cls_token"),
    "eos": ("eos_token", "sep_token"),
    "unk": ("unk_token",),
    "mask": ("mask_token",),
}


def read_settings(*paths: Path) -> dict[str, Any]:
    """The settings of those files that there are, of JSON; an earlier one goes before a later one.

    Raises:
        InputError: a file does not hold a JSON object.
    """
    settings: dict[str, Any] = {}
    for path in paths:
        if path.exists():
            settings = read_object(path, fix="restore or remove the file") | settings
    return settings


def roles_named(
    settings: Mapping[str, Any],
    has: Callable[[str], bool],
    *,
    where: Path,
    usual: Mapping[str, str | None] | None = None,
) -> SpecialTokens:
    """The role of each special token: as the settings say (null is none), else the usual name.

    Args:
        settings: of `tokenizer_config.json`; a token may be written with its options, as an object with `content`.
        has: whether a token is in the vocabulary.
        where: the settings' file, for errors.
        usual: the names where the settings are silent; if not given, the customary ones that the vocabulary has.

    Raises:
        InputError: a name is no string, or not in the vocabulary.
    """
    roles: dict[str, str | None] = {}
    for role, customary in _CONVENTIONAL.items():
        present = [key for key in _KEYS[role] if key in settings]
        key = next((key for key in present if settings[key] is not None), f"{role}_token")
        default = next(filter(has, customary), None) if usual is None else usual.get(role)
        token = token_named(settings, key, None if present else default, where=where)
        if token is not None and not has(token):
            what = f"the {role} token {cut(token)} is not in the vocabulary"
            raise InputError(what, where=str(where), fix="name another, or null")
        roles[role] = token
    if roles["unk"] in (roles["bos"], roles["eos"]):
        roles["unk"] = None  # GPT-2's files say so, whose bytes leave nothing unknown
    return SpecialTokens(**roles)


def token_named(settings: Mapping[str, Any], key: str, default: str | None, *, where: Path | None = None) -> str | None:
    """The token that settings name, plainly or as an object with its `content`. Raises InputError if it is neither."""
    token = settings.get(key, default)
    if isinstance(token, dict):
        token = token.get("content")
    if token is not None and not isinstance(token, str):
        place = None if where is None else str(where)
        raise InputError(f"{key} is not a string", where=place, fix="name a token, or null")
    return token
