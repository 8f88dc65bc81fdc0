"""Beam search of a GPT-2 and of a Llama gives the ids of the Hugging Face library's `generate`.

Not compared: repeated n-grams and the penalty of repetition, which count the prompt there, and here what is written.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import side_by_side
import torch
from transformers import GenerationConfig, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from plainformer.decode import GenerationSettings, best_continuations
from plainformer.models import LanguageModel

EOS, MOST = 2, 12
VOCAB: dict[str, Any] = {"vocab_size": 23, "bos_token_id": 1, "eos_token_id": EOS, "pad_token_id": 0}
SIZES: dict[str, Any] = {"max_position_embeddings": 40, "num_hidden_layers": 2, "tie_word_embeddings": False}
LLAMA: dict[str, Any] = {"hidden_size": 24, "intermediate_size": 31, "num_attention_heads": 4, "num_key_value_heads": 2}
MODELS = {
    "gpt2": lambda: GPT2LMHeadModel(GPT2Config(**VOCAB, **SIZES, n_embd=18, n_head=3)),
    "llama": lambda: LlamaForCausalLM(LlamaConfig(**VOCAB, **SIZES, **LLAMA)),
}
# Their settings, and ours. A least number of new tokens does not count the end there, and does here.
SEARCHES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "beam 4": ({"num_beams": 4}, {"beam_size": 4, "early_stopping": "heuristic"}),
    "the 4 best, short ones preferred": (
        {"num_beams": 4, "num_return_sequences": 4, "length_penalty": 0.3},
        {"beam_size": 4, "n_best": 4, "alpha": 0.3, "early_stopping": "heuristic"},
    ),
    "the 3 best of 5, not before 5, never early": (
        {"num_beams": 5, "num_return_sequences": 3, "length_penalty": 2.0, "early_stopping": "never"}
        | {"min_new_tokens": 4},
        {"beam_size": 5, "n_best": 3, "alpha": 2.0, "min_tokens": 5},
    ),
    "beam 4, the first that end": (
        {"num_beams": 4, "early_stopping": True, "num_return_sequences": 2},
        {"beam_size": 4, "n_best": 2, "early_stopping": "first"},
    ),
}


@pytest.fixture(scope="module", params=list(MODELS))
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, LanguageModel]:
    theirs = side_by_side.drawn(MODELS[request.param](), seed=3)
    with torch.no_grad():
        theirs.lm_head.weight[EOS] *= 2.5  # so that ends are often likely, and often not at all
    folder: Path = side_by_side.saved(theirs, tmp_path_factory.mktemp(request.param))
    return theirs, side_by_side.loaded(folder)


def prompts_of(length: int) -> list[list[int]]:
    """Without special tokens, which generate would take for padding or an end."""
    return np.random.default_rng(length).integers(3, VOCAB["vocab_size"], (10, length)).tolist()


def theirs_found(model: Any, prompts: list[list[int]], settings: dict[str, Any]) -> list[list[list[int]]]:
    """What `generate` adds to each prompt, best first, without the end."""
    how = GenerationConfig(**settings, max_new_tokens=MOST, eos_token_id=EOS, pad_token_id=0, do_sample=False)
    with torch.no_grad():
        said = model.generate(
            torch.tensor(prompts),
            attention_mask=torch.ones(len(prompts), len(prompts[0])).long(),
            generation_config=how,
        ).tolist()
    added = [row[len(prompts[0]) :] for row in said]
    ended = [row[: row.index(EOS)] if EOS in row else row for row in added]
    each = settings.get("num_return_sequences", 1)
    return [ended[at : at + each] for at in range(0, len(ended), each)]


@pytest.mark.parametrize("name", SEARCHES)
def test_the_ids_are_those_of_generate(models: tuple[Any, LanguageModel], name: str) -> None:
    theirs, ours = models
    their_settings, our_settings = SEARCHES[name]
    how = GenerationSettings(**{"length_penalty": "average", "alpha": 1.0, "beam": "full"} | our_settings)
    lengths: set[int] = set()
    for length in (1, 2, 5, 9, 13):
        prompts = prompts_of(length)
        expected = theirs_found(theirs, prompts, their_settings)
        found = [best_continuations(ours, prompt, how, max_tokens=MOST, eos=EOS) for prompt in prompts]
        assert [[list(one.ids) for one in hypotheses] for hypotheses in found] == expected
        lengths |= {len(ids) for hypotheses in expected for ids in hypotheses}
    assert len(lengths) > 2, "all are of one length"
