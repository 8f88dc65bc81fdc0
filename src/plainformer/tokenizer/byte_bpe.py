"""Byte-pair encodings of bytes as others keep them: GPT-2's vocabulary and merges, and tiktoken's file of ranks.

Both become a tokenizer of the `tokenizers` library, which gives the original library's ids (tests/parity).
"""

import base64
import binascii
from collections.abc import Iterable, Mapping
from typing import NamedTuple

import tokenizers
from tokenizers import Regex
from tokenizers.decoders import ByteLevel as FromBytes
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel as ToBytes, Sequence as Chain, Split

from plainformer.errors import InputError, cut, shown
from plainformer.tokenizer.byte import BYTE_NAMES
from plainformer.tokenizer.vocabulary_file import check_without_holes, parse_vocabulary

Merges = list[tuple[str, str]]


class Encoding(NamedTuple):
    """What a file of ranks does not say.

    Attributes:
        special: the tokens that stand for no text, with their ids.
        pieces: what a piece is, in Oniguruma's syntax; None for GPT-2's rule, which the library has.
    """

    special: Mapping[str, int]
    pieces: str | None = None


_NO_LETTER = r"[^\r\n\p{L}\p{N}]?"
_ENDING = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_END = "<|endoftext|>"

ENCODINGS: dict[str, Encoding] = {
    "r50k_base": Encoding({_END: 50256}),
    "p50k_base": Encoding({_END: 50256}),
    "cl100k_base": Encoding(
        {_END: 100257}
        | {f"<|fim_{part}|>": 100258 + index for index, part in enumerate(("prefix", "middle", "suffix"))}
        | {"<|endofprompt|>": 100276},
        "|".join(
            (
                _ENDING,
                rf"{_NO_LETTER}\p{{L}}+",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n]*",
                r"\s+\z",
                r"\s*[\r\n]",
                r"\s+(?!\S)",
                r"\s",
            )
        ),
    ),
    "o200k_base": Encoding(
        {_END: 199999, "<|endofprompt|>": 200018},
        "|".join(
            (
                rf"{_NO_LETTER}{_UPPER}*{_LOWER}+{_ENDING}?",
                rf"{_NO_LETTER}{_UPPER}+{_LOWER}*{_ENDING}?",
                r"\p{N}{1,3}",
                r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
                r"\s*[\r\n]+",
                r"\s+(?!\S)",
                r"\s+",
            )
        ),
    ),
}
"""The encodings that OpenAI has published as files of ranks, by the file's name (tiktoken's `openai_public`)."""


def from_merges(
    vocabulary: bytes, merges: bytes, *, places: tuple[str, str], add_prefix_space: bool = False
) -> tokenizers.Tokenizer:
    """GPT-2's encoding, from the contents of `vocab.json` (`encoder.json`) and `merges.txt` (`vocab.bpe`).

    Args:
        places: the two files, for errors.

    Raises:
        InputError: the vocabulary is broken or has holes, or a merge names a token that it does not have.
    """
    ids = parse_vocabulary(vocabulary, where=places[0])
    return _tokenizer(ids, _merges(merges, ids, where=places[1]), add_prefix_space=add_prefix_space)


def from_ranks(content: bytes, name: str, *, where: str) -> tokenizers.Tokenizer:
    """The encoding of a `.tiktoken` file: on every line the bytes of a token in base64, and its rank, which is its id.

    tiktoken joins two neighbours wherever their bytes together are a token, the lowest rank first. So every way of
    cutting a token into two tokens is a merge here, and a piece that is a token is taken whole.

    Args:
        name: which of `ENCODINGS` it is; the file does not say how it cuts a text into pieces.

    Raises:
        InputError: the name is unknown, a line is broken, or a byte or a rank is missing.
    """
    if name not in ENCODINGS:
        fix = f"rename the file to one of {', '.join(ENCODINGS)}, if it is that, or give a tokenizer.json"
        raise InputError(f"no encoding is known by the name {shown(name)}", where=where, fix=fix)
    encoding, ranks = ENCODINGS[name], _ranks(content, where=where)
    special = {token: id for token, id in encoding.special.items() if id not in ranks.values()}
    check_without_holes({*ranks.values(), *(id for id in special.values() if id < len(ranks))}, where=where)
    if missing := [byte for byte in range(256) if bytes([byte]) not in ranks]:
        raise InputError(f"no token is the byte 0x{missing[0]:02X}", where=where, fix="restore the file")
    cuts = (
        (rank, ranks[token[:cut]], ranks[token[cut:]])
        for token, rank in ranks.items()
        for cut in range(1, len(token))
        if token[:cut] in ranks and token[cut:] in ranks
    )
    names = {rank: "".join(BYTE_NAMES[byte] for byte in token) for token, rank in ranks.items()}
    merges = [(names[left], names[right]) for _, left, right in sorted(cuts)]
    ids = {name: rank for rank, name in names.items()} | special
    return _tokenizer(ids, merges, pieces=encoding.pieces, whole_pieces=True)


def _tokenizer(
    ids: dict[str, int],
    merges: Merges,
    *,
    pieces: str | None = None,
    whole_pieces: bool = False,
    add_prefix_space: bool = False,
) -> tokenizers.Tokenizer:
    """The library's tokenizer of bytes under their names."""
    backend = tokenizers.Tokenizer(BPE(vocab=ids, merges=merges, ignore_merges=whole_pieces))
    to_bytes = ToBytes(add_prefix_space=add_prefix_space, use_regex=pieces is None)
    cut = Split(Regex(pieces), behavior="isolated") if pieces else None
    backend.pre_tokenizer = Chain([cut, to_bytes]) if cut else to_bytes
    backend.decoder = FromBytes()
    return backend


def _merges(content: bytes, ids: Mapping[str, int], *, where: str) -> Merges:
    """The pairs of `merges.txt`, one a line, the first line being its version."""
    found: Merges = []
    for line, text in _lines(content, where=where):
        if line == 1 and text.startswith("#version"):
            continue
        parts = text.split(" ")
        if len(parts) != 2:
            raise InputError("not two tokens with a space between them", where=f"{where}:{line}", fix="restore it")
        left, right = parts
        for token in (left, right, left + right):
            if token not in ids:
                what = f"the merge of {cut(left)} and {cut(right)} needs {cut(token)}, which is not in the vocabulary"
                raise InputError(what, where=f"{where}:{line}", fix="give the vocabulary that belongs to the merges")
        found.append((left, right))
    return found


def _ranks(content: bytes, *, where: str) -> dict[bytes, int]:
    """The bytes of every token, with its rank."""
    ranks: dict[bytes, int] = {}
    for line, text in _lines(content, where=where):
        place = f"{where}:{line}"
        try:
            token, rank = text.split()
            ranks[base64.b64decode(token, validate=True)] = int(rank)
        except (ValueError, binascii.Error) as error:
            raise InputError("not base64 and a number", where=place, fix="restore the .tiktoken file") from error
    return ranks


def _lines(content: bytes, *, where: str) -> Iterable[tuple[int, str]]:
    """The lines that are not empty, with their numbers. Raises InputError where they are not UTF-8."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", where=where, fix="restore the file") from error
    lines = (line.rstrip("\r") for line in text.split("\n"))
    return [(number, line) for number, line in enumerate(lines, start=1) if line]
