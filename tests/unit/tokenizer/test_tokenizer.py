"""What every tokenizer does: roles, errors, files, processes."""

import json
import os
import pickle
import subprocess
import sys
from array import array
from pathlib import Path

import pytest
import tokenizers

from plainformer.errors import InputError, WorkError
from plainformer.tokenizer import SpecialTokens, Tokenizer, train_bpe, train_character, train_word
from plainformer.tokenizer.backend import LibraryBackend

KINDS = ["bpe", "characters", "words"]


@pytest.fixture(params=KINDS)
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return request.getfixturevalue(request.param)


def test_ids_of_the_roles_are_found_by_name() -> None:
    special = SpecialTokens(pad="[PAD]", bos="[CLS]", eos="[SEP]", unk="[UNK]", mask="[MASK]")
    tokenizer = train_character(["ab"], special=special)
    found = (tokenizer.pad_id, tokenizer.bos_id, tokenizer.eos_id, tokenizer.unk_id, tokenizer.mask_id)
    assert [tokenizer.token(id) for id in found if id is not None] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]"]
    assert len(set(found)) == 5


def test_a_role_without_a_token_is_none_or_an_error(tokenizer: Tokenizer) -> None:
    assert tokenizer.mask_id is None
    bare = Tokenizer(
        tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0}, [])), SpecialTokens(None, None, None, None, None)
    )
    assert bare.unk_id is None
    assert bare.count_unknown([0]) == 0
    for role in ("pad_id", "bos_id", "eos_id"):
        with pytest.raises(InputError, match="has no"):
            getattr(bare, role)


def test_a_role_must_name_a_token_of_the_vocabulary() -> None:
    with pytest.raises(InputError, match="mask token <mask> is not in the vocabulary"):
        Tokenizer(
            tokenizers.Tokenizer(tokenizers.models.BPE({"<pad>": 0}, [])),
            SpecialTokens("<pad>", "<pad>", "<pad>", None, "<mask>"),
        )


def test_a_batch_is_encoded_as_its_texts(tokenizer: Tokenizer, nasty: list[str]) -> None:
    assert tokenizer.encode_batch(nasty) == [tokenizer.encode(text) for text in nasty]
    assert tokenizer.encode_batch([]) == []


def test_special_tokens_are_skipped_in_decoding(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode("Ein kleines")
    framed = [tokenizer.bos_id, *ids, tokenizer.eos_id, tokenizer.pad_id, tokenizer.pad_id]
    assert tokenizer.decode(framed) == "Ein kleines"
    assert tokenizer.decode_batch([framed, ids, []]) == ["Ein kleines", "Ein kleines", ""]
    assert tokenizer.decode(array("i", framed)) == "Ein kleines"


def test_a_backend_that_knew_of_no_special_tokens_learns_those_of_its_tokenizer() -> None:
    """Other readers of the file skip what it marks as special."""

    def library() -> tokenizers.Tokenizer:
        words = {"<pad>": 0, "<e>": 1, "<unk>": 2, "Wort": 3}
        return tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="<unk>"))

    special = SpecialTokens("<pad>", "<e>", "<e>", "<unk>")
    tokenizer = Tokenizer(LibraryBackend(library()), special)
    assert tokenizer.fingerprint == Tokenizer(library(), special).fingerprint


def test_broken_bytes_decode_to_the_replacement_character(bpe: Tokenizer) -> None:
    first = bpe.id("<0xE0>")
    assert first is not None
    assert bpe.decode([*bpe.encode("Ein"), first]) == "Ein\ufffd"


def test_token_and_id_are_inverse(tokenizer: Tokenizer) -> None:
    assert [tokenizer.id(tokenizer.token(id)) for id in range(tokenizer.vocab_size)] == list(
        range(tokenizer.vocab_size)
    )
    assert tokenizer.id("no such token") is None


def test_an_id_outside_the_vocabulary_is_refused(tokenizer: Tokenizer) -> None:
    for id in (tokenizer.vocab_size, -1, 2**40):
        for act in (lambda id: tokenizer.decode([id]), lambda id: tokenizer.decode_batch([[], [id]]), tokenizer.token):
            with pytest.raises(InputError, match=f"no token has the id {id}: .* {tokenizer.vocab_size} tokens"):
                act(id)


def test_a_lone_surrogate_is_refused(tokenizer: Tokenizer) -> None:
    with pytest.raises(InputError, match="surrogate"):
        tokenizer.encode("a\ud800")
    with pytest.raises(InputError, match=r"text 2: .*surrogate"):
        tokenizer.encode_batch(["a", "\udfff"])
    with pytest.raises(InputError, match=r"text 1: .*surrogate"):
        train_bpe(["\ud83d"], 400)


# At rest


@pytest.mark.parametrize("name", ["tokenizer.json", "target_tokenizer.json"])
def test_loaded_equals_saved(tokenizer: Tokenizer, nasty: list[str], tmp_path: Path, name: str) -> None:
    tokenizer.save(tmp_path / name)
    loaded = Tokenizer.load(tmp_path / name)
    assert loaded.special == tokenizer.special
    assert loaded.vocab_size == tokenizer.vocab_size
    assert loaded.fingerprint == tokenizer.fingerprint
    rows = tokenizer.encode_batch(nasty)
    assert loaded.encode_batch(nasty) == rows
    assert loaded.decode_batch(rows) == tokenizer.decode_batch(rows)
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / name).read_bytes()


def test_only_the_two_files_are_left(tokenizer: Tokenizer, tmp_path: Path) -> None:
    for _ in range(2):
        tokenizer.save(tmp_path / "target_tokenizer.json")
    assert {path.name for path in tmp_path.iterdir()} == {"target_tokenizer.json", "target_tokenizer_config.json"}


def test_the_file_is_read_by_the_library(bpe: Tokenizer, sentences: list[str], tmp_path: Path) -> None:
    bpe.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in sentences:
        ids = theirs.encode(text).ids
        assert ids == bpe.encode(text)
        assert theirs.decode(ids) == text


def test_roles_are_kept_when_the_names_are_unusual(tmp_path: Path) -> None:
    special = SpecialTokens(pad="<leer>", bos="<anfang>", eos="<ende>", unk="<fremd>", mask="<verdeckt>")
    tokenizer = train_word(["ein Wort"], 11, special=special)
    tokenizer.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").special == special
    config = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    assert config["eos_token"] == "<ende>"


def test_without_a_configuration_the_usual_names_are_found(tmp_path: Path) -> None:
    special = SpecialTokens(pad="[PAD]", bos="[CLS]", eos="[SEP]", unk="[UNK]", mask="[MASK]")
    train_character(["ab"], special=special).save(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").unlink()
    assert Tokenizer.load(tmp_path / "tokenizer.json").special == special


def test_the_configuration_may_write_tokens_with_options_or_null(tokenizer: Tokenizer, tmp_path: Path) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text('{"eos_token": {"content": "<s>"}, "bos_token": null}')
    loaded = Tokenizer.load(tmp_path / "tokenizer.json")
    assert loaded.special == SpecialTokens(bos=None, eos="<s>")
    assert loaded.fingerprint != tokenizer.fingerprint


@pytest.mark.parametrize("config", ['{"eos_token": "<nowhere>"}', '{"eos_token": 2}', "[]", '{"eos_to', "\udcff"])
def test_a_bad_configuration_is_named(tokenizer: Tokenizer, tmp_path: Path, config: str) -> None:
    tokenizer.save(tmp_path / "tokenizer.json")
    (tmp_path / "tokenizer_config.json").write_text(config, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(InputError, match=r"tokenizer_config\.json"):
        Tokenizer.load(tmp_path / "tokenizer.json")


FOREIGN = [
    b"",
    b"{}",
    b"[]",
    b"null",
    b"\xff\xfe",
    b"not json\nat all",
    b'{"model": {}}',
    b'{"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}',
    b'{"version": "1.0", "model": {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]]}}',
    b'{"vocab_size": 11, "d_model": 7}',
]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_that_is_no_tokenizer_is_named_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(content)
    with pytest.raises(InputError) as error:
        Tokenizer.load(path)
    assert str(error.value).startswith(f"{path}: ")
    assert "\n" not in str(error.value)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "none" / "tokenizer.json", tmp_path):
        with pytest.raises(InputError) as error:
            Tokenizer.load(path)
        assert str(error.value).startswith(f"{path}: ")


def test_a_truncated_file_is_refused_wherever_it_ends(tokenizer: Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    tokenizer.save(path)
    whole = path.read_bytes().rstrip()
    for length in range(0, len(whole), len(whole) // 37):
        path.write_bytes(whole[:length])
        with pytest.raises(InputError, match="not "):
            Tokenizer.load(path)


def test_a_failed_write_leaves_the_old_file_whole(
    tokenizer: Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(WorkError, match="No space left on device"):
        tokenizer.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["tokenizer.json"]
    assert path.read_text() == "old"


def test_a_missing_folder_is_named(tokenizer: Tokenizer, tmp_path: Path) -> None:
    with pytest.raises(WorkError, match=r"none/tokenizer_config\.json: "):
        tokenizer.save(tmp_path / "none" / "tokenizer.json")


def test_a_loaded_tokenizer_neither_truncates_nor_pads(tmp_path: Path) -> None:
    backend = tokenizers.Tokenizer(tokenizers.models.BPE({"a": 0, "b": 1}, []))
    backend.enable_truncation(2)
    backend.enable_padding(length=5)
    backend.save(str(tmp_path / "tokenizer.json"))
    assert Tokenizer.load(tmp_path / "tokenizer.json").encode("abb") == [0, 1, 1]


@pytest.mark.parametrize(("bos", "eos"), [(False, True), (True, False), (True, True), (False, False)])
def test_a_framed_tokenizer_tells_other_readers_what_goes_around_a_text(
    tokenizer: Tokenizer, tmp_path: Path, bos: bool, eos: bool
) -> None:
    framed = tokenizer.framed(bos=bos, eos=eos)
    framed.save(tmp_path / "tokenizer.json")
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    for text in ("Ein kleines", "", "</s>"):
        ids = tokenizer.encode(text)
        assert framed.encode(text) == Tokenizer.load(tmp_path / "tokenizer.json").encode(text) == ids
        theirs.encode_special_tokens = True
        assert theirs.encode(text).ids == [tokenizer.bos_id] * bos + ids + [tokenizer.eos_id] * eos


def test_a_token_to_start_with_is_the_last_and_takes_over_two_roles(
    tokenizer: Tokenizer, nasty: list[str], tmp_path: Path
) -> None:
    grown = tokenizer.with_start("<start>", former_pad="<old-pad>", former_bos="<old-bos>")
    assert grown.vocab_size == tokenizer.vocab_size + 1
    assert grown.pad_id == grown.bos_id == tokenizer.vocab_size
    assert grown.special == SpecialTokens("<start>", "<start>", tokenizer.special.eos, tokenizer.special.unk)
    assert (grown.id("<old-pad>"), grown.id("<old-bos>")) == (tokenizer.pad_id, tokenizer.bos_id)
    assert (grown.eos_id, grown.unk_id) == (tokenizer.eos_id, tokenizer.unk_id)
    assert grown.encode_batch(nasty) == tokenizer.encode_batch(nasty)
    assert grown.decode([grown.pad_id, *grown.encode("Ein kleines"), grown.eos_id]) == "Ein kleines"
    grown.save(tmp_path / "tokenizer.json")
    assert Tokenizer.load(tmp_path / "tokenizer.json").fingerprint == grown.fingerprint


def test_a_token_with_two_roles_does_not_make_way_for_another() -> None:
    backend = tokenizers.Tokenizer(tokenizers.models.WordLevel({"<pad>": 0, "<e>": 1, "<unk>": 2}, unk_token="<unk>"))
    tokenizer = Tokenizer(backend, SpecialTokens("<pad>", "<e>", "<e>", "<unk>"))
    with pytest.raises(InputError, match="the token <e> has two roles, and one of them goes to a new token"):
        tokenizer.with_start("<start>", former_pad="<old-pad>", former_bos="<old-bos>")


def test_a_tokenizer_keeps_only_itself(bpe: Tokenizer, words: Tokenizer) -> None:
    assert bpe.keeps(bpe)
    assert not bpe.keeps(words)


def test_fingerprints_tell_tokenizers_apart(sentences: list[str]) -> None:
    made = [
        train_bpe(sentences, 401),
        train_bpe(sentences, 402),
        train_bpe(sentences[:5], 401),
        train_bpe(sentences, 401, special=SpecialTokens(mask="<mask>")),
        train_bpe(sentences, 401, special=SpecialTokens(bos="</s>", eos="<s>")),
        train_character(sentences),
        train_word(sentences, 41),
    ]
    assert len({tokenizer.fingerprint for tokenizer in made}) == len(made)
    assert train_bpe(sentences, 401).fingerprint == made[0].fingerprint


# In other processes


def test_pickled_equals_original(tokenizer: Tokenizer, nasty: list[str]) -> None:
    copy = pickle.loads(pickle.dumps(tokenizer))
    assert copy.encode_batch(nasty) == tokenizer.encode_batch(nasty)
    assert copy.fingerprint == tokenizer.fingerprint


FORK = """
import os
from plainformer.tokenizer import train_character
tokenizer = train_character(["ab"])
expected = tokenizer.encode_batch(["ab"] * 1000)
child = os.fork()
if child == 0:
    os._exit(0 if tokenizer.encode_batch(["ab"] * 1000) == expected else 3)
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="os.fork, which this test is about, does not exist on this system")
@pytest.mark.parametrize("parallel", [None, "true", "false"])
def test_a_forked_process_encodes_in_silence(parallel: str | None) -> None:
    env = {key: value for key, value in os.environ.items() if key != "TOKENIZERS_PARALLELISM"}
    env |= {} if parallel is None else {"TOKENIZERS_PARALLELISM": parallel}
    # The child would hang for ever if it waited for threads that only its parent has.
    done = subprocess.run([sys.executable, "-c", FORK], env=env, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
