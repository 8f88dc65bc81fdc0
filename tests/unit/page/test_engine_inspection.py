"""What the engine says of a pass: lens, attribution, what was cut, and one line for what goes wrong."""

from typing import Any

import pytest
from test_engine_models import MODELS, TEXT

from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.texts import enclose
from plainformer.page.bundle import bundle
from plainformer.tokenizer import SpecialTokens, train_bpe, train_character, train_word
from random_models import content_of

SINGLE = {name: sizes for name, sizes in MODELS.items() if "labels" not in sizes}


@pytest.mark.parametrize("name", SINGLE)
def test_the_last_lens_is_the_output_and_attributions_sum_to_the_logit(name: str, ask) -> None:
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    packed = bundle(content_of(SINGLE[name], tokenizer), {})
    asked: dict[str, Any] = {"text": TEXT, "target": tokenizer.encode("a lazy fox"), "best": 4}
    places = [("attribution", {"position": position, "token": token}) for position, token in ((0, 9), (7, 5), (9, 11))]
    passed, lens, *parts = ask(packed, ("forward", asked), ("lens", {"best": 4}), *places)
    # A text model leaves out special tokens from what it would say; the lens shows all.
    if "encoder_layers" in SINGLE[name]:
        assert lens[-1]["predictions"] == passed["predictions"]
    assert lens[0]["predictions"] != lens[-1]["predictions"]
    for found in parts:
        values = [part["value"] for part in found["parts"]]
        largest = max(map(abs, values))
        assert sum(values) == pytest.approx(found["logit"], abs=1e-5 * largest)
        names = [part["name"] for part in found["parts"]]
        assert len(names) == len(set(names))
        assert any(name.endswith("self_attention/1") for name in names)


def test_a_classifier_says_what_each_word_adds(ask) -> None:
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    packed = bundle(content_of(MODELS["a classifier by the mean"], tokenizer), {})
    words = TEXT.split()
    rest = " ".join(words[:2] + words[3:])
    passed, without, other = ask(
        packed, ("forward", {"text": TEXT}), ("without_each_word", {"text": TEXT}), ("forward", {"text": rest})
    )
    assert [one["word"] for one in without] == words
    assert sum(one["probability"] for one in passed["labels"]) == pytest.approx(1.0)
    assert without[2]["labels"] == other["labels"] != passed["labels"]


def test_what_does_not_fit_is_cut_and_said_and_the_rest_is_read_as_the_settings_say(ask) -> None:
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    content = content_of({**MODELS["a classifier by the mean"], "context": 20}, tokenizer)
    ids = tokenizer.encode(TEXT)
    read = {"head": ids[:20], "tail": ids[-20:], "both": ids[:10] + ids[-10:]}
    for way, wanted in read.items():
        (passed,) = ask(bundle(content, {"truncate": way}), ("forward", {"text": TEXT}))
        assert [token["id"] for token in passed["source"]] == wanted
        assert passed["cut"] == len(ids) - 20
    (passed,) = ask(bundle(content, {"max_tokens": 7}), ("forward", {"text": TEXT}))
    assert [token["id"] for token in passed["source"]] == ids[:7]


def test_gaps_are_found_and_no_special_token_is_guessed(ask) -> None:
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    content, text = content_of(MODELS["BERT"], tokenizer), "the <mask>ox, <mask>"
    (passed,) = ask(bundle(content, {}), ("forward", {"text": text, "best": 40}))
    ids = enclose(tokenizer, MaskFiller.of(content).encode_gaps(text, "text"))
    assert [token["id"] for token in passed["source"]] == ids
    assert passed["gaps"] == [place for place, id in enumerate(ids) if id == tokenizer.mask_id]
    guessed = passed["predictions"][5]
    assert len(guessed) == tokenizer.vocab_size - len(tokenizer.special.tokens())
    assert sum(one["probability"] for one in guessed) == pytest.approx(1.0, abs=1e-5)


def test_what_goes_wrong_is_one_line(ask) -> None:
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    writer, translator = (bundle(content_of(MODELS[name], tokenizer), {}) for name in ("GPT-2", "the paper"))
    questions: list[tuple[str, dict[str, Any]]] = [
        *(("forward", {"text": text}) for text in ("", "fox 猫 Z", "\ud800")),
        ("arrays", {"names": ["0/weights"]}),
        ("without_each_word", {"text": "fox"}),
    ]
    errors = [answer["error"] for answer in ask(writer, *questions)]
    assert errors == [
        "the text is empty",
        "the model's vocabulary does not have '猫', 'Z'",
        "the text holds a lone surrogate, which is not valid Unicode",
        "the last pass has no array called 0/weights",
        "this kind of model has no without_each_word",
    ]
    blank, unknown = ask(translator, ("search", {"text": " \n"}), ("forward", {"text": "fox 猫"}))
    assert blank == {"error": "the text is empty"}
    assert unknown["unknown"] == ["猫"]  # a translator reads it as the unknown token, and it is said


@pytest.mark.parametrize("text", ["the fox 猫", "fox dogs the猫 dogs", "the\tfox", "dogs"])
def test_what_a_vocabulary_of_words_lacks_are_words(text: str, ask) -> None:
    tokenizer = train_word([TEXT], 40)
    packed = bundle(content_of(MODELS["a classifier by the mean"], tokenizer), {})
    (found,) = ask(packed, ("tokens", {"text": text}))
    assert found["unknown"] == [piece.removeprefix(" ") for piece in tokenizer.unknown_pieces(text)]
    assert found["unknown"]


def test_a_token_is_shown_with_its_text_and_its_bytes(ask) -> None:
    texts = ["the quick brown fox", "das weiße Haus", "यह एक पिज़्ज़ा है"] * 3
    tokenizer = train_bpe(texts, 330)
    content = content_of({**MODELS["GPT-2"], "context": 90}, tokenizer)
    text = "the fox — यह 猫"
    (found,) = ask(bundle(content, {}), ("tokens", {"text": text}))
    assert [token["id"] for token in found["tokens"]] == tokenizer.encode(text)
    assert bytes(byte for token in found["tokens"] for byte in token["bytes"]) == b" " + text.encode()
    assert found["tokens"][0]["text"].startswith(" t")
