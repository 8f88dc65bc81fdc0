"""Public functions and methods are given what they do not take, and each time that does not end in one InputError a
line is printed. In a process of its own: under test, a type checker would refuse it first.

Run as `python wrong_types.py FOLDER`, a folder of small models by kind.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

import plainformer
from plainformer import (
    EncoderConfig,
    GenerationSettings,
    LanguageModelConfig,
    SamplingSettings,
    TextGenerator,
    TransformerConfig,
)
from plainformer.errors import InputError

NO_TEXTS = [None, True, 3, 2.5, b"a", "a", {"a": 1}, {"a"}, object(), np.array([["a"]])]
WRONG_INSIDE = [[None], ["a", None], [1], [b"a"], [["a"]], [("a",)], np.array([1]), [float("nan")]]
NO_NUMBER = ["3", 1.5, True, [3], b"3", -1, float("nan")]
NO_PATHS = [None, "", b"a", 3, ["a"], "a\0b", "a" * 5000]

tried = 0


def refused(call: Any, *arguments: Any, **named: Any) -> None:
    global tried
    tried += 1
    name = getattr(call, "__qualname__", repr(call))
    try:
        call(*arguments, **named)
    except InputError as error:
        if len(str(error)) < 250 and "\n" not in str(error):
            return
        print(f"{name}: not one line: {str(error)[:300]}")
    except BaseException as error:
        print(f"{name}: {arguments!r:.80} {named!r:.80}: {type(error).__name__}: {error!s:.80}")
    else:
        print(f"{name}: {arguments!r:.80} {named!r:.80}: taken")


def texts(loaded: dict[str, Any]) -> None:
    translator, writer = loaded["translator"], loaded["character"]
    reader, labeller, tokenizer = loaded["masked"], loaded["classifier"], writer.tokenizer
    for wrong in (*NO_TEXTS, *WRONG_INSIDE):
        for method in (
            *(translator.translate, translator.translate_n_best, writer.generate, writer.search, writer.score),
            *(reader.fill, reader.embed, labeller.classify, labeller.logprobs, labeller.embed, tokenizer.encode_batch),
            *(lambda texts: list(translator.stream(texts)), lambda texts: translator.check_lengths(texts, ["x"], 9)),
            *(lambda texts: translator.score(texts, ["a"]), lambda texts: translator.score(["a"], texts)),
        ):
            refused(method, wrong)
        if wrong is not None:
            refused(writer.score, ["a man"], where=wrong)
        if not isinstance(wrong, str):
            refused(lambda prompt: next(writer.stream(prompt)), wrong)
            refused(lambda stop: next(writer.stream_samples("a", stop=stop)), wrong)
            for name in ("encode", "encode_inside", "unknown_pieces", "unknown_characters", "id", "special_id"):
                refused(getattr(tokenizer, name), wrong)


def numbers(loaded: dict[str, Any]) -> None:
    writer, translator = loaded["character"], loaded["translator"]
    for wrong in NO_NUMBER:
        refused(writer.generate, ["a"], samples=wrong)
        refused(writer.generate, ["a"], max_tokens=wrong)
        refused(writer.search, ["a"], max_tokens=wrong)
        refused(loaded["masked"].fill, ["a <mask>"], top=wrong)
        refused(lambda batch: next(translator.stream(["a"], batch=batch)), wrong)
        refused(translator.translate, ["a"], beam_size=wrong)
        refused(writer.tokenizer.token, wrong)
        refused(writer.tokenizer.decode, [wrong])
        refused(writer.tokenizer.decode_batch, [[wrong]])


def settings_and_shapes() -> None:
    for name in GenerationSettings.__dataclass_fields__:
        for value in ([], object(), "4x", {}):
            refused(GenerationSettings, **{name: value})
    for name in SamplingSettings.__dataclass_fields__:
        refused(SamplingSettings, **{name: "1"})
    shapes: dict[Any, dict[str, int]] = {
        TransformerConfig: {"source_vocab": 8, "target_vocab": 8},
        LanguageModelConfig: {"vocab": 8},
        EncoderConfig: {"vocab": 8},
    }
    for kind, needed in shapes.items():
        for name in ("d_model", "heads", "norm", "gated", "dropout", *needed):
            refused(kind, **{**needed, name: [1]})
    refused(EncoderConfig, vocab=8, labels=["a", "b"])


def paths_and_parts(loaded: dict[str, Any], folder: Path) -> None:
    demo, writer = plainformer.load_recipe("demo"), loaded["character"]
    for path in NO_PATHS:
        for call in (plainformer.load, plainformer.load_recipe, plainformer.Tokenizer.load):
            refused(call, path)
        refused(plainformer.run_recipe, demo, path)
    for recipe in (None, "demo", {}, 3):
        refused(plainformer.run_recipe, recipe, folder / "run")
    for overrides in ("train.steps=3", [None], 3, {"train.steps": 3}, [["train.steps=3"]]):
        refused(plainformer.load_recipe, "demo", overrides)
    refused(plainformer.run_recipe, demo, folder / "run", say="loudly")
    refused(plainformer.TranslationRecipe, data=3, train={"steps": "1"})
    refused(loaded["translator"].translate_n_best, ["a"], progress=3)
    refused(writer.generate, ["a"], on_slide=3)
    refused(loaded["masked"].embed, ["a"], on_cut=3)
    refused(loaded["masked"].fill, ["a <mask>"], on_cut="x")
    refused(loaded["classifier"].classify, ["a"], on_cut=3)
    refused(plainformer.load, folder / "character", say=3)
    refused(TextGenerator, loaded["translator"].model, writer.tokenizer)
    refused(TextGenerator, writer.model, None)
    refused(plainformer.load, "x", weights=[8])


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    loaded = {name: plainformer.load(folder / name) for name in ("translator", "character", "masked", "classifier")}
    texts(loaded)
    numbers(loaded)
    settings_and_shapes()
    paths_and_parts(loaded, folder)
    print(f"{tried} tried")
