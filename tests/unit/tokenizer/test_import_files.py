"""Tokenizers of others, found in their folders."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, Tokenizer, read_tokenizer, read_tokenizer_file, read_tokenizers
from plainformer.tokenizer.byte import BYTE_NAMES

END = "<|endoftext|>"
MERGES = ["a b", "ab c", "Ġ ab"]


def write_gpt2(folder: Path, names: tuple[str, str] = ("vocab.json", "merges.txt")) -> dict[str, int]:
    """GPT-2's two files, of a vocabulary of 260 tokens."""
    tokens = [*BYTE_NAMES, *(merge.replace(" ", "") for merge in MERGES), END]
    ids = {token: id for id, token in enumerate(tokens)}
    (folder / names[0]).write_text(json.dumps(ids))
    (folder / names[1]).write_text("\n".join(["#version: 0.2", *MERGES, ""]), encoding="utf-8")
    return ids


def write_ranks(path: Path, *more: bytes) -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), *more]
    path.write_bytes(b"".join(base64.b64encode(token) + b" %d\n" % rank for rank, token in enumerate(tokens)))


def configure(folder: Path, **settings: Any) -> None:
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


def tokens_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return list(map(tokenizer.token, tokenizer.encode(text)))


# What is found


@pytest.mark.parametrize("names", [("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe")])
def test_gpt2_files_are_merged_in_their_order(tmp_path: Path, names: tuple[str, str]) -> None:
    write_gpt2(tmp_path, names)
    tokenizer = read_tokenizer(tmp_path)
    assert tokens_of(tokenizer, "abc abcab abd") == ["abc", "Ġ", "abc", "ab", "Ġab", "d"]
    assert tokenizer.special == SpecialTokens(pad=None, bos=END, eos=END, unk=None)
    for name in names:
        assert read_tokenizer_file(tmp_path / name).fingerprint == tokenizer.fingerprint


def test_ranks_join_whatever_is_a_token(tmp_path: Path) -> None:
    path = tmp_path / "r50k_base.tiktoken"
    write_ranks(path, b"bc", b"ab", b"abc", b" a", "é".encode())
    tokenizer = read_tokenizer(tmp_path)
    # The pair of the lowest rank first, so "bc"; then "a" and "bc", since together they are a token.
    assert tokens_of(tokenizer, "xabc abc é") == ["x", "abc", "Ġ", "abc", "Ġ", "Ã©"]
    assert (tokenizer.id(END), tokenizer.vocab_size) == (50256, 50257)
    with pytest.raises(InputError, match="no token has the id 300"):
        tokenizer.token(300)


def test_tokenizer_json_goes_before_other_files(tmp_path: Path, words: Tokenizer) -> None:
    write_gpt2(tmp_path)
    words.save(tmp_path / "tokenizer.json")
    assert read_tokenizer(tmp_path).fingerprint == words.fingerprint
    assert read_tokenizers(tmp_path)[0] is not read_tokenizers(tmp_path)[1]
    source, target = read_tokenizers(tmp_path)
    assert source is target


def test_what_was_read_is_saved_and_loaded_the_same(tmp_path: Path, nasty: list[str]) -> None:
    write_gpt2(tmp_path)
    tokenizer = read_tokenizer(tmp_path)
    tokenizer.save(tmp_path / "saved.json")
    loaded = Tokenizer.load(tmp_path / "saved.json")
    assert loaded.fingerprint == tokenizer.fingerprint
    assert loaded.encode_batch(nasty) == tokenizer.encode_batch(nasty)
    assert loaded.decode_batch(loaded.encode_batch(nasty)) == nasty


# Roles


def test_the_settings_name_the_roles(tmp_path: Path) -> None:
    write_gpt2(tmp_path)
    configure(tmp_path, bos_token=None, eos_token={"content": END}, unk_token=END)
    (tmp_path / "special_tokens_map.json").write_text(json.dumps({"eos_token": "ab", "pad_token": "abc"}))
    # The first file goes before the second, and a byte vocabulary's unk that is its eos is none.
    assert read_tokenizer(tmp_path).special == SpecialTokens(pad="abc", bos=None, eos=END, unk=None)


def test_cls_and_sep_begin_and_end(tmp_path: Path) -> None:
    write_gpt2(tmp_path)
    configure(tmp_path, cls_token="ab", sep_token="abc", bos_token=None)
    assert read_tokenizer(tmp_path).special == SpecialTokens(pad=None, bos="ab", eos="abc", unk=None)


def test_tokens_that_the_settings_add_follow_the_vocabulary(tmp_path: Path) -> None:
    ids = write_gpt2(tmp_path)
    added = {str(ids[END]): {"content": END}, "260": {"content": "<pad>"}, "261": {"content": "<mask>"}}
    configure(tmp_path, pad_token="<pad>", mask_token="<mask>", added_tokens_decoder=added)
    tokenizer = read_tokenizer(tmp_path)
    assert (tokenizer.pad_id, tokenizer.mask_id, tokenizer.vocab_size) == (260, 261, 262)
    assert tokenizer.decode([97, 260, 98]) == "".join(BYTE_NAMES[id] for id in (97, 98))
    assert 261 not in tokenizer.encode("a<mask>")


def test_a_prefix_space_is_put_where_the_settings_say(tmp_path: Path) -> None:
    write_gpt2(tmp_path)
    configure(tmp_path, add_prefix_space=True)
    assert tokens_of(read_tokenizer(tmp_path), "ab") == ["Ġab"]


# What is wrong is one line


BROKEN: list[tuple[str, bytes, str]] = [
    ("vocab.json", b'{"a": 0', "vocab.json: not JSON"),
    ("vocab.json", b"[]", "vocab.json: not a vocabulary"),
    ("vocab.json", b"{}", "vocab.json: the vocabulary is empty"),
    ("vocab.json", b'{"a": "0"}', "vocab.json: not a vocabulary"),
    ("vocab.json", b'{"a": 0, "b": 2}', "vocab.json: the vocabulary of 2 tokens has no token with the id 1"),
    ("vocab.json", b'{"a": 0, "b": 1}', "merges.txt:2: the merge of a and b needs ab, which is not in the vocab"),
    ("merges.txt", b"#version: 0.2\na b\nx\n", "merges.txt:3: not two tokens with a space between them"),
    ("merges.txt", b"#version: 0.2\na q\n", "merges.txt:2: the merge of a and q needs aq"),
    ("merges.txt", b"\xff\n", "merges.txt: not UTF-8"),
    ("tokenizer_config.json", b"{", "tokenizer_config.json: the file cannot be read"),
    ("tokenizer_config.json", b"[]", "tokenizer_config.json: the file does not hold a JSON object"),
    ("tokenizer_config.json", b'{"pad_token": "<pad>"}', "the pad token <pad> is not in the vocabulary"),
    ("tokenizer_config.json", b'{"pad_token": 3}', "pad_token is not a string"),
    ("tokenizer_config.json", b'{"added_tokens_decoder": {"262": "x"}}', "of 260 tokens has holes before those"),
    ("tokenizer_config.json", b'{"added_tokens_decoder": ["x"]}', "added_tokens_decoder is not an object"),
    ("tokenizer.json", b"{", "tokenizer.json: not a tokenizer"),
    ("r50k_base.tiktoken", b"!!! 0\n", "r50k_base.tiktoken:1: not base64 and a number"),
    ("r50k_base.tiktoken", b"IQ== 0\nIg==\n", "r50k_base.tiktoken:2: not base64 and a number"),
    ("r50k_base.tiktoken", b"IQ== 0\n\nIg== x\n", "r50k_base.tiktoken:3: not base64 and a number"),
    ("r50k_base.tiktoken", b"IQ== 0\nIg== 2\n", "the vocabulary of 2 tokens has no token with the id 1"),
    ("r50k_base.tiktoken", b"IQ== 0\nIg== 1\n", "no token is the byte 0x00"),
    ("r50k_base.tiktoken", b"", "the vocabulary is empty"),
    ("mine.tiktoken", b"IQ== 0\n", "no encoding is known by the name 'mine'; rename the file to one of r50k_base"),
]


@pytest.mark.parametrize(("name", "content", "said"), BROKEN, ids=[said for *_, said in BROKEN])
def test_a_broken_file_is_named_in_one_line(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    if not name.endswith(".tiktoken"):  # which is a tokenizer without other files
        write_gpt2(tmp_path)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as error:
        read_tokenizer(tmp_path)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(tmp_path))


def test_a_folder_without_a_tokenizer_says_what_is_looked_for(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no tokenizer in the folder; add tokenizer\.json, vocab\.json"):
        read_tokenizer(tmp_path)
    (tmp_path / "tokenizer.bin").write_bytes(b"")
    with pytest.raises(InputError, match="not a tokenizer's file, by its name"):
        read_tokenizer_file(tmp_path / "tokenizer.bin")


@pytest.mark.parametrize("name", ["tokenizer.json", "vocab.json", "vocab.txt", "spiece.model", "r50k_base.tiktoken"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as error:
        read_tokenizer_file(tmp_path / name)
    assert str(error.value).startswith(f"{tmp_path / name}: ")
