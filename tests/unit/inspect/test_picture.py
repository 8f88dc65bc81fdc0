"""The drawing of a model's parts: every parameter is in one of its boxes, and it is an SVG."""

from pathlib import Path
from xml.etree import ElementTree

import pytest

from plainformer.inspect.count import count
from plainformer.inspect.picture import _columns, drawing
from plainformer.models import PRESETS, EncoderConfig, TransformerConfig

CONFIGS = {
    **{name: PRESETS[name].make(None) for name in ("paper-base", "gpt2", "tiny")},
    "untied": TransformerConfig(30, 40, d_model=8, d_ff=9, heads=2, tie="none", position="learned", output_bias=True),
    "bert": EncoderConfig(
        vocab=30, context=8, token_types=2, embedding_norm=True, mlm_transform=True, output_bias=True
    ),
    "classifier": EncoderConfig(vocab=30, context=8, labels=("a", "<b>"), pooling="first", norm="rms", layers=3),
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_parameter_is_in_a_box(name: str) -> None:
    boxes = [box for _, column in _columns(CONFIGS[name]) for box in column]
    assert sum(box.parameters for box in boxes) == count(CONFIGS[name])
    for box in boxes:
        assert sum(inner.parameters for inner in box.inner) * box.times == (box.parameters if box.inner else 0)
    root = ElementTree.fromstring(drawing(CONFIGS[name]))
    said = [text.text for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert said[0] == f"{count(CONFIGS[name]):,} parameters"
    assert len([text for text in said if text == "memory"]) == isinstance(CONFIGS[name], TransformerConfig)


def test_the_drawing_of_the_pages_is_that_of_the_paper() -> None:
    kept = Path(__file__).parents[3] / "docs" / "figures" / "paper-base.svg"
    assert kept.read_text(encoding="utf-8") == drawing(CONFIGS["paper-base"]), "plainformer info paper-base --picture"
