"""What `look` shows is what each kind of model says, and is what it says it is."""

import base64
import math
import struct
import zlib
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.settings import GenerationSettings
from plainformer.decode.text_classifier import TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.inspect.html import map_of
from plainformer.inspect.look import _in_the_model
from plainformer.models import (
    Classifier,
    EncoderConfig,
    LanguageModel,
    LanguageModelConfig,
    MaskedLanguageModel,
    Transformer,
    TransformerConfig,
)
from plainformer.tokenizer import SpecialTokens, train_character, train_word

SOURCE = train_word(["one two three four five six seven"], 11)
TARGET = train_word(["eins zwei drei vier fünf sechs sieben acht neun"], 13)
CHARACTERS = train_character(["the moon and the sun"], special=SpecialTokens(mask="<mask>"))
SIZES: dict[str, Any] = {"d_model": 6, "d_ff": 8, "heads": 2}
CLOSE: Any = {"rtol": 1e-5, "atol": 1e-6}


@pytest.fixture(scope="module")
def translator() -> Translator:
    config = TransformerConfig(11, 13, encoder_layers=1, decoder_layers=2, tie="none", pad_vocab_to=8, **SIZES)
    model = jax.tree.map(
        lambda leaf: 3.0 * leaf if leaf.ndim == 2 else leaf, Transformer(config, key=jax.random.key(1))
    )
    return Translator(model, SOURCE, TARGET, GenerationSettings(beam_size=3, max_margin=2))


@pytest.fixture(scope="module")
def seen(translator: Translator) -> Any:
    return translator.look("one two <three>")


def test_a_newline_that_the_vocabulary_lacks_is_named(translator: Translator) -> None:
    reader = Translator(translator.model, train_character(["one two"]), TARGET, translator.settings)
    read = reader.read("one\ntwo")
    assert read.unknown == ("\n",)
    assert read.notes == ("the model's vocabulary does not have '\\n', which is read as unknown",)


def test_a_translation_is_the_one_that_is_found_with_its_score(translator: Translator, seen: Any) -> None:
    text = "one two <three>"
    best = translator.translate_n_best([text])[0][0]
    assert seen.notes == ("the model's vocabulary does not have '<', 'three', '>', which is read as unknown",)
    found = TARGET.decode([one.token.id for one in seen.chosen])
    assert found == best.text
    assert sum(math.log(one.probability) for one in seen.chosen) == pytest.approx(best.logprob, rel=1e-5)
    assert seen.beam.hypotheses[0].score == pytest.approx(best.score, rel=1e-5)
    assert [token.text for token in seen.source[:2]] == ["one", " two"]
    assert seen.source[-1].piece == "</s>"
    assert seen.tokens[0].piece == "<s>"
    assert [token.id for token in seen.tokens[1:]] == [one.token.id for one in seen.chosen[: len(seen.tokens) - 1]]


def test_arrays_have_their_names_and_axes(seen: Any) -> None:
    source, target = len(seen.source), len(seen.tokens)
    assert {name: array.shape for name, array in seen.attention.items()} == {
        "encoder/0/self_attention": (1, 2, source, source),
        **{f"decoder/{layer}/self_attention": (1, 2, target, target) for layer in (0, 1)},
        **{f"decoder/{layer}/cross_attention": (1, 2, target, source) for layer in (0, 1)},
    }
    for name, array in seen.attention.items():
        queries, keys = seen.axes(name)
        assert array.shape[2:] == (len(queries), len(keys))
        np.testing.assert_allclose(array.sum(axis=-1), 1.0, **CLOSE)  # no weight is on what was cut away, the padding
    assert seen["logits"].shape == (1, target, 16)
    assert seen["encoder/hidden"].shape == (1, source, 6)
    assert len(seen) == len(list(seen)) == len(seen.arrays)
    assert list(seen)[:4] == [f"encoder/embedding/{name}" for name in ("token", "position", "output")] + [
        "encoder/0/self_attention/query"
    ]
    assert list(seen)[-3:] == ["decoder/1/output", "decoder/hidden", "logits"]
    with pytest.raises(InputError, match=r"no array 'x/weights'; there are encoder/0/self_attention/weights, "):
        seen["x/weights"]


def test_the_lens_ends_in_the_predictions_and_parts_sum_to_the_logit(seen: Any) -> None:
    assert len(seen.lens) == 3
    assert seen.lens[-1] == seen.predictions
    assert [len(ranked) for ranked in seen.predictions] == [5] * len(seen.tokens)
    assert seen.predictions[1][0].probability >= seen.predictions[1][1].probability
    for position, one in enumerate(seen.chosen):
        parts = seen.attribution(position)
        assert sum(parts.values()) == pytest.approx(
            float(seen["logits"][0, position, one.token.id]), rel=1e-5, abs=1e-5
        )
    assert sum(seen.attribution(0, seen.predictions[0][1].token.piece).values()) != pytest.approx(
        sum(seen.attribution(0).values())
    )
    for wrong in ("three", 16, -1):
        with pytest.raises(InputError, match="there is no token or label"):
            seen.attribution(0, wrong)
    with pytest.raises(InputError, match=r"there is no position 99; give one from 0 to"):
        seen.attribution(99)


def test_ten_layers_are_in_their_order() -> None:
    names = [f"{layer}/self_attention/weights" for layer in range(12)]
    assert sorted(sorted(names), key=_in_the_model) == names


def test_a_part_off_is_the_same_target_in_another_model(seen: Any) -> None:
    without = seen.without("decoder/1/cross_attention")
    assert without.tokens == seen.tokens
    assert without.notes == (*seen.notes, "off: decoder/1/cross_attention")
    assert not np.allclose(without["logits"][..., :13], seen["logits"][..., :13])
    assert np.array_equal(without["encoder/hidden"], seen["encoder/hidden"])
    assert (without["decoder/1/cross_attention/output"] == 0.0).all()


def test_a_given_target_is_looked_at_instead(translator: Translator) -> None:
    forced = translator.look("one", "zwei drei")
    assert forced.beam is None
    expected = translator.score(["one"], ["zwei drei"])[0].logprob
    assert sum(math.log(one.probability) for one in forced.chosen) == pytest.approx(expected, rel=1e-5)


def test_bertviz_gets_tensors_of_its_shapes(seen: Any) -> None:
    """One a layer, (batch, heads, query, key), as `head_view` and `model_view` take them."""
    given = seen.attention_tensors()
    assert {name: len(value) for name, value in given.items()} == {
        "encoder_attention": 1,
        "decoder_attention": 2,
        "cross_attention": 2,
        "encoder_tokens": len(seen.source),
        "decoder_tokens": len(seen.tokens),
    }
    assert all(tensor.shape[:2] == (1, 2) for tensor in given["cross_attention"])
    assert np.array_equal(given["cross_attention"][1].numpy(), seen["decoder/1/cross_attention/weights"])


def test_a_notebook_gets_one_piece_of_html_in_which_nothing_is_markup(seen: Any) -> None:
    page = seen._repr_mimebundle_()["text/html"]
    assert "&lt;three&gt;" in page
    assert "<three>" not in page
    assert "&lt;unk&gt;" in page
    assert "http" not in page
    assert page.count("<img") == 10  # two heads of five attentions
    assert "Look(translation: 'one two <three>'" in repr(seen)


def test_charts_hold_the_numbers_of_the_look(seen: Any, tmp_path: Path) -> None:
    panels = seen.plot("decoder/1/cross_attention").to_dict()
    maps = [list(data) for data in panels["datasets"].values()] if "datasets" in panels else []
    maps = maps or [panel["data"]["values"] for panel in panels["concat"]]
    weights = [[cell["weight"] for cell in cells] for cells in maps]
    np.testing.assert_allclose(weights, seen["decoder/1/cross_attention/weights"][0].reshape(2, -1))
    lens = seen.plot("lens").to_dict()
    assert [row["best"] for row in lens["data"]["values"]] == [
        ranked[0].token.label for depth in seen.lens for ranked in depth
    ]
    bars = seen.plot("attribution", position=1).to_dict()
    assert {row["part"]: row["added"] for row in bars["data"]["values"]} == seen.attribution(1)
    seen.save_plot(tmp_path / "one.svg", "encoder/0/self_attention", head=1)
    assert "head 1" in (tmp_path / "one.svg").read_text(encoding="utf-8")
    with pytest.raises(InputError, match=r"encoder/0/self_attention has no head 2; choose 0 to 1"):
        seen.plot("encoder/0/self_attention", head=2)
    with pytest.raises(InputError, match="there is no attention 'memory'; there are encoder/0/self_attention, "):
        seen.plot("memory")


def test_a_map_is_an_image_of_the_weights_or_of_the_largest_of_each_block() -> None:
    def opacities(weights: Any) -> tuple[tuple[int, int], bytes]:
        data = base64.b64decode(map_of(np.asarray(weights)).removeprefix("data:image/png;base64,"))
        start = data.index(b"IDAT")
        (length,) = struct.unpack(">I", data[start - 4 : start])
        width, height = struct.unpack(">II", data[16:24])
        return (width, height), zlib.decompress(data[start + 4 : start + 4 + length])

    assert opacities([[0.0, 1.0, 0.2], [1.0, 0.0, 0.0]]) == ((3, 2), bytes([0, 0, 255, 51, 0, 255, 0, 0]))
    large = np.zeros((100, 40))
    large[99, 39] = 1.0  # of the last block of three rows, which is there in part
    (width, height), values = opacities(large)
    assert (width, height) == (40, 34)
    assert values == bytes(len(values) - 1) + b"\xff"


@pytest.fixture(scope="module")
def generator() -> TextGenerator:
    config = LanguageModelConfig(vocab=CHARACTERS.vocab_size, layers=2, context=12, position="learned", **SIZES)
    return TextGenerator(LanguageModel(config, key=jax.random.key(0)), CHARACTERS)


def test_a_text_is_as_probable_as_its_score_says(generator: TextGenerator) -> None:
    seen = generator.look("the moon")
    logprobs = jax.nn.log_softmax(seen["logits"][0])
    ids = [token.id for token in seen.tokens]
    found = [float(logprobs[place, id]) for place, id in enumerate(ids[1:])]
    np.testing.assert_allclose(found, generator.score(["the moon"])[0].logprobs, **CLOSE)
    assert "".join(token.text for token in seen.tokens) == "the moon"
    assert [one.token.id for one in seen.chosen] == [ranked[0].token.id for ranked in seen.predictions]
    assert seen.attention_tensors()["tokens"] == [token.label for token in seen.tokens]


def test_of_a_text_that_is_too_long_the_window_is_seen_in_which_it_is_gone_on_with(generator: TextGenerator) -> None:
    seen = generator.look("the moon and the sun")
    assert "".join(token.text for token in seen.tokens) == " the sun"
    assert seen.notes == ("the text has 20 tokens, of which the model reads the last 8 tokens: 12 are cut",)
    assert seen["logits"].shape[1] == 8
    ((greedy,),) = generator.generate(["the moon and the sun"], temperature=0.0, max_tokens=1)
    assert greedy == seen.predictions[-1][0].token.text


def test_gaps_are_filled_as_fill_fills_them() -> None:
    config = EncoderConfig(vocab=CHARACTERS.vocab_size, layers=1, context=16, **SIZES)
    filler = MaskFiller(MaskedLanguageModel(config, key=jax.random.key(0)), CHARACTERS)
    seen, place = filler.look("the m<mask>on", top=20), 5
    expected = filler.fill(["the m<mask>on"], top=9)[0][0]
    silent = {CHARACTERS.special_id(role) for role in ("pad", "bos", "eos", "unk", "mask")}
    found = [one for one in seen.predictions[place] if one.token.id not in silent][:9]
    assert [one.token.text for one in found] == [one.text for one in expected]
    ratios = [one.probability / other.probability for one, other in zip(found, expected, strict=True)]
    np.testing.assert_allclose(ratios, ratios[0], rtol=1e-5)  # fill leaves out what stands for no text
    assert filler.look("the moon").kind == "masked"


def test_a_label_and_what_each_word_does_for_it() -> None:
    config = EncoderConfig(vocab=CHARACTERS.vocab_size, layers=1, context=20, labels=("sky", "sea", "land"), **SIZES)
    classifier = TextClassifier(Classifier(config, key=jax.random.key(0)), CHARACTERS)
    seen = classifier.look("the moon and")
    expected = classifier.classify(["the moon and", "moon and", "the and", "the moon"])
    assert seen.chosen[0].token.text == expected[0].label
    assert {one.token.text: one.probability for one in seen.predictions[0]} == pytest.approx(expected[0].probabilities)
    for (word, change), text, without in zip(seen.left_out, ("the", "moon", "and"), expected[1:], strict=True):
        assert word == text
        for label, probability in without.probabilities.items():
            assert change[label] == pytest.approx(expected[0].probabilities[label] - probability, abs=1e-6)
    whole = sum(sum(seen.attribution(place).values()) for place in range(len(seen.tokens)))
    bias = seen.attribution(0)["output/bias"] * (len(seen.tokens) - 1)  # which belongs to no position
    assert whole - bias == pytest.approx(float(seen["logits"][0].max()), rel=1e-4)
    assert "land" in seen._repr_html_()
    assert classifier.look("moon").left_out == ()


def test_what_cannot_be_looked_at_is_one_line(translator: Translator, generator: TextGenerator) -> None:
    with pytest.raises(InputError, match=r"^the text is empty; give some text$"):
        translator.look(" \n")
    with pytest.raises(InputError, match=r"^text 1: the text is empty; give some text$"):
        generator.look("")
    with pytest.raises(InputError, match="vocabulary does not have 'X'"):
        generator.look("X")
    with pytest.raises(InputError, match=r"^0 predictions were asked for; give at least 1$"):
        translator.look("one", top=0)
    with pytest.raises(InputError, match="the line has 1,025 tokens"):
        translator.look(" ".join(["one"] * 1025))
