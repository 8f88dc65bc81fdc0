"""A tokenizer: text to ids and back, and which ids are pad, bos, eos, unk and mask.

Wraps one of the Hugging Face `tokenizers` library, or another backend, and writes its file, `tokenizer.json`. That
format has no place for the roles of the special tokens, and refuses unknown keys, so they go where the format's own
readers look for them: into `tokenizer_config.json` beside it.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import tokenizers

from plainformer.errors import InputError, WorkError, cut, reason
from plainformer.files import atomic
from plainformer.given import place, string, strings, whole, wholes
from plainformer.tokenizer.backend import Backend, LibraryBackend
from plainformer.tokenizer.original_files import config_of, native_at, read_native
from plainformer.tokenizer.pieces import check_unicode
from plainformer.tokenizer.special import SpecialTokens, read_settings, roles_named

# Threads do not survive a fork: a child told to use them (TOKENIZERS_PARALLELISM=true is common advice) waits for ever.
if hasattr(os, "register_at_fork"):  # no fork, no hook: Windows
    os.register_at_fork(after_in_child=lambda: os.environ.update(TOKENIZERS_PARALLELISM="false"))


class Tokenizer:
    """Text <-> ids. Encoding adds no special tokens, and never finds any in the text: "</s>" there is four characters.

    Args:
        backend: what does the work, such as a tokenizer of the `tokenizers` library, which is changed (no truncation,
            no padding) and must not be shared.
        special: the role of each special token; every one named must be in the vocabulary.
    """

    def __init__(self, backend: tokenizers.Tokenizer | Backend, special: SpecialTokens) -> None:
        id_of = _lookup(backend)
        for role, token in asdict(special).items():
            if token is not None and id_of(token) is None:
                raise InputError(f"the {role} token {cut(token)} is not in the vocabulary", fix="name another, or none")
        if isinstance(backend, tokenizers.Tokenizer):
            self._backend: Backend = LibraryBackend(backend, special.tokens())
        else:
            self._backend = backend.closed_to(special.tokens())
        self.special = special

    def __repr__(self) -> str:
        return f"Tokenizer(vocab_size={self.vocab_size}, special={self.special}, fingerprint={self.fingerprint[:12]})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self._backend, self.special)

    # The vocabulary

    @property
    def vocab_size(self) -> int:
        """The number of tokens, special ones included (one more than the largest id)."""
        return self._backend.size

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
        """The id of the special token with this role (pad, bos, eos, unk, mask), or None.

        Raises InputError for a role that there is not.
        """
        if string(role, "role") not in (roles := asdict(self.special)):
            raise InputError(f"there is no role {role!r}", fix=f"the roles are {', '.join(roles)}")
        token = roles[role]
        return None if token is None else self.id(token)

    def _needed(self, role: str) -> int:
        token = getattr(self.special, role)
        found = None if token is None else self.id(token)
        if found is None:
            raise InputError(f"the tokenizer has no {role} token", fix=f"name {role}_token in tokenizer_config.json")
        return found

    def id(self, token: str) -> int | None:
        """The id of a token, or None if the vocabulary does not have it."""
        check_unicode(token, where="token")
        return self._backend.id(token)

    def token(self, id: int) -> str:
        """The token with this id, as it stands in the vocabulary (a byte is "<0x0A>").

        Raises:
            InputError: no token has this id.
        """
        id = whole(id, "id")
        token = self._backend.token(id) if 0 <= id < self.vocab_size else None
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
        return self._backend.encode(text)

    def encode_inside(self, text: str) -> list[int]:
        """The ids of `text` where it goes on from something else: nothing is put before it, as before a whole text.

        Raises:
            InputError: `text` holds a lone surrogate.
        """
        check_unicode(text)
        return self._backend.encode_inside(text)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of each text, as `encode` gives them, using every core.

        Raises:
            InputError: one text instead of a list, something in it that is no text, or a lone surrogate.
        """
        texts = strings(texts)
        for number, text in enumerate(texts, start=1):
            check_unicode(text, where=f"text {number}")
        return self._backend.encode_batch(texts)

    def count_unknown(self, ids: Iterable[int]) -> int:
        """How many of the ids are `unk`."""
        unknown = self.unk_id
        if isinstance(ids, str | bytes) or not isinstance(ids, Iterable):
            wholes(ids, "ids")  # which says what is wrong
        return 0 if unknown is None else sum(id == unknown for id in ids)

    def unknown_pieces(self, text: str) -> list[str]:
        """What becomes `unk` in `text` (characters, or the words of a word vocabulary), each once, in order."""
        check_unicode(text)
        unknown = self.unk_id
        return [] if unknown is None else list(dict.fromkeys(self._backend.unknown(text, unknown)))

    def unknown_characters(self, text: str) -> list[str]:
        """The characters of `text` that are unknown by themselves, each once, in order."""
        check_unicode(text)
        return [character for character in dict.fromkeys(text) if self.unknown_pieces(character)]

    # Ids to text

    def decode(self, ids: Sequence[int]) -> str:
        """The text of `ids`, special tokens skipped. Bytes that are not UTF-8 become U+FFFD.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        return self._backend.decode(self._said(ids))

    def decode_batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """The text of each row of ids, as `decode` gives it; rows may be padded, since padding is skipped.

        Raises:
            InputError: an id is outside the vocabulary.
        """
        if isinstance(rows, str | bytes) or not isinstance(rows, Iterable):
            raise InputError("the rows of ids are no list", where="rows", fix="give a list of lists of ids")
        return self._backend.decode_batch([self._said(row, f"row {number}") for number, row in enumerate(rows, 1)])

    def _said(self, ids: Sequence[int], name: str = "ids") -> list[int]:
        """Those of the ids, which are checked, that stand for text."""
        checked, size = wholes(ids, name), self.vocab_size  # an array's rows too
        for id in checked:
            if not 0 <= id < size:
                raise self._not_an_id(id)
        return [id for id in checked if id not in self._silent]

    @cached_property
    def _silent(self) -> frozenset[int]:
        """The ids of the roles."""
        return frozenset(id for token in self.special.tokens() if (id := self.id(token)) is not None)

    def _not_an_id(self, id: int) -> InputError:
        return InputError(
            f"no token has the id {id}: the vocabulary has {self.vocab_size} tokens",
            fix="use the tokenizer that the model was trained with",
        )

    # At rest

    @property
    def description(self) -> Any:
        """The vocabulary and the rules as JSON has them: what a `tokenizer.json` holds, where it is one."""
        return self._backend.described()

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256, in hex, of the vocabulary, the rules and the roles: equal only for tokenizers that do the same."""
        whole = {"tokenizer": self.description, "special": asdict(self.special)}
        canonical = json.dumps(whole, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(canonical.encode("ascii")).hexdigest()

    def save(self, path: Path) -> None:
        """Write `path` (`tokenizer.json`) and, beside it, the roles (`tokenizer_config.json`).

        A tokenizer that another library applies is written as that library's own file or files instead, such as
        `spiece.model`, in the folder of `path`. Each file appears whole or not at all, the roles first.

        Raises:
            WorkError: a file cannot be written.
        """
        path = place(path, "a tokenizer.json")
        roles = {f"{role}_token": token for role, token in asdict(self.special).items()}
        if self.special.mask:  # what encoders are called by elsewhere
            roles |= {"cls_token": self.special.bos, "sep_token": self.special.eos}
        # What other readers need in order to do the same: special tokens in the text are text, no token has a type, and
        # a decoded text is left as it is.
        alike = {"split_special_tokens": True, "clean_up_tokenization_spaces": False}
        inputs = {"model_input_names": ["input_ids", "attention_mask"]}
        config = {**self._backend.settings(), **roles, **alike, **inputs}
        _write(config_of(path), (json.dumps(config, indent=2, ensure_ascii=False) + "\n").encode())
        files = self._backend.files(path.stem)
        for name, content in files.items():
            _write(path.with_name(name), content)
        if path.name not in files and path.is_file():
            path.unlink()  # another tokenizer's, which would be found first

    def framed(self, *, bos: bool = False, eos: bool = False) -> "Tokenizer":
        """The same, saved so that other readers put bos before a text or eos behind it, as its models want it.

        A tokenizer that is kept as another library's files stays as it is: its class decides that.

        Raises:
            InputError: a token that is wanted is not there.
        """
        first, last = (self.token(self.bos_id) if bos else None), (self.token(self.eos_id) if eos else None)
        return Tokenizer(self._backend.framed(first, last), self.special)

    def with_start(self, token: str, *, former_pad: str, former_bos: str) -> "Tokenizer":
        """The same with one token more, the last, which is its padding and its bos; those before get other names.

        Raises:
            InputError: the tokenizer is kept as another library's files, to which nothing can be added; or its padding
                or bos has another role as well.
        """
        others = {self.special.eos, self.special.unk, self.special.mask} - {None}
        if shared := others & {self.special.pad, self.special.bos}:
            what = f"the token {cut(min(map(str, shared)))} has two roles, and one of them goes to a new token"
            raise InputError(what, fix="train with a token for each role")
        if not isinstance(self._backend, LibraryBackend):
            what = f"a tokenizer kept as {', '.join(self._backend.files('tokenizer'))} can get no token more"
            raise InputError(what, fix="train with one that is kept as tokenizer.json")
        old = {self.special.pad: former_pad, self.special.bos: former_bos}
        renamed = {name: new for name, new in old.items() if name is not None}
        return Tokenizer(self._backend.grown(token, renamed), replace(self.special, pad=token, bos=token))

    @cached_property
    def leads_with_bos(self) -> bool:
        """Whether its file says that a text stands behind bos, as Llama's models read it (`framed`)."""
        return self.special.bos is not None and self._backend.first() == self.bos_id

    def keeps(self, other: "Tokenizer") -> bool:
        """Whether the files that `save` writes are those of `other` too, as are both sides of Marian's."""
        same = self._backend.files("tokenizer") == other._backend.files("tokenizer")
        return same and self.special == other.special

    @staticmethod
    def saved_at(path: Path) -> bool:
        """Whether `save(path)` left a tokenizer there."""
        path = place(path, "a tokenizer.json")
        return path.exists() or native_at(path)

    @classmethod
    def load(cls, path: Path) -> "Tokenizer":
        """Read what `save(path)` wrote, or any `tokenizer.json`; without a configuration the roles by usual names.

        Raises:
            InputError: the file is missing, is not a tokenizer, or the configuration names a token it does not have.
        """
        path = place(path, "a tokenizer.json")
        config = config_of(path)
        native = native_at(path) and not path.exists()
        backend = read_native(path, read_settings(config)) if native else read_library(path)
        id_of = _lookup(backend)
        try:
            special = roles_named(read_settings(config), lambda token: id_of(token) is not None, where=config)
            return cls(backend, special)
        except InputError as error:
            raise InputError(error.what, where=error.where or str(path), fix=error.fix) from error


def read_library(path: Path) -> tokenizers.Tokenizer:
    """The library's tokenizer in a `tokenizer.json`. Raises InputError where there is none."""
    text = _read(path)
    try:
        backend = tokenizers.Tokenizer.from_str(text)
    except Exception as error:  # the library raises no narrower class
        raise InputError(
            f"not a tokenizer ({reason(error)})", where=str(path), fix="give a whole tokenizer.json"
        ) from error
    if not backend.get_vocab_size():
        raise InputError("the tokenizer has no tokens", where=str(path), fix="train it before saving it")
    return backend


def _lookup(backend: tokenizers.Tokenizer | Backend) -> Callable[[str], int | None]:
    return backend.token_to_id if isinstance(backend, tokenizers.Tokenizer) else backend.id


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


def _write(path: Path, content: bytes) -> None:
    try:
        atomic.write_bytes(path, content)
    except OSError as error:
        raise WorkError(
            f"the tokenizer cannot be written ({error.strerror or error})", where=str(path), fix="check folder and disk"
        ) from error
