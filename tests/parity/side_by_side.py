"""A model of the Hugging Face library beside ours: the same folder, the same ids, every number compared."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
import torch
from safetensors.torch import save_file

from plainformer.decode.sampling_loop import continuations
from plainformer.decode.settings import SamplingSettings
from plainformer.folder import load_folder, named_parameters, read_config
from plainformer.interop.families import FAMILIES
from plainformer.interop.family import Family
from plainformer.interop.reading import load_model
from plainformer.interop.weight_map import pairs_of
from plainformer.models import LanguageModel
from plainformer.nn.trace import traced
from plainformer.tokenizer.word import train_word

# float32 sums in another order; the states are some 1 to 10 in size.
CLOSE = 1e-4
# Of the largest number of a gradient; those are sums over all tokens.
CLOSE_GRADIENT = 1e-3

# Of a small model, as BERT and Llama both name them; no two are equal.
SIZES: dict[str, Any] = {
    "vocab_size": 31,
    "max_position_embeddings": 17,
    "hidden_size": 12,
    "intermediate_size": 23,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
}

Numbers = Mapping[str, np.ndarray]


def drawn(model: Any, seed: int) -> Any:
    """The model with weights that make a difference: its own are so small that its logits hardly differ."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if not weight.requires_grad:  # sines and cosines
                continue
            noise = torch.randn(weight.shape, generator=generator)
            is_scale = weight.ndim == 1 and name.endswith("weight")
            weight.copy_(1.0 + 0.3 * noise if is_scale else 0.25 * noise)
    return model.eval()


def saved(model: Any, folder: Path, **how: Any) -> Path:
    """The model's folder, with a tokenizer of words, of which it has one for every id or fewer."""
    model.save_pretrained(folder, **how)
    words = [f"w{number}" for number in range(min(model.config.vocab_size, 90) - 4)]
    train_word(words, 90).save(folder / "tokenizer.json")
    return folder


def save_torch(weights: Mapping[str, Any], path: Path) -> None:
    """Write PyTorch's arrays as safetensors."""
    save_file({name: array.contiguous() for name, array in weights.items()}, path, metadata={"format": "pt"})


def loaded(folder: Path) -> LanguageModel:
    return cast(LanguageModel, load_folder(folder).model)


def read(family: Family, folder: Path) -> Any:
    """Ours from a folder that has settings and weights alone."""
    config: Any = family.config_from(json.loads((folder / "config.json").read_text()), "config.json")
    return load_model(family, config, folder)


def drawn_ids(vocab: int, batch: int, length: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, vocab, (batch, length))


def valid_of(length: int) -> np.ndarray:
    """What is real of three texts: all of the first, half of the second, one token of the third."""
    return np.arange(length)[None, :] < np.array([[length], [length // 2], [1]])


def close(found: Any, expected: Any, what: str) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE, err_msg=what)


def assert_equal_states(theirs: Any, ours: LanguageModel, ids: np.ndarray) -> None:
    """Logits, and what every layer gives."""
    with torch.no_grad():
        said = theirs(torch.tensor(ids), output_hidden_states=True)
    logits, seen = jax.jit(traced(ours))(jnp.asarray(ids))
    # The last one of theirs has been through the final norm, which the logits show.
    for layer, state in enumerate(said.hidden_states[1:-1]):
        close(seen[f"{layer}/output"], state.numpy(), f"layer {layer}")
    assert len(said.hidden_states) == len(ours.layers) + 1
    assert said.logits.abs().max() > 1.0, "the logits are too small to differ"
    close(logits, said.logits.numpy(), "logits")


def assert_equal_gradients(theirs: Any, ours: LanguageModel, ids: np.ndarray) -> None:
    """Of the mean cross-entropy of the next tokens, in every weight, named as theirs."""
    theirs.zero_grad()
    theirs(torch.tensor(ids), labels=torch.tensor(ids)).loss.backward()

    def loss(model: LanguageModel) -> jax.Array:
        logprobs = jax.nn.log_softmax(model(jnp.asarray(ids))[:, :-1])
        return -jnp.take_along_axis(logprobs, jnp.asarray(ids)[:, 1:, None], axis=-1).mean()

    gradients = {name: np.asarray(leaf) for name, leaf in named_parameters(jax.jit(jax.grad(loss))(ours)).items()}
    assert_equal_by_name({name: weight.grad.numpy() for name, weight in theirs.named_parameters()}, gradients, ours)


def assert_all_is_equal(theirs: Any, folder: Path) -> None:
    """Logits, states and gradients of texts that fill the context; and their settings, which ours become again."""
    saved(theirs, folder)
    ours = loaded(folder)
    ids = drawn_ids(theirs.config.vocab_size, 3, theirs.config.max_position_embeddings, seed=5)
    assert_equal_states(theirs, ours, ids)
    assert_equal_gradients(theirs, ours, ids)
    assert_config_returns(folder)


def assert_equal_by_name(
    theirs: Mapping[str, np.ndarray], ours: Mapping[str, np.ndarray], model: LanguageModel
) -> None:
    pairs = pairs_of(family_of(model), model.config)
    assert {pair.theirs for pair in pairs} == set(theirs)
    for pair in pairs:
        expected = theirs[pair.theirs]
        limit = CLOSE_GRADIENT * np.abs(expected).max()
        np.testing.assert_allclose(pair.write(ours), expected, rtol=0, atol=limit, err_msg=pair.theirs)


def assert_equal_greedy_ids(theirs: Any, ours: LanguageModel) -> None:
    """50 prompts of 1 to 9 tokens, 20 tokens more of each."""
    vocab = theirs.config.vocab_size
    for length in range(1, 10):
        prompts = drawn_ids(vocab, 6 if length <= 5 else 5, length, seed=length)
        turns = continuations(ours, prompts.tolist(), SamplingSettings(temperature=0.0, max_tokens=20))
        written = [[id for part in parts for id in part] for parts in zip(*turns, strict=True)]
        with torch.no_grad():
            said = theirs.generate(
                torch.tensor(prompts),
                attention_mask=torch.ones(prompts.shape, dtype=torch.long),
                do_sample=False,
                max_new_tokens=20,
                eos_token_id=vocab,  # none
                pad_token_id=0,
            )
        assert written == said[:, length:].tolist()


def family_of(model: LanguageModel) -> Any:
    return next(family for family in FAMILIES.values() if not family.differences(model.config))


def assert_config_returns(folder: Path) -> None:
    """Our configuration as their settings, read again, is itself."""
    config, _ = read_config(folder)
    family = next(family for family in FAMILIES.values() if not family.differences(config))
    assert family.config_from(family.config_to(config), "again") == config
