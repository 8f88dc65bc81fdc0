"""A line ends at a newline and nowhere else: what is read, what is written, in the shell as in Python."""

from typing import Any

import jax
import pytest

import plainformer
from plainformer.cli.output import one_line
from plainformer.files.toml import find_line
from plainformer.folder import ModelFolder, save_folder
from plainformer.models import Transformer, TransformerConfig
from plainformer.tokenizer import train_character
from plainformer.tokenizer.wordpiece import from_vocab_txt

# What Python's splitlines takes for line ends besides the newline, each inside a word.
ODD = ["a\u2028b", "c\u2029d", "e\x85f", "g\x0bh", "i\x0cj", "k\x1cl", "m\x1dn", "o\x1ep", "q\rr"]


@pytest.fixture(scope="module")
def odd_translator(tmp_path_factory):
    """A random translator whose every token is a letter or such a character."""
    tokenizer = train_character(ODD)
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 23, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}
    vocab = tokenizer.vocab_size
    model = jax.tree.map(
        lambda leaf: 2.0 * leaf if leaf.ndim == 2 else leaf,
        Transformer(TransformerConfig(vocab, vocab, **sizes), key=jax.random.key(3)),
    )
    folder = tmp_path_factory.mktemp("odd") / "model"
    save_folder(ModelFolder(model, tokenizer, tokenizer, {"beam_size": 1, "max_margin": 9}), folder)
    return folder


def test_a_translation_in_the_shell_is_the_one_in_python(cli, odd_translator, tmp_path):
    file, out = tmp_path / "lines", tmp_path / "out"
    file.write_bytes("".join(line + "\n" for line in ODD).encode())
    expected = plainformer.load(odd_translator).translate(ODD)
    assert any(len(text.splitlines()) > 1 for text in expected), "none has such a character, and nothing is shown"
    assert cli("translate", odd_translator, "--file", file).out.split("\n") == [*expected, ""]
    (tmp_path / "pairs.tsv").write_bytes("".join(f"{line}\t{line}\n" for line in ODD).encode())
    said = cli("evaluate", odd_translator, "--data", tmp_path, "--pairs", "pairs.tsv", "--output", out)
    assert said.code == 0, said
    assert out.read_bytes().decode().split("\n") == [*expected, ""]


def test_a_newline_in_a_translation_is_a_space():
    assert one_line("a \n\n b\u2028c") == "a b\u2028c"


def test_the_line_of_a_setting_is_counted_by_newlines():
    assert find_line('name = "a\u2028b\x85c"\n[data]\nsource = "en"\n', "data.source") == 3


def test_a_wide_blank_is_a_token_of_a_word_list():
    tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "\u3000", "\xa0", "\u2028", "a"]
    found = from_vocab_txt("".join(token + "\r\n" for token in tokens).encode(), {}, where="vocab.txt")
    assert [found.id_to_token(id) for id in range(len(tokens))] == tokens
