"""Gaps filled by a masked language model: which tokens it sees, what it says, and what is refused."""

from dataclasses import replace
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import MaskFiller, TextClassifier
from plainformer.decode.load import VERBS, load, load_as
from plainformer.decode.sentence_embeddings import VectorSettings
from plainformer.errors import InputError
from plainformer.folder import ModelFolder, abstract_model, save_folder
from plainformer.models import EncoderConfig, MaskedLanguageModel
from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer, train_bpe, train_character
from plainformer.tokenizer.truncation import Truncate

SPECIAL = SpecialTokens(mask="<mask>")
WORDS = train_bpe(["I like pizza, you like soup", "we like pizza"] * 3, 330, special=SPECIAL)
CHARACTERS = train_character(["abcdefg ,"], special=SPECIAL)


def make_reader(tokenizer: Tokenizer, *, context: int = 21, layers: int = 2) -> MaskFiller:
    """A model that is drawn at random, so that everything it reads shows."""
    config = EncoderConfig(
        vocab=tokenizer.vocab_size, d_model=12, d_ff=20, heads=3, layers=layers, context=context, pad_vocab_to=64
    )
    random = np.random.default_rng(1)
    model = jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype),
        abstract_model(config),
    )
    return MaskFiller(model, tokenizer)


READER = make_reader(WORDS)


def encoded(text: str, tokenizer: Tokenizer = WORDS) -> list[str]:
    """The tokens that the model reads for a text with gaps."""
    return [tokenizer.token(id) for id in make_reader(tokenizer).encode_gaps(text, "here")]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("I like <mask>, you like soup", [" I", " like", "<mask>", ",", " you", " like", " soup"]),
        ("<mask> like pizza", ["<mask>", " like", " pizza"]),
        ("I <mask> <mask>", [" I", "<mask>", "<mask>"]),
        ("I like<mask><mask>", [" I", " like", "<mask>", "<mask>"]),
        ("we like  <mask>", [" we", " like", " ", "<mask>"]),
    ],
)
def test_a_gap_stands_for_a_word_and_the_space_before_it(text: str, tokens: list[str]) -> None:
    """The other tokens are those that the whole text would have."""
    assert encoded(text) == tokens


def test_in_a_vocabulary_of_characters_a_gap_is_one_of_them() -> None:
    assert encoded("ab <mask> c", CHARACTERS) == ["a", "b", " ", "<mask>", " ", "c"]


def test_guesses_are_the_models_best_without_special_tokens() -> None:
    """As the plain softmax over the logits of all tokens that are text has it."""
    reader = make_reader(CHARACTERS)
    (gaps,) = reader.fill(["ab<mask>c<mask>"], top=3)
    ids = [*CHARACTERS.encode("ab"), 4, *CHARACTERS.encode("c"), 4]
    logits = np.asarray(reader.model(jnp.asarray([ids]), jnp.ones((1, 5), bool)), np.float64)[0, :, 5:14]
    assert CHARACTERS.vocab_size == 14
    assert len(gaps) == 2
    for guesses, place in zip(gaps, (2, 4), strict=True):
        probabilities = np.exp(logits[place]) / np.exp(logits[place]).sum()
        order = np.argsort(-probabilities)[:3]
        assert [guess.text for guess in guesses] == [CHARACTERS.token(5 + int(id)) for id in order]
        np.testing.assert_allclose([guess.probability for guess in guesses], probabilities[order], rtol=1e-5)


def test_no_more_guesses_than_there_are_tokens_and_equal_ones_by_their_id() -> None:
    model = eqx.tree_at(lambda m: m.encoder.embedding.table, make_reader(CHARACTERS).model, jnp.zeros((64, 12)))
    ((guesses,),) = MaskFiller(model, CHARACTERS).fill(["a<mask>"], top=100)
    assert "".join(guess.text for guess in guesses) == " ,abcdefg"
    np.testing.assert_allclose([guess.probability for guess in guesses], 1 / 9, rtol=1e-6)


def test_a_byte_is_shown_as_the_vocabulary_has_it() -> None:
    tokenizer = byte_tokenizer(SpecialTokens(unk=None, mask="<mask>"))
    ((guesses,),) = make_reader(tokenizer).fill(["a<mask>"], top=256)
    assert {"a", " ", tokenizer.token(tokenizer.encode("é")[0])} <= {guess.text for guess in guesses}
    assert len({guess.text for guess in guesses}) == 256


TEXTS = ["I like <mask>", "we like <mask>, you like <mask>", "<mask>", "you <mask>" + " like" * 15]


def test_other_texts_of_the_batch_do_not_change_a_prediction() -> None:
    together = READER.fill(TEXTS)
    assert [len(gaps) for gaps in together] == [1, 2, 1, 1]
    for text, gaps in zip(TEXTS, together, strict=True):
        (alone,) = READER.fill([text])
        for one, other in zip(alone, gaps, strict=True):
            assert [guess.text for guess in one] == [guess.text for guess in other]
            np.testing.assert_allclose(
                [guess.probability for guess in one], [guess.probability for guess in other], rtol=1e-4
            )
    assert READER.fill([]) == []


def test_more_gaps_than_are_computed_at_once() -> None:
    (gaps,) = READER.fill(["<mask>" * 19], top=2)
    assert len(gaps) == 19
    assert len({gap[0].probability for gap in gaps}) == 19  # learned positions tell them apart


def test_a_vector_is_the_mean_of_the_hidden_states_whatever_the_batch() -> None:
    texts = ["I like pizza", "soup", "we like" * 4, "you"]
    vectors = READER.embed(texts)
    assert vectors.shape == (4, 12)
    assert vectors.dtype == np.float32
    for text, vector in zip(texts, vectors, strict=True):
        ids = WORDS.encode(text)
        states = READER.model.encoder.encode(jnp.asarray([ids]), jnp.ones((1, len(ids)), bool))
        np.testing.assert_allclose(vector, np.asarray(states)[0].mean(axis=0), rtol=1e-4, atol=1e-5)
    assert READER.embed([]).shape == (0, 12)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="text 2: the text has no gap; write <mask> where a word is to be guessed"):
        READER.fill(["a <mask>", "a b"])
    with pytest.raises(InputError, match="text 1: the text has 22 tokens, and the model reads 21 at once; shorten it"):
        READER.embed(["I" + " like" * 21], truncate="no")
    with pytest.raises(InputError, match="text 2: the text is empty"):
        READER.embed(["soup", ""])
    prompted = replace(READER, vectors=VectorSettings(prompt="a "))
    for blank in ("", " \n "):
        with pytest.raises(InputError, match="text 2: the text is empty; give some text"):
            prompted.embed(["soup", blank])
        with pytest.raises(InputError, match="text 1: the text has no gap"):
            READER.fill([blank])
    with pytest.raises(InputError, match="text 1: the model's vocabulary does not have 'xz'"):
        make_reader(CHARACTERS).fill(["axzxb<mask>c"])
    with pytest.raises(InputError, match="text 1: the model's vocabulary does not have 'z'"):
        make_reader(CHARACTERS).fill(["ab<mask>z"])
    with pytest.raises(InputError, match=r"one text was given where a list of texts is expected; write \[text\]"):
        READER.fill("a <mask>")
    with pytest.raises(InputError, match="0 guesses were asked for"):
        READER.fill(["a <mask>"], top=0)
    plain = train_character(["abc"])
    with pytest.raises(InputError, match="the tokenizer of this model has no mask token"):
        make_reader(plain).fill(["a"])


def test_in_a_long_text_a_gap_is_filled_from_as_many_tokens_around_it_as_are_read() -> None:
    """21 are read: of 70 tokens the first gap has those at the beginning, the second 10 before it and 10 behind."""
    words = ["<mask>"] + ["like", "pizza", "soup"] * 10 + ["<mask>"] + ["like", "soup", "we"] * 12 + ["you", "like"]
    around = ["I like <mask>", " ".join(words[:21]), " ".join(words[21:42])]
    long, told = " ".join(words), []
    found = READER.fill(["I like <mask>", long], on_cut=told.extend)
    alone = READER.fill(around)
    assert told == ["text 2"]
    assert [[guess.text for guess in gap] for gap in found[1]] == [
        [guess.text for guess in gaps[0]] for gaps in alone[1:]
    ]
    assert found[1][0][0].probability == pytest.approx(alone[1][0][0].probability, rel=1e-4)
    assert len(found[0]) == 1
    with pytest.warns(
        UserWarning, match=r"1 text is longer than the 21 tokens that are read \(first: text 2\): a gap is"
    ):
        READER.fill(["I like <mask>", long])


def test_a_long_text_has_the_vector_of_its_truncation() -> None:
    long = "I" + " like" * 13 + " soup" * 11
    kept: dict[Truncate, str] = {"head": "I" + " like" * 13 + " soup" * 7, "tail": "like" + " like" * 9 + " soup" * 11}
    for way, text in kept.items():
        assert len(WORDS.encode(text)) == 21
        found = READER.embed([long], truncate=way, on_cut=lambda _: None)
        np.testing.assert_allclose(found, READER.embed([text]), rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="kept are the first 11 and the last 10 tokens"):
        READER.embed([long], truncate="both")


def test_a_folder_is_loaded_as_what_it_is_for(tmp_path: Path) -> None:
    save_folder(ModelFolder(READER.model, WORDS, WORDS, {}, {"name": "Soups"}), tmp_path / "soups")
    loaded = load(tmp_path / "soups")
    assert type(loaded) is MaskFiller
    assert type(loaded.model) is MaskedLanguageModel
    assert loaded.mask == "<mask>"
    assert loaded.fill(TEXTS) == READER.fill(TEXTS)
    assert VERBS[type(loaded)] == "fill"
    with pytest.raises(InputError, match="this model is for plainformer fill, not for classify"):
        load_as(tmp_path / "soups", TextClassifier)
    card = (tmp_path / "soups" / "README.md").read_text()
    assert "A masked language model (an encoder) with 2 layers, a context of 21 tokens, d_model 12" in card
    assert 'reader.fill(["… <mask> …"])' in card


def test_an_encoder_that_encloses_reads_a_text_between_bos_and_eos() -> None:
    """As BERT does, in every use of it; the longest text is two tokens shorter."""
    plain = make_reader(WORDS).model
    config = replace(plain.config, add_cls_sep=True)
    enclosed = MaskFiller(jax.tree.unflatten(jax.tree.structure(abstract_model(config)), jax.tree.leaves(plain)), WORDS)
    ids = WORDS.encode("I like pizza")
    read = jnp.asarray([[WORDS.bos_id, *ids, WORDS.eos_id]])
    vector = plain.encoder.encode(read, jnp.ones(read.shape, bool))[0].mean(axis=0)
    np.testing.assert_allclose(enclosed.embed(["I like pizza"])[0], vector, rtol=1e-5, atol=1e-6)
    gap = jnp.asarray([[WORDS.bos_id, *WORDS.encode("I like"), WORDS.mask_id, WORDS.eos_id]])
    best = int(jnp.where(enclosed._sayable, plain(gap, jnp.ones(gap.shape, bool))[0, 3], -jnp.inf).argmax())
    assert enclosed.fill(["I like <mask>"], top=1)[0][0][0].text == enclosed._texts[best]
    longest = " ".join(["like"] * plain.config.context)
    with pytest.raises(InputError, match="reads 19 at once"):
        enclosed.embed([longest], truncate="no")
    with pytest.warns(UserWarning, match="1 text is longer than the 19 tokens that are read"):
        found = enclosed.fill(["<mask> " + longest, "like"][:1], top=1)
    assert found == enclosed.fill(["<mask>" + " like" * 18], top=1)
