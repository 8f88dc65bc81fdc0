"""A run on somebody else's vocabulary: its file is named, its ids are learnt from, and the model folder is complete."""

import io
import json

import pytest

import plainformer
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.byte import BYTE_NAMES

RECIPE = """\
task = "language-model"

[data]
text = "{folder}/sea.txt"
batch_size = 3

[tokenizer]
kind = "file"
file = "{folder}/{name}"

[model]
d_model = 14
d_ff = 22
heads = 2
layers = 1
context = 11

[train]
steps = 2
save_every = 1
"""


def sentencepiece_model(path, text):
    sentencepiece = pytest.importorskip(
        "sentencepiece", reason="sentencepiece, of the extra `tokenizers`, is not installed"
    )
    model, lines = io.BytesIO(), text.read_text(encoding="utf-8").split("\n")
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=model, vocab_size=97, hard_vocab_limit=False, minloglevel=2
    )
    path.write_bytes(model.getvalue())


def gpt2_vocabulary(path, text):
    tokens = [*BYTE_NAMES, "th", "the", "<|endoftext|>"]
    path.write_text(json.dumps({token: id for id, token in enumerate(tokens)}))
    (path.parent / "merges.txt").write_text("#version: 0.2\nt h\nth e\n")


KINDS = {"tokenizer.model": (sentencepiece_model, "spiece.model"), "vocab.json": (gpt2_vocabulary, "tokenizer.json")}


def recipe_of(folder, name):
    (folder / "sea.txt").write_text("The sea, the ship and the white whale; the man hunts the sea.\n" * 40)
    (folder / "scribe.toml").write_text(RECIPE.format(folder=folder, name=name))
    return folder / "scribe.toml"


@pytest.mark.parametrize("name", KINDS)
def test_a_run_reads_it_resumes_with_it_and_leaves_a_folder_that_loads(cli, tmp_path, name):
    recipe, run, (make, kept) = recipe_of(tmp_path, name), tmp_path / "run", KINDS[name]
    make(tmp_path / name, tmp_path / "sea.txt")
    for more in ([], ["--resume", "--set", "train.steps=3"]):
        outcome = cli("train", recipe, "--run", run, *more)
        assert outcome.code == 0, outcome
    (tmp_path / name).unlink()
    for folder in (run, run / "last"):
        assert (folder / kept).exists()
    writer = plainformer.load(run / "last")
    assert writer.tokenizer.fingerprint == Tokenizer.load(run / "tokenizer.json").fingerprint
    outcome = cli("generate", run, "the sea", "--max-tokens", "5")
    assert outcome.code == 0, outcome
    outcome = cli(
        "train", recipe, "--run", run, "--overwrite", "--set", "tokenizer.kind=byte", "--set", "tokenizer.file="
    )
    assert outcome.code == 0, outcome
    assert Tokenizer.load(run / "tokenizer.json").vocab_size == 259
    assert not (run / "spiece.model").exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("r50k_base.tiktoken", b"YQ== 0\n", "r50k_base.tiktoken: no token is the byte 0x00"),
        ("r50k_base.tiktoken", b"%%% 0\n", "r50k_base.tiktoken:1: not base64 and a number"),
        ("tokenizer.model", b"nothing of the kind", "tokenizer.model: not a SentencePiece model"),
        ("vocab.txt", b"a\nb\n", "vocab.txt: the unk_token [UNK] is not in the vocabulary"),
        ("vocab.json", b'{"a": 1}', "vocab.json: the vocabulary of 1 tokens has no token with the id 0"),
        ("words.bin", b"", "words.bin: not a tokenizer's file, by its name"),
    ],
)
def test_a_file_that_will_not_do_is_one_line_and_nothing_is_written(cli, tmp_path, name, content, said):
    if name.endswith(".model"):
        pytest.importorskip("sentencepiece", reason="sentencepiece, of the extra `tokenizers`, is not installed")
    (tmp_path / name).write_bytes(content)
    (tmp_path / "merges.txt").write_bytes(b"")
    outcome = cli("train", recipe_of(tmp_path, name), "--run", tmp_path / "run")
    assert outcome.code == 2, outcome
    assert said in outcome.last_line()
    assert not (tmp_path / "run").exists()
