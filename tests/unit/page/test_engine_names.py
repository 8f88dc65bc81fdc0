"""The engine reads like the library: its files, functions and classes have the library's names."""

import importlib
import re

import pytest

from plainformer.page.scripts import ENGINE

_EXPORT = re.compile(r"^export (?:function|class|const) (\w+)", re.MULTILINE)

# What the library leaves to JAX, has inside of a function, or has in a file that the engine has no other use for.
OWN: dict[str, set[str]] = {
    "equations/activations": {"activate", "normal_distribution"},
    "equations/attention": {"scaled_scores", "weighted_values"},
    "equations/linear": {"dot", "matmul", "matmul_transposed"},
    "equations/masks": {"ancestor_mask"},
    "equations/rope_scaling": {"scaled_rate"},
    "nn/attention": {"upto"},
    "nn/embedding": {"OutputProjection"},
    "models/config": {"epsilon", "key_width", "position_limit", "stacks", "value_width"},
    "models/build": {"make_decoder_layers"},
    "models/transformer": {"finished", "summed"},
    "decode/beam": {"extend_by"},
    "decode/sampling": {"what_is_kept"},
    "decode/settings": {"PENALTIES", "bound", "is_full", "length_weights"},
    "decode/texts": {"encode_text", "unknown_characters"},
}
# Files that the library's tokenizers or JAX stand for.
ALONE = {"equations/softmax", "decode/generate", "decode/random"} | {
    f"tokenizer/{name}" for name in ("bytes", "decoders", "models", "normalizers", "pre_tokenizers", "regex")
}
FILES = sorted(path.relative_to(ENGINE).with_suffix("").as_posix() for path in ENGINE.glob("*/*.js"))


@pytest.mark.parametrize("name", [name for name in FILES if name not in ALONE])
def test_a_file_of_the_engine_has_the_names_of_the_library_s(name: str) -> None:
    module = importlib.import_module(f"plainformer.{name.replace('/', '.')}")
    exported = set(_EXPORT.findall((ENGINE / f"{name}.js").read_text(encoding="utf-8")))
    assert exported
    assert {one for one in exported if not hasattr(module, one)} == OWN.get(name, set())


def test_no_exception_is_left_over() -> None:
    assert set(OWN) | ALONE <= set(FILES)
