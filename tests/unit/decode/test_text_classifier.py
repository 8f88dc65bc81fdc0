"""Texts labelled by a classifier: probabilities by hand, other texts of the batch, what is refused."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.decode import Label, MaskFiller, TextClassifier
from plainformer.decode.load import VERBS, load, load_as
from plainformer.errors import InputError
from plainformer.folder import ModelFolder, abstract_model, save_folder
from plainformer.models import EncoderConfig
from plainformer.tokenizer import train_bpe, train_word

TOKENIZER = train_bpe(["I like pizza, you like soup", "we like pizza"] * 3, 330)
LABELS = ("neither", "bad", "good")


def make_labeller(vocab: int = TOKENIZER.vocab_size) -> TextClassifier:
    config = EncoderConfig(vocab=vocab, d_model=12, d_ff=20, heads=3, layers=2, context=21, labels=LABELS)
    random = np.random.default_rng(1)
    model = jax.tree.map(
        lambda leaf: jnp.asarray(random.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype),
        abstract_model(config),
    )
    return TextClassifier(model, TOKENIZER)


TEXTS = ["I like pizza", "soup", "we like" * 4, "you", "pizza, soup", "I like"]


def tell_apart(labeller: TextClassifier) -> TextClassifier:
    """With logits that are zero on average, and large, so that the texts have different labels."""
    weight = 30 * labeller.model.output.weight
    bias = -jnp.asarray(labeller.embed(TEXTS).mean(axis=0)) @ weight
    model = eqx.tree_at(lambda m: (m.output.weight, m.output.bias), labeller.model, (weight, bias))
    return TextClassifier(model, labeller.tokenizer)


LABELLER = tell_apart(make_labeller())


def test_probabilities_known_by_hand() -> None:
    """Logits that are the bias alone: ln 2, ln 5, ln 3 are probabilities of 2, 5 and 3 in 10."""
    model = eqx.tree_at(
        lambda m: (m.output.weight, m.output.bias),
        LABELLER.model,
        (jnp.zeros((12, 3)), jnp.log(jnp.asarray([2.0, 5.0, 3.0]))),
    )
    (found,) = TextClassifier(model, TOKENIZER).classify(["soup"])
    assert found.label == "bad"
    assert found.probability == pytest.approx(0.5)
    assert list(found.probabilities) == ["neither", "bad", "good"]
    assert found.probabilities == pytest.approx({"neither": 0.2, "bad": 0.5, "good": 0.3})


def test_the_label_is_the_most_probable_whatever_the_batch() -> None:
    together = LABELLER.classify(TEXTS)
    assert len({found.label for found in together}) > 1
    for text, found in zip(TEXTS, together, strict=True):
        assert found.probability == max(found.probabilities.values()) == found.probabilities[found.label]
        assert sum(found.probabilities.values()) == pytest.approx(1.0)
        (alone,) = LABELLER.classify([text])
        assert alone.label == found.label
        assert alone.probabilities == pytest.approx(found.probabilities, rel=1e-3)
        ids = TOKENIZER.encode(text)
        logits = LABELLER.model(jnp.asarray([ids]), jnp.ones((1, len(ids)), bool))
        assert alone.probability == pytest.approx(float(jax.nn.softmax(logits).max()), rel=1e-4)
    assert LABELLER.classify([]) == []


def test_equally_probable_labels_are_decided_for_the_first() -> None:
    model = eqx.tree_at(lambda m: m.output, LABELLER.model, jax.tree.map(jnp.zeros_like, LABELLER.model.output))
    assert [found.label for found in TextClassifier(model, TOKENIZER).classify(TEXTS)] == ["neither"] * len(TEXTS)


def test_vectors_are_those_of_the_encoder() -> None:
    ids = TOKENIZER.encode(TEXTS[0])
    states = LABELLER.model.encoder.encode(jnp.asarray([ids]), jnp.ones((1, len(ids)), bool))
    found = LABELLER.embed(TEXTS)
    assert found.shape == (6, 12)
    np.testing.assert_allclose(found[0], np.asarray(states)[0].mean(axis=0), rtol=1e-4, atol=1e-5)


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InputError, match="text 2: the text is empty; give some text"):
        LABELLER.classify(["soup", ""])
    with pytest.raises(InputError, match="text 1: the text has 22 tokens, and the model reads 21 at once"):
        LABELLER.classify(["I" + " like" * 21], truncate="no")
    with pytest.raises(InputError, match="one text was given"):
        LABELLER.classify("soup")
    for reads in (LABELLER.classify, LABELLER.logprobs, LABELLER.embed, LABELLER.encode, LABELLER.encode_to_embed):
        with pytest.raises(InputError, match="there: the text is empty; give some text"):
            reads(["soup", " \n "], where=["here", "there"], allow_unknown=True)
    words = train_word(["I like soup"], 30)
    labeller = TextClassifier(make_labeller(words.vocab_size).model, words)
    with pytest.raises(InputError, match="text 1: the model's vocabulary does not have ' stew'"):
        labeller.classify(["I like stew"])
    with pytest.raises(InputError, match="does not have ' stew'"):
        labeller.embed(["I like stew"])
    assert labeller.classify(["I like stew"], allow_unknown=True) == labeller.classify(
        ["I like bread"], allow_unknown=True
    )


def test_a_long_text_is_labelled_by_its_truncation_and_python_warns() -> None:
    long = "I" + " like" * 13 + " soup" * 11
    labeller = TextClassifier(LABELLER.model, TOKENIZER, max_tokens=9, truncate="tail")
    with pytest.warns(
        UserWarning, match=r"1 text is longer than the 9 tokens that are read \(first: text 2\): kept are"
    ):
        told = labeller.logprobs(["soup", long])
    np.testing.assert_allclose(told[1:], LABELLER.logprobs(["soup" + " soup" * 8]), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(
        labeller.logprobs([long], truncate="head", on_cut=lambda _: None),
        LABELLER.logprobs(["I" + " like" * 8]),
        rtol=1e-4,
        atol=1e-5,
    )


def test_a_folder_keeps_how_long_texts_were_read(tmp_path: Path) -> None:
    settings = {"max_tokens": 9, "truncate": "both"}
    save_folder(ModelFolder(LABELLER.model, TOKENIZER, TOKENIZER, settings), tmp_path)
    loaded = load(tmp_path)
    assert (loaded.max_tokens, loaded.truncate, loaded.max_text_tokens) == (9, "both", 9)
    save_folder(ModelFolder(LABELLER.model, TOKENIZER, TOKENIZER, settings | {"truncate": "left"}), tmp_path)
    with pytest.raises(InputError, match=r"generation_config\.json: .*no way to truncate called 'left'"):
        load(tmp_path)
    save_folder(ModelFolder(LABELLER.model, TOKENIZER, TOKENIZER, settings | {"max_tokens": -9}), tmp_path)
    with pytest.raises(InputError, match=r"generation_config\.json: .*max_tokens is -9; give 0"):
        load(tmp_path)


def test_a_folder_is_loaded_as_what_it_is_for_with_its_labels(tmp_path: Path) -> None:
    save_folder(ModelFolder(LABELLER.model, TOKENIZER, TOKENIZER), tmp_path)
    loaded = load(tmp_path)
    assert type(loaded) is TextClassifier
    assert loaded.labels == LABELS
    assert loaded.classify(TEXTS) == LABELLER.classify(TEXTS)
    assert isinstance(loaded.classify(TEXTS)[0], Label)
    assert VERBS[type(loaded)] == "classify"
    with pytest.raises(InputError, match="this model is for plainformer classify, not for fill"):
        load_as(tmp_path, MaskFiller)
    card = (tmp_path / "README.md").read_text()
    assert "A classifier of texts (neither, bad, good) with 2 layers" in card
    assert 'labeller.classify(["…"])' in card
