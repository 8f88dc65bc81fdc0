"""The logit lens and direct attribution in the engine: the last lens is the output, parts sum to the logit."""

from typing import Any

import pytest
from test_engine_models import MODELS, TEXT, content_of

from plainformer.page.bundle import bundle
from plainformer.tokenizer import SpecialTokens, train_character

SINGLE = {name: sizes for name, sizes in MODELS.items() if "labels" not in sizes and "mlm_transform" not in sizes}


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
