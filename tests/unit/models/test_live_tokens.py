"""Tokens that nobody wants, beside others, in a step of decoding with a cache."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.nn.cache import next_slots
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare

VOCAB, BATCH, PLACES = 40, 4, 12
LIKE_LLAMA: dict[str, Any] = {
    "position": "rotary",
    "norm": "rms",
    "norm_position": "pre",
    "activation": "silu",
    "gated": True,
    "kv_heads": 2,
    "bias": False,
}


def started(kind: str, precision: Precision) -> tuple[Any, Any]:
    shape: dict[str, Any] = {"d_model": 32, "heads": 4, "d_ff": 48}
    if kind != "translator":
        shape |= {"language model": {}, "one like Llama": LIKE_LLAMA, "one with ALiBi": {"position": "alibi"}}[kind]
        model = LanguageModel(
            LanguageModelConfig(vocab=VOCAB, layers=2, context=PLACES, **shape), key=jax.random.key(0)
        )
        decoder = prepare(model, precision)
        return decoder, decoder.start(BATCH, PLACES)
    config = TransformerConfig(source_vocab=VOCAB, target_vocab=VOCAB, encoder_layers=2, decoder_layers=2, **shape)
    decoder = prepare(Transformer(config, key=jax.random.key(0)), precision)
    source = jnp.asarray(np.random.default_rng(1).integers(4, VOCAB, (BATCH, 7)))
    valid = jnp.arange(7)[None, :] < jnp.array([7, 5, 2, 6])[:, None]
    return decoder, decoder.start(decoder.encode(source, valid), valid, PLACES)


@pytest.mark.parametrize("kind", ["translator", "language model", "one like Llama", "one with ALiBi"])
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8", "w8a8"])
def test_the_others_find_what_they_would_without_and_nothing_is_kept_of_them(kind: str, precision: Precision) -> None:
    """One sequence is live, one only at first, one never, one in every other token. Logits of the rest are NaN."""
    decoder, plain = started(kind, precision)
    state, extend = plain, eqx.filter_jit(lambda ids, state, at: decoder.extend(ids, state, at))
    for step in range(3):
        ids = jnp.asarray(np.random.default_rng(step).integers(4, VOCAB, (BATCH, 2)))
        live = np.array([[True, True], [step == 0, step == 0], [False, False], [True, False]])
        at = next_slots(jnp.int32(2 * step), 2, PLACES)
        expected, plain = extend(ids, plain, at)
        found, state = extend(ids, state, at._replace(active=jnp.asarray(live)))
        whole = [0, 1] if step == 0 else [0]
        np.testing.assert_allclose(found[np.array(whole), :, :VOCAB], expected[np.array(whole), :, :VOCAB], rtol=1e-5)
        assert np.isnan(np.asarray(found)[~live][:, :VOCAB]).all()
        assert np.isfinite(np.asarray(found)[live][:, :VOCAB]).all()
        assert all(np.isfinite(np.asarray(leaf, np.float32)).all() for leaf in jax.tree.leaves(state.caches))
