"""A small model of each kind that a page can show, with random weights, and the same one in the library."""

from dataclasses import replace
from functools import cache
from typing import Any

from plainformer.decode.load import USERS, settings_of
from plainformer.folder import ModelFolder
from plainformer.page.bundle import Bundle, bundle, rounded
from plainformer.tokenizer import SpecialTokens, Tokenizer, train_bpe, train_character, train_word
from random_models import content_of

WORDS = ["a", "red", "fox", "saw", "the", "lazy", "dog", "near", "an", "old", "oak"]
PHONE, DESKTOP = (380, 760), (1280, 900)  # windows, in pixels
HINDI = "मुझे पिज़्ज़ा पसंद है"
ARABIC = "أحب البيتزا كثيرا"
SPECIAL = SpecialTokens(mask="<mask>")
# Predictions are far from uniform; of the translations of `TEXTS` some end, and some are cut.
SHARPNESS = dict.fromkeys(("writer", "BPE writer", "filler", "classifier"), 2.0) | {"translator": 1.0}

SIZES: dict[str, dict[str, Any]] = {
    "translator": {"d_model": 28, "d_ff": 36, "heads": 4, "encoder_layers": 1, "decoder_layers": 2},
    "writer": {"d_model": 32, "d_ff": 28, "heads": 4, "kv_heads": 2, "layers": 2, "context": 24, "position": "rotary"},
    "BPE writer": {"d_model": 30, "d_ff": 46, "heads": 6, "layers": 3, "context": 256},
    "filler": {
        "d_model": 16,
        "d_ff": 54,
        "heads": 4,
        "layers": 2,
        "context": 62,
        "embedding_norm": True,
        "mlm_transform": True,
        "add_cls_sep": True,
    },
    "classifier": {"d_model": 36, "d_ff": 38, "heads": 3, "layers": 2, "context": 56, "labels": ("sky", "sea")},
}
KINDS = tuple(SIZES)

TEXTS = {
    "translator": "the lazy dog saw a fox",
    "writer": "the old oak",
    "BPE writer": "the old oak near a fox",
    "filler": "the lazy <mask> saw a fox",
    "classifier": "the lazy dog saw a fox",
}
"""What each page opens with."""


def _tokenizer(kind: str) -> Tokenizer:
    text = " ".join(WORDS)
    if kind in ("BPE writer", "filler"):
        return train_bpe([f"{text} {HINDI} {ARABIC}"] * 3, 360, special=SPECIAL)
    if kind == "classifier":
        return train_word([text], 40)
    return train_character([text if kind == "writer" else f"{text} {HINDI} {ARABIC}"])


@cache
def content(kind: str) -> ModelFolder:
    """The model with its weights as they are after travelling, so that page and library have the same."""
    settings = {"max_margin": 9} if kind == "translator" else {}
    found = replace(content_of(SIZES[kind], _tokenizer(kind), sharpness=SHARPNESS[kind]), generation=settings)
    return replace(found, model=rounded(found.model, "float16"))


@cache
def carried(kind: str) -> Bundle:
    return bundle(content(kind), settings_of(content(kind)))


@cache
def user(kind: str) -> Any:
    """What uses the model in the library: a `Translator`, a `TextGenerator`, a `MaskFiller`, a `TextClassifier`."""
    return USERS[type(content(kind).model)].of(content(kind))
