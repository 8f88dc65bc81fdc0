"""Other people's tokenizers: found in a folder in the Hugging Face layout, or named as a file, and made our own."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tokenizers

from plainformer.errors import InputError
from plainformer.tokenizer.byte_bpe import from_merges, from_ranks
from plainformer.tokenizer.original_files import added_tokens, config_of, read_marian, read_sentencepiece
from plainformer.tokenizer.sentencepiece import SentencePieceBackend, read_bytes
from plainformer.tokenizer.special import read_settings, roles_named, token_named
from plainformer.tokenizer.tokenizer import Tokenizer, read_library
from plainformer.tokenizer.wordpiece import from_vocab_txt

Settings = Mapping[str, Any]

# A vocabulary and its merges, by the names that transformers and OpenAI gave the same two files.
_MERGES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))

# Classes of transformers that number the pieces of a SentencePiece model otherwise than it does itself.
_RENUMBERED = (
    *("XLMRoberta", "Camembert", "MBart", "Barthez", "Bartpho", "PLBart", "XGLM", "Nllb", "M2M100", "SeamlessM4T"),
    "Pegasus",
)


def read_tokenizers(folder: Path) -> tuple[Tokenizer, Tokenizer]:
    """The tokenizers of source and target in a folder; the same object twice where it has but one.

    Raises:
        InputError: as `read_tokenizer`.
    """
    if (folder / "source.spm").exists():
        return _marian(folder, "source"), _marian(folder, "target")
    found = read_tokenizer(folder)
    return found, found


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder in the Hugging Face layout, by the files that it has (Marian's: that of the source).

    `source.spm` with `target.spm` and `vocab.json`; `tokenizer.json`; `vocab.json` with `merges.txt`, or `encoder.json`
    with `vocab.bpe`; `vocab.txt`; a `.model` of SentencePiece; a `.tiktoken` file. Roles are those that
    `tokenizer_config.json` and `special_tokens_map.json` name, else the usual ones of each kind.

    Raises:
        InputError: there is none, a file is broken, a special token is named that the vocabulary does not have, or the
            library that applies it is not installed.
    """
    if (folder / "source.spm").exists():
        return _marian(folder, "source")
    names = ["tokenizer.json", *(merges for pair in _MERGES for merges in pair[1:]), "vocab.txt"]
    names += [path.name for ending in ("model", "tiktoken") for path in sorted(folder.glob(f"*.{ending}"))]
    for name in names:
        if (folder / name).exists():
            return read_tokenizer_file(folder / name)
    raise InputError(
        "there is no tokenizer in the folder",
        where=str(folder),
        fix="add tokenizer.json, vocab.json with merges.txt, vocab.txt, a .model of SentencePiece or a .tiktoken file",
    )


def read_tokenizer_file(path: Path) -> Tokenizer:
    """The tokenizer of a file, with the settings and further files beside it. What it is, its name says.

    Raises:
        InputError: as `read_tokenizer`.
    """
    folder, name = path.parent, path.name
    if name in ("source.spm", "target.spm"):
        return _marian(folder, path.stem)
    if path.suffix == ".json" and not any(name in pair for pair in _MERGES):
        own = [folder / "special_tokens_map.json"] if name == "tokenizer.json" else []
        settings = _settings(config_of(path), *own)
        return _tokenizer(read_library(path), settings, config_of(path))
    config = folder / "tokenizer_config.json"
    settings = _settings(config, folder / "special_tokens_map.json")
    if path.suffix in (".model", ".spm"):
        return _from_sentencepiece(path, settings)
    if pair := next((pair for pair in _MERGES if name in pair), None):
        backend = _from_merges(folder / pair[0], folder / pair[1], settings)
    elif path.suffix == ".tiktoken":
        backend = from_ranks(read_bytes(path), path.stem, where=str(path))
    elif name == "vocab.txt":
        backend = from_vocab_txt(read_bytes(path), settings, where=str(path))
    else:
        fix = "name it tokenizer.json, vocab.json, vocab.txt, .model or .tiktoken, whichever it is"
        raise InputError("not a tokenizer's file, by its name", where=str(path), fix=fix)
    size = max(backend.get_vocab(with_added_tokens=True).values()) + 1
    backend.add_special_tokens(added_tokens(settings, size, where=config))
    return _tokenizer(backend, settings, config)


def _tokenizer(
    backend: tokenizers.Tokenizer | SentencePieceBackend,
    settings: Settings,
    where: Path,
    usual: Mapping[str, str | None] | None = None,
) -> Tokenizer:
    id_of = backend.token_to_id if isinstance(backend, tokenizers.Tokenizer) else backend.id
    special = roles_named(settings, lambda token: id_of(token) is not None, where=where, usual=usual)
    return Tokenizer(backend, special)


def _from_merges(vocabulary: Path, merges: Path, settings: Settings) -> tokenizers.Tokenizer:
    return from_merges(
        read_bytes(vocabulary),
        read_bytes(merges),
        places=(str(vocabulary), str(merges)),
        add_prefix_space=bool(settings.get("add_prefix_space", False)),
    )


def _from_sentencepiece(path: Path, settings: Settings) -> Tokenizer:
    made_by = str(settings.get("tokenizer_class", ""))
    if made_by.startswith(_RENUMBERED):
        what = f"{made_by} numbers the pieces of a .model in its own way"
        raise InputError(what, where=str(path), fix="add the tokenizer.json that transformers saves")
    backend = read_sentencepiece(path, settings)
    return _tokenizer(backend, settings, path.with_name("tokenizer_config.json"), usual=backend.roles())


def _marian(folder: Path, side: str) -> Tokenizer:
    config = folder / "tokenizer_config.json"
    settings = _settings(config, folder / "special_tokens_map.json")
    backend = read_marian(folder, settings, side)
    pad = token_named(settings, "pad_token", "<pad>", where=config)
    # The decoder begins with pad. What the files may say of bos is what transformers gives every class.
    roles = {"eos_token": "</s>", "unk_token": "<unk>", **settings, "pad_token": pad, "bos_token": pad}
    return Tokenizer(backend, roles_named(roles, lambda token: backend.id(token) is not None, where=config))


def _settings(*paths: Path) -> dict[str, Any]:
    """The settings in those files, with what a class of transformers does without saying."""
    settings = read_settings(*paths)
    if str(settings.get("tokenizer_class", "")).startswith("T5") and not settings.get("bos_token"):
        settings["bos_token"] = settings.get("pad_token", "<pad>")  # what its decoder begins with
    return settings
