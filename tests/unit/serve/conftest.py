"""Small random models, far from uniform, and an engine around them."""

import asyncio
import dataclasses
from collections.abc import Callable, Coroutine
from typing import Any

import equinox as eqx
import jax
import pytest
from served import WORDS

from plainformer.decode import GenerationSettings, SamplingSettings, TextGenerator
from plainformer.decode.translator import Translator
from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.quantize.linear import Precision
from plainformer.serve import Engine, Limits, serving
from plainformer.tokenizer import train_bpe, train_word

SMALL = Limits(waiting=64, hypotheses=6)


def larger(tree: Any) -> Any:
    """Weights twice as large as at the start, so that predictions are far from uniform and from each other."""
    return jax.tree.map(lambda leaf: 2.0 * leaf if eqx.is_inexact_array(leaf) else leaf, tree)


@pytest.fixture(scope="session")
def make_translator() -> Callable[..., Translator]:
    def make(weights: Precision = "float32", d_model: int = 12) -> Translator:
        tokenizer = train_word([WORDS], 13)
        config = TransformerConfig(
            source_vocab=13, target_vocab=13, d_model=d_model, d_ff=20, heads=2, encoder_layers=1, decoder_layers=2,
            tie="none", pad_vocab_to=1,
        )  # fmt: skip
        model = eqx.filter_jit(lambda key: larger(Transformer(config, key=key)))(jax.random.key(11))
        settings = GenerationSettings(beam_size=3, n_best=2, max_margin=3, max_ratio=2.0, no_repeat_ngram=2)
        return Translator(model, tokenizer, tokenizer, settings, weights)

    return make


@pytest.fixture(scope="session")
def translator(make_translator: Callable[..., Translator]) -> Translator:
    return make_translator()


@pytest.fixture(scope="session")
def make_writer() -> Callable[..., TextGenerator]:
    """Words, letters and bytes, which may spell characters or not; texts outgrow the context."""

    def make(**changes: Any) -> TextGenerator:
        tokenizer = train_bpe(["the moon and the sun", "a man, a cat\n", "über 10 Nächte — नमस्ते"], 330)
        sizes: dict[str, Any] = {"d_model": 12, "d_ff": 23, "heads": 2, "layers": 2, "context": 70, "pad_vocab_to": 64}
        config = LanguageModelConfig(vocab=tokenizer.vocab_size, **sizes | changes)
        model = eqx.filter_jit(lambda key: larger(LanguageModel(config, key=key)))(jax.random.key(3))
        return TextGenerator(model, tokenizer, SamplingSettings(max_tokens=20, seed=1))

    return make


@pytest.fixture(scope="session")
def writer(make_writer: Callable[..., TextGenerator]) -> TextGenerator:
    return make_writer()


@pytest.fixture(scope="session")
def serve() -> Callable[..., Any]:
    """`serve(model, work)`: what the coroutine `work(engine)` gives."""

    def run(model: Any, work: Callable[[Engine], Coroutine[Any, Any, Any]], **limits: Any) -> Any:
        async def within() -> Any:
            async with serving(model, dataclasses.replace(SMALL, **limits)) as engine:
                return await work(engine)

        return asyncio.run(within())

    return run
