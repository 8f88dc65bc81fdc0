"""BERT's `vocab.txt`."""

import json
from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, Tokenizer, read_tokenizer

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
TOKENS = [*SPECIAL, "the", "The", "walk", "##ing", "##ed", "caf", "##e", "##é", "中", "!"]


def read(folder: Path, tokens: list[str] = TOKENS, **settings: object) -> Tokenizer:
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return read_tokenizer(folder)


def tokens_of(tokenizer: Tokenizer, text: str) -> list[str]:
    return list(map(tokenizer.token, tokenizer.encode(text)))


def test_words_are_cut_into_the_longest_pieces(tmp_path: Path) -> None:
    tokenizer = read(tmp_path)
    assert tokens_of(tokenizer, "The  walking, café!中中") == [
        *("the", "walk", "##ing", "[UNK]", "caf", "##e", "!", "中", "中")
    ]
    assert tokenizer.decode(tokenizer.encode("the walking")) == "the walking"
    assert tokenizer.unknown_pieces("the walks") == ["walks"]


def test_case_and_accents_stay_where_the_settings_say(tmp_path: Path) -> None:
    assert tokens_of(read(tmp_path, do_lower_case=False), "The café") == ["The", "caf", "##é"]
    assert tokens_of(read(tmp_path, strip_accents=False), "The café") == ["the", "caf", "##é"]


def test_cls_and_sep_are_bos_and_eos_and_are_not_found_in_text(tmp_path: Path) -> None:
    tokenizer = read(tmp_path)
    assert tokenizer.special == SpecialTokens("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    assert not set(tokenizer.encode("[MASK] [CLS]")) & {tokenizer.mask_id, tokenizer.bos_id}


def test_a_token_that_stands_there_twice_or_not_at_all_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"vocab\.txt:16: the token the also stands on line 6"):
        read(tmp_path, [*TOKENS, "the"])
    with pytest.raises(InputError, match=r"vocab\.txt: the cls_token \[CLS\] is not in the vocabulary"):
        read(tmp_path, [token for token in TOKENS if token != "[CLS]"])
    with pytest.raises(InputError, match=r"vocab\.txt: the sep_token <end> is not in the vocabulary"):
        read(tmp_path, sep_token="<end>")
    (tmp_path / "vocab.txt").write_bytes(b"a\n\xff\n")
    with pytest.raises(InputError, match=r"vocab\.txt: not UTF-8"):
        read_tokenizer(tmp_path)


@pytest.mark.parametrize("key", ["do_lower_case", "strip_accents", "tokenize_chinese_chars"])
def test_a_switch_that_is_neither_true_nor_false_is_named(tmp_path: Path, key: str) -> None:
    settings: dict[str, object] = {key: "no"}
    with pytest.raises(InputError) as error:
        read(tmp_path, TOKENS, **settings)
    place = tmp_path / "tokenizer_config.json"
    assert str(error.value) == f"{place}: {key} is 'no' and must be true or false; correct or remove it"
