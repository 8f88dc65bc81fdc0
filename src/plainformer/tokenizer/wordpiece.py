"""WordPiece as BERT has it (Devlin et al. 2019): words, then the longest pieces that the vocabulary has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers.decoders import WordPiece as JoinPieces
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from plainformer.errors import InputError, cut, shown
from plainformer.tokenizer.special import token_named


def from_vocab_txt(content: bytes, settings: Mapping[str, Any], *, where: str) -> tokenizers.Tokenizer:
    """The library's tokenizer of a `vocab.txt`: one token a line, whose number, from 0, is its id.

    Args:
        settings: of `tokenizer_config.json`: `do_lower_case` (true if not given), `strip_accents`,
            `tokenize_chinese_chars`, and the names of the special tokens.
        where: the file, for errors.

    Raises:
        InputError: it is not text, a token stands there twice, a special token is not there, or a setting that is to be
            true or false is neither.
    """
    ids = _ids(content, where=where)
    unknown, first, last = (_named(settings, f"{role}_token", ids, where) for role in ("unk", "cls", "sep"))
    backend = tokenizers.Tokenizer(WordPiece(ids, unk_token=unknown))
    backend.normalizer = BertNormalizer(
        clean_text=True,
        handle_chinese_chars=_switch(settings, "tokenize_chinese_chars", True, where),
        strip_accents=_switch(settings, "strip_accents", None, where),
        lowercase=_switch(settings, "do_lower_case", True, where),
    )
    backend.pre_tokenizer = BertPreTokenizer()
    backend.decoder = JoinPieces(prefix="##")
    # What other readers of the file put around a text.
    backend.post_processor = TemplateProcessing(
        single=f"{first}:0 $A:0 {last}:0",
        pair=f"{first}:0 $A:0 {last}:0 $B:1 {last}:1",
        special_tokens=[(first, ids[first]), (last, ids[last])],
    )
    return backend


def _ids(content: bytes, *, where: str) -> dict[str, int]:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise InputError("not UTF-8 text", where=where, fix="give a vocab.txt") from error
    ids: dict[str, int] = {}
    for id, line in enumerate(text.removesuffix("\n").split("\n")):
        token = line.rstrip(" \t\r")  # and no wider blank, such as U+3000, which may be a token
        if token in ids:
            what = f"the token {cut(token)} also stands on line {ids[token] + 1}"
            raise InputError(what, where=f"{where}:{id + 1}", fix="restore the vocab.txt")
        ids[token] = id
    return ids


def _switch(settings: Mapping[str, Any], key: str, default: Any, where: str) -> Any:
    """True or false, as a setting says, or what it is if not given, null where that is. Raises InputError otherwise."""
    value = settings.get(key, default)
    if not isinstance(value, bool) and value is not default:
        place = str(Path(where).with_name("tokenizer_config.json"))
        raise InputError(f"{key} is {shown(value)} and must be true or false", where=place, fix="correct or remove it")
    return value


def _named(settings: Mapping[str, Any], key: str, ids: Mapping[str, int], where: str) -> str:
    """The special token that the settings name, or BERT's. Raises InputError if it is not in the vocabulary."""
    token = token_named(settings, key, f"[{key.removesuffix('_token').upper()}]")
    if token is None or token not in ids:
        what = f"the {key} {cut(str(token))} is not in the vocabulary"
        raise InputError(what, where=where, fix=f"name {key} otherwise")
    return token
