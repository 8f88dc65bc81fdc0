"""SentencePiece's models behind our protocol: roles, streams, files, processes."""

import io
import json
import pickle
import sys
from pathlib import Path

import pytest

from plainformer.errors import InputError
from plainformer.tokenizer import (
    SpecialTokens,
    Tokenizer,
    read_tokenizer,
    read_tokenizer_file,
    read_tokenizers,
    train_word,
)
from plainformer.tokenizer.stream import TextStream
from plainformer.tokenizer.vocabulary import word_starts

sentencepiece = pytest.importorskip(
    "sentencepiece", reason="sentencepiece, of the extra `tokenizers`, is not installed"
)


def trained(sentences: list[str], size: int, **options: object) -> bytes:
    """The model file that SentencePiece learns from the sentences."""
    model = io.BytesIO()
    options = {"vocab_size": size, "hard_vocab_limit": False, "minloglevel": 2, "pad_id": 3} | options
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(sentences), model_writer=model, **options)
    return model.getvalue()


@pytest.fixture(scope="module")
def model(sentences: list[str]) -> bytes:
    return trained(sentences, 151)


@pytest.fixture
def tokenizer(model: bytes, tmp_path: Path) -> Tokenizer:
    (tmp_path / "tokenizer.model").write_bytes(model)
    return read_tokenizer(tmp_path)


def test_the_roles_are_those_of_the_model_and_are_not_found_in_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.special == SpecialTokens("<pad>", "<s>", "</s>", "<unk>")
    assert [tokenizer.unk_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id] == [0, 1, 2, 3]
    assert not {1, 2, 3} & set(tokenizer.encode("<s> </s><pad>"))


def test_special_tokens_are_skipped_in_decoding(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Ein kleines")
    framed = [tokenizer.bos_id, *ids, tokenizer.unk_id or 0, tokenizer.eos_id, tokenizer.pad_id]
    assert tokenizer.decode(framed) == "Ein kleines"
    assert tokenizer.decode_batch([framed, ids, []]) == ["Ein kleines", "Ein kleines", ""]


def test_token_and_id_are_inverse(tokenizer: Tokenizer) -> None:
    ids = list(range(tokenizer.vocab_size))
    assert [tokenizer.id(tokenizer.token(id)) for id in ids] == ids
    assert tokenizer.id("no such token") is None
    for id in (tokenizer.vocab_size, -1):
        with pytest.raises(InputError, match=f"no token has the id {id}"):
            tokenizer.token(id)


def test_what_is_unknown_is_told(tokenizer: Tokenizer) -> None:
    assert tokenizer.unknown_pieces("Ein 漢字 Ж") == ["漢字", "Ж"]
    assert tokenizer.count_unknown(tokenizer.encode("Ein 漢字 Ж")) == 2


def test_inside_a_text_no_space_is_put_before(tokenizer: Tokenizer) -> None:
    inside = tokenizer.encode_inside("little")
    assert not tokenizer.token(inside[0]).startswith("▁")
    assert tokenizer.token(tokenizer.encode("little")[0]).startswith("▁")
    before = tokenizer.encode("a")
    assert tokenizer.decode([*before, *inside]) == "alittle"
    assert tokenizer.decode([*before, *tokenizer.encode_inside(" little")]) == "a little"


def test_a_stream_gives_out_the_text_of_the_whole(sentences: list[str], tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(
        trained(sentences, 411, byte_fallback=True, normalization_rule_name="identity")
    )
    tokenizer = read_tokenizer(tmp_path)
    for text in ("Ein kleines Mädchen", "漢字 and 👨\u200d👩 more", "a"):
        ids = tokenizer.encode(text)
        stream = TextStream(tokenizer)
        assert "".join(stream.push([id]) for id in ids) + stream.flush() == tokenizer.decode(ids) == text


def test_words_begin_where_a_space_is(tokenizer: Tokenizer) -> None:
    starts = word_starts(tokenizer)
    pieces = [tokenizer.token(id) for id in range(4, tokenizer.vocab_size)]
    assert any(piece.startswith("▁") and len(piece) > 1 for piece in pieces)
    for id, piece in enumerate(pieces, start=4):
        if piece[0] == "▁" or piece.isalnum():
            assert starts[id] == (piece[0] == "▁"), piece


# At rest


def test_the_model_file_is_kept_and_loaded(
    tokenizer: Tokenizer, model: bytes, nasty: list[str], tmp_path: Path
) -> None:
    folder = tmp_path / "saved"
    folder.mkdir()
    for name, file in (("tokenizer.json", "spiece.model"), ("target_tokenizer.json", "target_spiece.model")):
        tokenizer.save(folder / name)
        assert (folder / file).read_bytes() == model
        assert Tokenizer.saved_at(folder / name)
        loaded = Tokenizer.load(folder / name)
        assert (loaded.fingerprint, loaded.special) == (tokenizer.fingerprint, tokenizer.special)
        assert loaded.encode_batch(nasty) == tokenizer.encode_batch(nasty)
    assert not Tokenizer.saved_at(tmp_path / "no_tokenizer.json")


def test_of_two_tokenizers_saved_in_turn_the_last_is_loaded(tokenizer: Tokenizer, tmp_path: Path) -> None:
    folder, words = tmp_path / "saved", train_word(["ein Wort"], 11)
    folder.mkdir()
    for last in (words, tokenizer, words):
        last.save(folder / "tokenizer.json")
        assert Tokenizer.load(folder / "tokenizer.json").fingerprint == last.fingerprint


def test_tokens_that_were_added_are_no_part_of_any_text(model: bytes, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(model)
    plain = read_tokenizer(tmp_path)
    size = plain.vocab_size
    added = {"2": {"content": "</s>"}, str(size + 1): {"content": "<mask>"}, str(size): {"content": "<cut>"}}
    settings = {"added_tokens_decoder": added, "mask_token": "<mask>", "pad_token": None}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = read_tokenizer(tmp_path)
    assert (tokenizer.mask_id, tokenizer.token(size), tokenizer.vocab_size) == (size + 1, "<cut>", size + 2)
    assert tokenizer.special.pad is None
    assert tokenizer.encode("a<mask><cut>") == plain.encode("a<mask><cut>")
    assert tokenizer.decode([*plain.encode("Ein"), size, size + 1]) == "Ein"
    (tmp_path / "saved").mkdir()
    tokenizer.save(tmp_path / "saved" / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "saved" / "tokenizer.json").fingerprint == tokenizer.fingerprint
    assert tokenizer.fingerprint != plain.fingerprint


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_a_piece_that_has_a_role_is_found_in_no_text(
    sentences: list[str], nasty: list[str], tmp_path: Path, kind: str
) -> None:
    """Nor where the model was told to find it; what has no role, and all other text, is cut as SentencePiece does."""
    model = trained(sentences, 151, model_type=kind, user_defined_symbols=["<mask>", "<cut>"])
    (tmp_path / "spiece.model").write_bytes(model)
    (tmp_path / "tokenizer_config.json").write_text('{"mask_token": "<mask>"}')
    tokenizer, plain = read_tokenizer(tmp_path), sentencepiece.SentencePieceProcessor(model_proto=model)
    text = "Ein <mask> and<cut>"
    assert tokenizer.mask_id in plain.encode(text)
    (tmp_path / "saved").mkdir()
    tokenizer.save(tmp_path / "saved" / "tokenizer.json")
    assert (tmp_path / "saved" / "spiece.model").read_bytes() == model
    for one in (
        tokenizer,
        Tokenizer.load(tmp_path / "saved" / "tokenizer.json"),
        pickle.loads(pickle.dumps(tokenizer)),
    ):
        assert one.mask_id == plain.piece_to_id("<mask>")
        assert one.mask_id not in [*one.encode(text), *one.encode_inside("<mask>"), *one.encode_batch([text])[0]]
        assert one.id("<cut>") in one.encode(text)
        assert one.encode_batch([*nasty, "<cut>"]) == plain.encode([*nasty, "<cut>"])


def test_what_is_unknown_may_read_like_a_piece_that_has_a_role(tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(trained(["a b c d e f g h", "e d c b a"] * 9, 30, eos_piece="漢字"))
    tokenizer = read_tokenizer(tmp_path)
    assert tokenizer.special.eos == "漢字"
    assert tokenizer.eos_id not in tokenizer.encode_inside("漢字")
    assert tokenizer.unknown_pieces("a 漢字") == ["漢字"]


def test_pickled_equals_original(tokenizer: Tokenizer, nasty: list[str]) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode_batch(nasty) == tokenizer.encode_batch(nasty)
    assert copy.fingerprint == tokenizer.fingerprint


# What is wrong


def test_a_file_that_is_no_model_is_named(model: bytes, tmp_path: Path) -> None:
    path = tmp_path / "spiece.model"
    for content in (b"", b"not a model", model[:1000], model[:-1]):
        path.write_bytes(content)
        with pytest.raises(InputError) as error:
            read_tokenizer(tmp_path)
        assert str(error.value) == f"{path}: not a SentencePiece model; give a whole .model or .spm file"


def test_a_class_that_numbers_otherwise_is_refused(model: bytes, tmp_path: Path) -> None:
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    with pytest.raises(InputError, match=r"XLMRobertaTokenizer numbers the pieces .* add the tokenizer\.json"):
        read_tokenizer(tmp_path)


def test_the_decoder_of_t5_begins_with_pad(model: bytes, tmp_path: Path) -> None:
    (tmp_path / "spiece.model").write_bytes(model)
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer", "bos_token": null}')
    assert read_tokenizer(tmp_path).special == SpecialTokens("<pad>", "<pad>", "</s>", "<unk>")


def test_the_extra_is_named_where_it_is_missing(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    with pytest.raises(InputError, match=r"sentencepiece is needed .*; run: pip install 'plainformer\[tokenizers\]'"):
        read_tokenizer(tmp_path)


# Marian


@pytest.fixture
def marian(sentences: list[str], model: bytes, tmp_path: Path) -> Path:
    """Marian's files, in which the two sides number their pieces together; the piece "e" has no number."""
    (tmp_path / "source.spm").write_bytes(model)
    (tmp_path / "target.spm").write_bytes(trained(sentences[::2], 101))
    pieces = set()
    for side in ("source", "target"):
        processor = sentencepiece.SentencePieceProcessor()
        processor.LoadFromSerializedProto((tmp_path / f"{side}.spm").read_bytes())
        pieces |= {processor.id_to_piece(id) for id in range(4, processor.get_piece_size())}
    tokens = ["</s>", "<unk>", *sorted(pieces - {"e"}), ">>de<<", "<pad>"]
    (tmp_path / "vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    return tmp_path


def test_marians_decoder_begins_with_pad(marian: Path) -> None:
    for tokenizer in read_tokenizers(marian):
        assert tokenizer.special == SpecialTokens("<pad>", "<pad>", "</s>", "<unk>")
        assert tokenizer.bos_id == tokenizer.pad_id == tokenizer.vocab_size - 1
        assert (tokenizer.eos_id, tokenizer.unk_id) == (0, 1)


def test_marians_sides_cut_differently_and_number_together(marian: Path) -> None:
    source, target = read_tokenizers(marian)
    text = "Two young, White males"
    assert source.encode(text) != target.encode(text)
    assert source.token(7) == target.token(7)
    assert source.fingerprint != target.fingerprint
    assert read_tokenizer(marian).fingerprint == source.fingerprint
    assert read_tokenizer_file(marian / "target.spm").fingerprint == target.fingerprint
    assert source.decode(source.encode("Two young")) == "Two young"


def test_a_language_before_a_text_is_one_token(marian: Path) -> None:
    source, _ = read_tokenizers(marian)
    assert source.encode(">>de<<Two") == [source.id(">>de<<"), *source.encode("Two")]
    assert source.encode_batch([">>de<< Two", ">>fr<<"]) == [source.encode(">>de<< Two"), [source.unk_id]]
    assert source.unknown_pieces(">>fr<<Two") == [">>fr<<"]


def test_what_reads_like_a_token_with_a_role_is_unknown_to_marian(marian: Path) -> None:
    vocabulary = (marian / "vocab.json").read_text().replace("<pad>", "\\u6f22\\u5b57")
    (marian / "vocab.json").write_text(vocabulary)
    (marian / "tokenizer_config.json").write_text('{"pad_token": "漢字"}')
    for tokenizer in read_tokenizers(marian):
        assert tokenizer.token(tokenizer.pad_id) == "漢字"
        for copy in (tokenizer, pickle.loads(pickle.dumps(tokenizer))):
            for ids in (copy.encode("a 漢字"), copy.encode_inside("漢字"), *copy.encode_batch(["漢字"])):
                assert copy.pad_id not in ids
                assert copy.unk_id in ids
            assert copy.unknown_pieces("a 漢字") == ["漢字"]


def test_marians_files_are_kept_together(marian: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, pair = tmp_path_factory.mktemp("saved"), read_tokenizers(marian)
    for name, tokenizer in zip(("tokenizer.json", "target_tokenizer.json"), pair, strict=True):
        tokenizer.save(folder / name)
    loaded = [Tokenizer.load(folder / name) for name in ("tokenizer.json", "target_tokenizer.json")]
    assert [tokenizer.fingerprint for tokenizer in loaded] == [tokenizer.fingerprint for tokenizer in pair]
    copies = pickle.loads(pickle.dumps(pair))
    assert [copy.encode("Ein Haus") for copy in copies] == [tokenizer.encode("Ein Haus") for tokenizer in pair]


def test_one_side_of_marians_keeps_the_other(marian: Path, words: Tokenizer) -> None:
    source, target = read_tokenizers(marian)
    assert source.keeps(target)
    assert source.keeps(source)
    assert not source.keeps(words)
    assert source.framed(eos=True).fingerprint == source.fingerprint


def test_no_token_can_be_added_to_another_librarys_file(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match=r"kept as spiece\.model can get no token more; train with one that is"):
        tokenizer.with_start("<start>", former_pad="<old-pad>", former_bos="<old-bos>")


def test_with_a_vocabulary_for_each_side_the_target_has_its_own(marian: Path) -> None:
    tokens = ["<unk>", "</s>", "<pad>", "▁a"]
    (marian / "target_vocab.json").write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    source, target = read_tokenizers(marian)
    assert source.vocab_size > target.vocab_size == 4
    assert (target.bos_id, target.eos_id) == (2, 1)


def test_what_is_wrong_with_marians_files_is_named(marian: Path) -> None:
    whole = {name: (marian / name).read_bytes() for name in ("target.spm", "vocab.json")}
    for name, content, said in (
        ("target.spm", b"", "target.spm: not a SentencePiece model"),
        ("vocab.json", b"{", "vocab.json: not JSON"),
        ("vocab.json", b'{"<unk>": 1, "</s>": 2}', "vocab.json: the vocabulary of 2 tokens has no token with the id 0"),
        ("vocab.json", b'{"</s>": 0}', "vocab.json: the unk token <unk> is not in the vocabulary"),
        ("vocab.json", b'{"<unk>": 0, "</s>": 1}', "the pad token <pad> is not in the vocabulary"),
        ("target.spm", None, "target.spm: the file is missing"),
    ):
        (marian / name).unlink()
        if content is not None:
            (marian / name).write_bytes(content)
        with pytest.raises(InputError) as error:
            read_tokenizers(marian)
        assert said in str(error.value)
        (marian / name).write_bytes(whole[name])
    read_tokenizers(marian)
