"""The tokenizers of others, read by us, give the ids that their own libraries give, byte for byte."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hard_text import random_strings, real_texts

from plainformer.tokenizer import (
    SpecialTokens,
    Tokenizer,
    byte_tokenizer,
    read_tokenizer,
    read_tokenizer_file,
    read_tokenizers,
    train_bpe,
    train_character,
    train_word,
)
from plainformer.tokenizer.byte_bpe import ENCODINGS, from_ranks

HARD = random_strings(10_000)


@pytest.fixture(scope="module")
def vocabularies(shared_data: Path) -> Path:
    return shared_data / "vocab"


@pytest.fixture(scope="module")
def corpora(shared_data: Path) -> list[str]:
    return real_texts(shared_data)


@pytest.fixture(scope="module")
def lines(corpora: list[str]) -> list[str]:
    """Up to 600 lines of every corpus."""
    return [line for text in corpora for line in text.split("\n")[:600] if line]


def differences(texts: Sequence[str], ours: list[list[int]], theirs: list[list[int]]) -> list[str]:
    """The first of those texts, in ASCII, whose ids are not the same."""
    assert len(ours) == len(theirs) == len(texts)
    found = zip(texts, ours, theirs, strict=True)
    return [ascii(text)[:120] for text, mine, other in found if mine != other][:5]


# tiktoken


def tiktoken_of(monkeypatch: pytest.MonkeyPatch, name: str, file: Path) -> Any:
    """tiktoken's encoding of this name, its rules as published, its ranks those of `file`."""
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken, the peer of these tests, is not installed")
    from tiktoken.load import load_tiktoken_bpe
    from tiktoken_ext import openai_public

    ranks = load_tiktoken_bpe(str(file))
    monkeypatch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: dict(ranks))
    found = getattr(openai_public, name)()
    found.pop("explicit_n_vocab", None)
    return tiktoken.Encoding(**found)


@pytest.mark.parametrize("name", ENCODINGS)
def test_hard_strings_get_the_ids_of_tiktoken(vocabularies: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    # The rule that cuts a text is the name's own; the ranks are those at hand, which any rule can do with.
    file = vocabularies / "tiktoken" / "r50k_base.tiktoken"
    theirs = tiktoken_of(monkeypatch, name, file)
    ours = Tokenizer(from_ranks(file.read_bytes(), name, where=str(file)), SpecialTokens(*[None] * 5))
    ids = ours.encode_batch(HARD)
    assert differences(HARD, ids, theirs.encode_ordinary_batch(HARD)) == []
    assert ours.decode_batch(ids) == HARD
    for token, id in ENCODINGS[name].special.items():
        assert ours.id(token) == theirs.encode_single_token(token) == id


@pytest.mark.parametrize(
    ("most", "tokens"), [(300_000, 700_000), pytest.param(None, 6_000_000, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_all_text_gets_the_ids_of_tiktoken(
    vocabularies: Path, corpora: list[str], most: int | None, tokens: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each corpus the first so many characters, as one text."""
    file = vocabularies / "tiktoken" / "r50k_base.tiktoken"
    theirs, ours = tiktoken_of(monkeypatch, "r50k_base", file), read_tokenizer(file.parent)
    texts = [text[:most] for text in corpora]
    ids = ours.encode_batch(texts)
    assert sum(map(len, ids)) > tokens
    assert differences(texts, ids, theirs.encode_ordinary_batch(texts)) == []
    assert ours.decode_batch(ids) == texts
    assert (ours.bos_id, ours.eos_id, ours.vocab_size) == (theirs.eot_token, theirs.eot_token, theirs.n_vocab)


# GPT-2's files


@pytest.fixture(scope="module")
def gpt2(vocabularies: Path) -> Tokenizer:
    return read_tokenizer(vocabularies / "gpt2")


def test_gpt2_files_give_the_ids_of_transformers(vocabularies: Path, gpt2: Tokenizer, lines: list[str]) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers, the peer of these tests, is not installed")
    folder = vocabularies / "gpt2"
    theirs = transformers.GPT2Tokenizer(
        vocab=str(folder / "encoder.json"), merges=str(folder / "vocab.bpe"), split_special_tokens=True
    )
    texts = [*HARD, *lines]
    ids = gpt2.encode_batch(texts)
    assert differences(texts, ids, theirs(texts)["input_ids"]) == []
    assert gpt2.decode_batch(ids) == texts
    assert (gpt2.bos_id, gpt2.eos_id) == (theirs.bos_token_id, theirs.eos_token_id)


def test_gpt2_files_and_the_ranks_of_tiktoken_are_one_vocabulary(vocabularies: Path, gpt2: Tokenizer) -> None:
    ranks = read_tokenizer_file(vocabularies / "tiktoken" / "r50k_base.tiktoken")
    assert differences(HARD, gpt2.encode_batch(HARD), ranks.encode_batch(HARD)) == []
    assert [gpt2.token(id) for id in range(gpt2.vocab_size)] == [ranks.token(id) for id in range(ranks.vocab_size)]


# SentencePiece

# As Llama's is, and one of each other kind.
TRAINED: dict[str, dict[str, Any]] = {
    "bpe-of-bytes": {
        "model_type": "bpe",
        "byte_fallback": True,
        "normalization_rule_name": "identity",
        "remove_extra_whitespaces": False,
        "split_digits": True,
    },
    "unigram": {"model_type": "unigram", "pad_id": 3, "user_defined_symbols": ["<sep>", "ing"]},
    "characters": {"model_type": "char", "add_dummy_prefix": False, "bos_id": -1},
    "words": {"model_type": "word"},
}


def trained(lines: Sequence[str], **options: Any) -> bytes:
    """The model file that SentencePiece learns from these lines."""
    sentencepiece = pytest.importorskip(
        "sentencepiece", reason="SentencePiece, the peer of these tests, is not installed"
    )
    model = io.BytesIO()
    options = {"vocab_size": 431, "hard_vocab_limit": False, "character_coverage": 0.98, "minloglevel": 2} | options
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, **options)
    return model.getvalue()


@pytest.fixture(scope="module", params=["at hand", *TRAINED])
def model(request: pytest.FixtureRequest, vocabularies: Path, lines: list[str]) -> bytes:
    if request.param == "at hand":
        return (vocabularies / "sentencepiece" / "test_model.model").read_bytes()
    return trained(lines[:3000], **TRAINED[request.param])


def test_a_sentencepiece_model_gives_the_ids_and_the_text_of_sentencepiece(
    model: bytes, lines: list[str], tmp_path: Path
) -> None:
    sentencepiece = pytest.importorskip(
        "sentencepiece", reason="SentencePiece, the peer of these tests, is not installed"
    )
    theirs = sentencepiece.SentencePieceProcessor()
    theirs.LoadFromSerializedProto(model)
    (tmp_path / "tokenizer.model").write_bytes(model)
    ours = read_tokenizer(tmp_path)
    ours.save(tmp_path / "saved_tokenizer.json")
    texts = [*HARD, *lines]
    for tokenizer in (ours, Tokenizer.load(tmp_path / "saved_tokenizer.json")):
        ids = tokenizer.encode_batch(texts)
        assert differences(texts, ids, theirs.encode(texts)) == []
        known = [[id for id in row if id != theirs.unk_id()] for row in ids]
        assert tokenizer.decode_batch(ids) == theirs.decode(known)
    assert [ours.token(id) for id in range(ours.vocab_size)] == [
        theirs.id_to_piece(id) for id in range(theirs.get_piece_size())
    ]
    roles = {"pad": theirs.pad_id(), "bos": theirs.bos_id(), "eos": theirs.eos_id(), "unk": theirs.unk_id()}
    assert {role: ours.special_id(role) for role in roles} == {
        role: None if id < 0 else id for role, id in roles.items()
    }


# Marian


@pytest.fixture(scope="module")
def marian(lines: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as those of OPUS-MT are: two models of SentencePiece, and most of their pieces numbered."""
    sentencepiece = pytest.importorskip(
        "sentencepiece", reason="SentencePiece, the peer of these tests, is not installed"
    )
    folder = tmp_path_factory.mktemp("marian")
    pieces = set()
    for side, part in (("source", lines[::2]), ("target", lines[1::2])):
        content = trained(part[:3000])
        (folder / f"{side}.spm").write_bytes(content)
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto(content)
        pieces |= {processor.id_to_piece(id) for id in range(3, processor.get_piece_size())}
    kept = [piece for number, piece in enumerate(sorted(pieces)) if number % 13]
    tokens = ["</s>", "<unk>", *kept, ">>hin<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    return folder


@pytest.mark.filterwarnings("ignore:Recommended. pip install sacremoses")  # which it loads and never calls
def test_marians_files_give_the_ids_and_the_text_of_transformers(
    marian: Path, lines: list[str], tmp_path: Path
) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers, the peer of these tests, is not installed")
    theirs = transformers.MarianTokenizer.from_pretrained(marian, split_special_tokens=True)
    texts = [*HARD[:3000], *lines[::3], ">>hin<< a man", ">>fra<<ein Mann", ">> <<", "a >>hin<<"]
    source, target = read_tokenizers(marian)
    for name, tokenizer in (("tokenizer.json", source), ("target_tokenizer.json", target)):
        tokenizer.save(tmp_path / name)
    saved = [Tokenizer.load(tmp_path / name) for name in ("tokenizer.json", "target_tokenizer.json")]
    assert [tokenizer.fingerprint for tokenizer in saved] == [source.fingerprint, target.fingerprint]
    for tokenizer, again, side in (source, saved[0], "text"), (target, saved[1], "text_target"):
        ids = tokenizer.encode_batch(texts)
        assert differences(texts, ids, theirs(**{side: texts}, add_special_tokens=False)["input_ids"]) == []
        said = theirs.batch_decode(ids, skip_special_tokens=True)
        assert tokenizer.decode_batch(ids) == again.decode_batch(ids) == said
        assert again.encode_batch(texts) == ids
    for tokenizer in (target, saved[1]):
        assert (tokenizer.pad_id, tokenizer.eos_id) == (theirs.pad_token_id, theirs.eos_token_id)
        assert tokenizer.bos_id == tokenizer.pad_id
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert differences(texts, source.encode_batch(texts), theirs(texts, add_special_tokens=False)["input_ids"]) == []
    theirs.save_pretrained(tmp_path / "again")
    for tokenizer, again in zip((source, target), read_tokenizers(tmp_path / "again"), strict=True):
        assert again.special == tokenizer.special
        assert differences(texts, again.encode_batch(texts), tokenizer.encode_batch(texts)) == []


# BERT's vocab.txt


@pytest.mark.parametrize("lower", [True, False])
def test_a_vocab_txt_gives_the_ids_of_transformers(lines: list[str], tmp_path: Path, lower: bool) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers, the peer of these tests, is not installed")
    characters = sorted({character for line in lines for character in line if not character.isspace()})[:300]
    pieces = [*"abcdefghijklmnopqrstuvwxyz", "ing", "er", "ed", "०"]
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *characters, *(f"##{piece}" for piece in pieces), "the"]
    (tmp_path / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": lower}))
    theirs = transformers.BertTokenizer.from_pretrained(tmp_path, split_special_tokens=True)
    ours, texts = read_tokenizer(tmp_path), [*HARD, *lines]
    ids = ours.encode_batch(texts)
    assert differences(texts, ids, theirs(texts, add_special_tokens=False)["input_ids"]) == []
    assert ours.special == SpecialTokens("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    framed = [[ours.bos_id, *row, ours.eos_id] for row in ids[:100]]
    (tmp_path / "saved").mkdir()
    ours.save(tmp_path / "saved" / "tokenizer.json")
    saved = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    assert saved(texts[:100])["input_ids"] == framed


# What we save, read by transformers


def ours(kind: str, vocabularies: Path, lines: list[str]) -> Tokenizer:
    if kind in ("gpt2", "tiktoken", "sentencepiece"):
        return read_tokenizer(vocabularies / kind)
    if kind == "byte":
        return byte_tokenizer()
    if kind == "word":
        return train_word(lines, 3001)
    if kind == "character":
        return train_character(lines, 307, special=SpecialTokens(mask="<mask>"))
    return train_bpe(lines[:3000], 1009, lead_space=kind == "bpe")


@pytest.mark.parametrize(
    ("kind", "model_type"),
    [
        ("gpt2", "gpt2"),
        ("tiktoken", "llama"),
        ("sentencepiece", "llama"),
        ("bpe", "marian"),
        ("bpe of running text", "gpt2"),
        ("bpe of running text", "llama"),
        ("character", "bert"),
        ("word", "marian"),
        ("byte", "gpt2"),
    ],
)
def test_auto_tokenizer_reads_what_we_save(
    vocabularies: Path, lines: list[str], tmp_path: Path, kind: str, model_type: str
) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers, the peer of these tests, is not installed")
    tokenizer, texts = ours(kind, vocabularies, lines), [*HARD[:2000], *lines[::6]]
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "config.json").write_text(json.dumps({"model_type": model_type}))
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    ids = tokenizer.encode_batch(texts)
    assert differences(texts, ids, theirs(texts, add_special_tokens=False)["input_ids"]) == []
    assert theirs(texts, add_special_tokens=False).keys() == {"input_ids", "attention_mask"}
    assert len(theirs) == tokenizer.vocab_size
    for role in ("pad", "bos", "eos", "unk", "mask"):
        assert getattr(theirs, f"{role}_token_id") == tokenizer.special_id(role), role
    theirs.save_pretrained(tmp_path / "again")
    again = read_tokenizer(tmp_path / "again")
    assert (again.special, again.vocab_size) == (tokenizer.special, tokenizer.vocab_size)
    assert differences(texts, again.encode_batch(texts), ids) == []
    if kind != "sentencepiece":  # whose class in transformers takes white space off the ends
        assert theirs.batch_decode(ids, skip_special_tokens=True) == tokenizer.decode_batch(ids)


def test_auto_tokenizer_ends_a_text_where_the_model_wants_it(lines: list[str], tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers", reason="transformers, the peer of these tests, is not installed")
    tokenizer = train_bpe(lines[:3000], 1009)
    tokenizer.framed(eos=True).save(tmp_path / "tokenizer.json")
    (tmp_path / "config.json").write_text('{"model_type": "marian"}')
    theirs = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert theirs(lines)["input_ids"] == [[*ids, tokenizer.eos_id] for ids in tokenizer.encode_batch(lines)]
