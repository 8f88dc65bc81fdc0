"""A tokenizer: text to ids and back, and which ids are pad, bos, eos, unk and mask.

Wraps one of the Hugging Face `tokenizers` library and writes its file, `tokenizer.json`. That format has no place for
the roles of the special tokens, and refuses unknown keys, so they go where the format's own readers look for them:
into `tokenizer_config.json` beside it.
"""

import hashlib
import json
import os
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from plainformer import atomic
from plainformer.errors import InputError, WorkError
from plainformer.text.pieces import check_unicode

# Threads do not survive a fork: a child told to use them (TOKENIZERS_PARALLELISM=true is common advice) waits for ever.
if hasattr(os, "register_at_fork"):  # no fork, no hook: Windows
    os.register_at_fork(after_in_child=lambda: os.environ.update(TOKENIZERS_PARALLELISM="false"))


@dataclass(frozen=True)
class SpecialTokens:
    """The tokens that stand for no text, by role; None where a vocabulary has no such token.

    Attributes:
        pad: fills a batch.
        bos: begins a sequence; the decoder's first input.
        eos: ends a sequence.
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
                raise InputError(f"the special token {token} is used twice", fix="give every role its own token")
            if not (kinds & set("LN") and kinds & set("PS")):
                raise InputError(
                    f"the special token {token!r} could be a word of the text",
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


class Tokenizer:
    """Text <-> ids. Encoding adds no special tokens, and never finds any in the text: "</s>" there is four characters.

    Args:
        backend: the library's tokenizer; it is changed (no truncation, no padding) and must not be shared.
        special: the role of each special token; every one named must be in the vocabulary.
    """

    def __init__(self, backend: tokenizers.Tokenizer, special: SpecialTokens) -> None:
        for role, token in asdict(special).items():
            if token is not None and backend.token_to_id(token) is None:
                raise InputError(f"the {role} token {token} is not in the vocabulary", fix="name another, or none")
        backend.add_special_tokens(special.tokens())  # they have ids already: this marks them for decode to skip
        backend.encode_special_tokens = True
        backend.no_truncation()
        backend.no_padding()
        self._backend = backend
        self.special = special

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size}, special={self.special}, fingerprint={self.fingerprint[:12]})"

    def __reduce__(self) -> tuple[Any, ...]:
        # By way of __init__: the library's own pickling forgets encode_special_tokens.
        return Tokenizer, (self._backend, self.special)

    # The vocabulary

    @cached_property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included (one more than the largest id)."""
        return max(self._backend.get_vocab(with_added_tokens=True).values()) + 1

    @property
    def pad_id(self) -> int:
        """The id that fills a batch. Raises InputError if the vocabulary has none, as do `bos_id` and `eos_id`."""
        return self._needed("pad")

    @property
    def bos_id(self) -> int:
        """The id that begins a sequence."""
        return self._needed("bos")

    @property
    def eos_id(self) -> int:
        """The id that ends a sequence."""
        return self._needed("eos")

    @property
    def unk_id(self) -> int | None:
        """The id for what the vocabulary does not have, or None."""
        return None if self.special.unk is None else self.id(self.special.unk)

    @property
    def mask_id(self) -> int | None:
        """The id that hides a token, or None."""
        return None if self.special.mask is None else self.id(self.special.mask)

    def special_id(self, role: str) -> int | None:
        """The id of the special token with this role (pad, bos, eos, unk, mask), or None."""
        token = getattr(self.special, role)
        return None if token is None else self.id(token)

    def _needed(self, role: str) -> int:
        token = getattr(self.special, role)
        found = None if token is None else self.id(token)
        if found is None:
            raise InputError(f"the tokenizer has no {role} token", fix=f"name {role}_token in tokenizer_config.json")
        return found

    def id(self, token: str) -> int | None:
        """The id of a token, or None if the vocabulary does not have it."""
        return self._backend.token_to_id(token)

    def token(self, id: int) -> str:
        """The token with this id, as it stands in the vocabulary (a byte is "<0x0A>").

        Raises:
            InputError: no token has this id.
        """
        token = self._backend.id_to_token(int(id)) if 0 <= id < self.vocab_size else None
        if token is None:
            raise self._not_an_id(id)
        return token

    # Text to ids

    def encode(self, text: str) -> list[int]:
        """The ids of `text`, without bos and eos; the empty text has none.

        Raises:
            InputError: `text` holds a lone surrogate.
        """
        check_unicode(text)
        return self._backend.encode(text, add_special_tokens=False).ids

    def encode_inside(self, text: str) -> list[int]:
        """The ids of `text` where it goes on from something else: nothing is put before it, as before a whole text.

        Raises:
            InputError: `text` holds a lone surrogate.
        """
        check_unicode(text)
        # Encoded after something that is no part of its first token, which is then taken off again.
        for before in ("\n", "."):
            encoding = self._backend.encode(before + text, add_special_tokens=False)
            spans = list(zip(encoding.ids, encoding.offsets, strict=True))
            if not any(start < len(before) < stop for _, (start, stop) in spans):
                return [id for id, (start, _) in spans if start >= len(before)]
        return self.encode(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as `encode` gives them, using every core.

        Raises:
            InputError: a text holds a lone surrogate.
        """
        for number, text in enumerate(texts, start=1):
            check_unicode(text, where=f"text {number}")
        return [row.ids for row in self._backend.encode_batch_fast(list(texts), add_special_tokens=False)]

    def count_unknown(self, ids: Iterable[int]) -> int:
        """How many of the ids are `unk`."""
        unknown = self.unk_id
        return 0 if unknown is None else sum(id == unknown for id in ids)

    def unknown_pieces(self, text: str) -> list[str]:
        """What becomes `unk` in `text` (characters, or the words of a word vocabulary), each once, in order."""
        check_unicode(text)
        encoding = self._backend.encode(text, add_special_tokens=False)
        unknown = self.unk_id
        spans = (span for id, span in zip(encoding.ids, encoding.offsets, strict=True) if id == unknown)
        return list(dict.fromkeys(text[start:stop] for start, stop in spans))

    def unknown_characters(self, text: str) -> list[str]:
        """The characters of `text` that are unknown by themselves, each once, in order."""
        return [character for character in dict.fromkeys(text) if self.unknown_pieces(character)]

    # Ids to text

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens skipped. Bytes that are not UTF-8 become U+FFFD.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self._backend.decode(self._checked(ids), skip_special_tokens=True)

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, as `decode` gives it; rows may be padded, since padding is skipped.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self._backend.decode_batch([self._checked(row) for row in rows], skip_special_tokens=True)

    def _checked(self, ids: Sequence[int]) -> list[int]:
        checked = [int(id) for id in ids]  # an array's rows too
        for id in checked:
            if not 0 <= id < self.vocab_size:
                raise self._not_an_id(id)
        return checked

    def _not_an_id(self, id: int) -> InputError:
        return InputError(
            f"no token has the id {id}: the vocabulary has {self.vocab_size} tokens",
            fix="use the tokenizer that the model was trained with",
        )

    # At rest

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the vocabulary, the rules and the roles: equal only for tokenizers that do the same."""
        whole = {"tokenizer": json.loads(self._backend.to_str()), "special": asdict(self.special)}
        canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def save(self, path: Path) -> None:
        """Write `path` (`tokenizer.json`) and, beside it, the roles (`tokenizer_config.json`).

        Each file appears whole or not at all, the roles first.

        Raises:
            WorkError: a file cannot be written.
        """
        path = Path(path)
        roles = {f"{role}_token": token for role, token in asdict(self.special).items()}
        # With split_special_tokens other readers, too, take special tokens in the text as text.
        config = {"tokenizer_class": "PreTrainedTokenizerFast", **roles, "split_special_tokens": True}
        _write(_config_of(path), json.dumps(config, indent=2, ensure_ascii=False) + "\n")
        _write(path, self._backend.to_str(pretty=True) + "\n")

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read a `tokenizer.json`, and the roles from the configuration beside it or, without one, by usual names.

        Raises:
            InputError: the file is missing, is not a tokenizer, or the configuration names a token it does not have.
        """
        path = Path(path)
        text = _read(path)
        try:
            backend = tokenizers.Tokenizer.from_str(text)
        except Exception as error:  # the library raises no narrower class
            raise InputError(
                f"not a tokenizer ({error})", where=str(path), fix="give a whole tokenizer.json"
            ) from error
        if not backend.get_vocab_size():
            raise InputError("the tokenizer has no tokens", where=str(path), fix="train it before saving it")
        try:
            return cls(backend, _roles(backend, _config_of(path)))
        except InputError as error:
            raise InputError(error.what, where=error.where or str(path), fix=error.fix) from error


def _config_of(path: Path) -> Path:
    """`tokenizer.json` -> `tokenizer_config.json`, `target_tokenizer.json` -> `target_tokenizer_config.json`."""
    return path.with_name(f"{path.stem}_config.json")


def _roles(backend: tokenizers.Tokenizer, config_path: Path) -> SpecialTokens:
    """The role of each special token: as configured (null is none), or the usual name that the vocabulary has."""
    config: Any = {}
    if config_path.exists():
        try:
            config = json.loads(_read(config_path))
        except json.JSONDecodeError as error:
            raise InputError(f"not JSON ({error})", where=str(config_path), fix="restore or remove the file") from error
    if not isinstance(config, dict):
        raise InputError("not a JSON object", where=str(config_path), fix="restore or remove the file")
    roles: dict[str, str | None] = {}
    for role, names in _CONVENTIONAL.items():
        usual = next((name for name in names if backend.token_to_id(name) is not None), None)
        named = config.get(f"{role}_token", usual)
        if isinstance(named, dict):  # a token written with its options
            named = named.get("content")
        if named is not None and not isinstance(named, str):
            raise InputError(f"{role}_token is not a string", where=str(config_path), fix="name a token, or null")
        if named is not None and backend.token_to_id(named) is None:
            raise InputError(
                f"the {role} token {named} is not in the vocabulary",
                where=str(config_path),
                fix="name another, or null",
            )
        roles[role] = named
    return SpecialTokens(**roles)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError("the tokenizer is missing", where=str(path), fix="put it back, or check the path") from error
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputError(reason, where=str(path), fix="check the path") from error
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", where=str(path), fix="give a tokenizer.json") from error


def _write(path: Path, text: str) -> None:
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise WorkError(
            f"the tokenizer cannot be written ({error.strerror or error})", where=str(path), fix="check folder and disk"
        ) from error
