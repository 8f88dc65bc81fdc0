"""The engine's models against the library's, on the same rounded weights: logits, traces, cached decoding."""

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.equations.rope_scaling import RopeScaling
from plainformer.nn.trace import traced
from plainformer.page.bundle import bundle, rounded
from plainformer.tokenizer import SpecialTokens, Tokenizer, train_character
from random_models import content_of

CLOSE = 1e-4  # of logits: float32 sums in another order, where the largest are some tens
TEXT = "the quick brown fox, and a lazy dog: über!"
LLAMA3 = RopeScaling(8.0, 1.0, 4.0, 16)

# Each option of the configurations, and their pairs, between them; sizes pairwise distinct.
MODELS: dict[str, dict[str, Any]] = {
    "the paper": {"d_model": 24, "d_ff": 40, "heads": 4, "encoder_layers": 2, "decoder_layers": 3},
    "pre-norm, RMSNorm, gated, nothing tied, no bias": {
        "d_model": 20,
        "d_ff": 36,
        "heads": 5,
        "encoder_layers": 3,
        "decoder_layers": 1,
        "norm": "rms",
        "norm_position": "pre",
        "gated": True,
        "activation": "silu",
        "bias": False,
        "tie": "none",
        "position": "learned",
        "max_len": 48,
        "scale_embeddings": False,
        "output_bias": True,
    },
    "Marian": {
        "d_model": 28,
        "d_ff": 44,
        "heads": 2,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "activation": "gelu",
        "sinusoidal_order": "half",
        "decoder_start": "zero",
        "output_bias": True,
        "tie": "source-target",
        "d_k": 6,
        "d_v": 10,
        "bias_in": "attention",
        "norm_eps": 0.01,
        "pad_vocab_to": 1,
    },
    "target and output tied": {
        "d_model": 18,
        "d_ff": 26,
        "heads": 3,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "norm": "rms",
        "norm_position": "post",
        "activation": "gelu_tanh",
        "tie": "target-output",
        "bias_in": "feed_forward",
        "gated": True,
        "d_v": 4,
        "pad_vocab_to": 7,
    },
    "GPT-2": {"d_model": 30, "d_ff": 46, "heads": 6, "layers": 3, "context": 64},
    "Llama": {
        "d_model": 32,
        "d_ff": 52,
        "heads": 8,
        "kv_heads": 2,
        "layers": 2,
        "context": 50,
        "norm": "rms",
        "position": "rotary",
        "rope_scaling": LLAMA3,
        "gated": True,
        "activation": "silu",
        "tie": False,
        "bias_in": "query_key_value",
        "rope_theta": 500.0,
    },
    "post-norm decoder": {
        "d_model": 22,
        "d_ff": 34,
        "heads": 2,
        "layers": 2,
        "context": 60,
        "norm_position": "post",
        "d_k": 8,
        "position": "sinusoidal",
        "scale_embeddings": True,
        "activation": "relu",
        "kv_heads": 1,
    },
    "BERT": {
        "d_model": 16,
        "d_ff": 54,
        "heads": 4,
        "layers": 2,
        "context": 62,
        "token_types": 2,
        "embedding_norm": True,
        "mlm_transform": True,
        "output_bias": True,
        "add_cls_sep": True,
    },
    "BERT's classifier": {
        "d_model": 40,
        "d_ff": 42,
        "heads": 2,
        "layers": 1,
        "context": 70,
        "labels": ("sky", "sea", "neither"),
        "pooling": "first",
        "norm_position": "pre",
        "position": "rotary",
        "rope_scaling": RopeScaling(2.0),
        "add_cls_sep": True,
        "kv_heads": 1,
        "activation": "gelu_tanh",
        "bias": False,
    },
    "a classifier by the mean": {
        "d_model": 36,
        "d_ff": 38,
        "heads": 3,
        "layers": 2,
        "context": 56,
        "labels": ("no", "yes"),
        "norm": "rms",
        "norm_position": "post",
        "position": "sinusoidal",
        "gated": True,
        "bias_in": "feed_forward",
    },
    "ALiBi": {
        "d_model": 42,
        "d_ff": 48,
        "heads": 6,
        "encoder_layers": 1,
        "decoder_layers": 2,
        "position": "alibi",
        "norm_position": "pre",
    },
    "ALiBi, keys shared": {"d_model": 50, "d_ff": 58, "heads": 10, "kv_heads": 5, "layers": 2, "position": "alibi"},
}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return train_character([TEXT], special=SpecialTokens(mask="<mask>"))


def numbers(array: dict[str, Any]) -> np.ndarray:
    """An array of the engine's, in which a number that is none is written out."""
    return np.array([float(one) for one in array["data"]]).reshape(array["shape"])


def called(model: Any, source: list[int], target: list[int]) -> tuple[np.ndarray, dict[str, Any]]:
    """The logits of one text, and the library's trace of it."""
    ids, valid = jnp.array([source], jnp.int32), jnp.ones((1, len(source)), bool)
    kind = type(model).__name__
    arguments = {
        "Transformer": (ids, valid, jnp.array([target], jnp.int32)),
        "LanguageModel": (ids,),
    }.get(kind, (ids, valid))
    logits, seen = eqx.filter_jit(traced(model))(*arguments)
    return np.asarray(logits[0] if logits.ndim == 3 else logits), seen


@pytest.mark.parametrize(("name", "dtype"), [*((name, "float16") for name in MODELS), ("GPT-2", "int8")])
def test_logits_and_traces_are_the_library_s(name: str, dtype: Any, tokenizer: Tokenizer, ask) -> None:
    content = content_of(MODELS[name], tokenizer)
    target = tokenizer.encode(TEXT[::-1][:17])
    asked = {"text": TEXT, "target": target}
    passed, arrays = ask(bundle(content, {}, dtype), ("forward", asked), ("arrays", {}))
    source, read = ([one["id"] for one in passed[side]] for side in ("source", "target"))
    logits, seen = called(rounded(content.model, dtype), source, read)
    found = numbers(arrays["logits"])
    assert found.shape == logits.shape
    real = np.isfinite(logits)
    assert (np.isfinite(found) == real).all()
    assert np.abs(found[real] - logits[real]).max() < CLOSE
    assert np.abs(logits[real]).max() > 0.5
    for one, array in seen.items():
        assert np.abs(numbers(arrays[one]) - np.asarray(array[0])).max() < CLOSE, one
