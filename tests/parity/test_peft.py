"""LoRA adapters of PEFT: the same logits from the same two files, theirs read here and ours read there."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import torch
from peft import LoraConfig, PeftModel, get_peft_model
from side_by_side import CLOSE, SIZES, drawn, drawn_ids, saved
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from plainformer.adapter import Adapter, hash_of_model
from plainformer.errors import InputError
from plainformer.folder import ModelFolder, load_folder, read_config, save_folder
from plainformer.models import Classifier, LanguageModel, MaskedLanguageModel, Transformer
from plainformer.nn.lora import adapt, named_linears, named_pairs

# PEFT warns of tied weights, of Conv1D and of keys that it does not know.
pytestmark = pytest.mark.filterwarnings("ignore")

IDS = drawn_ids(SIZES["vocab_size"], 2, 9, seed=1)


def gpt2() -> Any:
    return drawn(GPT2LMHeadModel(GPT2Config(vocab_size=31, n_positions=17, n_embd=12, n_layer=2, n_head=3)), seed=0)


def llama(**settings: Any) -> Any:
    return drawn(LlamaForCausalLM(LlamaConfig(**SIZES | settings)), seed=0)


def qwen2() -> Any:
    return drawn(Qwen2ForCausalLM(Qwen2Config(**SIZES, num_key_value_heads=3)), seed=0)


def bert() -> Any:
    return drawn(BertForMaskedLM(BertConfig(**SIZES)), seed=0)


def asked(theirs: Any) -> np.ndarray:
    ids = torch.tensor(IDS)
    target = {"decoder_input_ids": ids} if theirs.config.is_encoder_decoder else {}
    with torch.no_grad():
        return theirs.eval()(input_ids=ids, **target).logits.numpy()


def said(ours: Any) -> np.ndarray:
    ids, valid = jnp.asarray(IDS), jnp.ones(IDS.shape, bool)
    more = {LanguageModel: (), Transformer: (valid, ids)}.get(type(ours), (valid,))
    return np.asarray(eqx.filter_jit(ours)(ids, *more))


def marian() -> Any:
    sizes: dict[str, Any] = {"d_model": 12, "encoder_layers": 1, "decoder_layers": 2, "max_position_embeddings": 17}
    sizes |= {f"{side}_attention_heads": 3 for side in ("encoder", "decoder")}
    sizes |= {f"{side}_ffn_dim": 20 for side in ("encoder", "decoder")}
    ends: dict[str, Any] = {"eos_token_id": 0, "pad_token_id": 30, "decoder_start_token_id": 30}
    return drawn(MarianMTModel(MarianConfig(vocab_size=31, **sizes, **ends)), seed=0)


def adapter_of(theirs: Any, folder: Path, **settings: Any) -> Any:
    """An adapter of theirs in `folder`, all of it drawn, and their model with it."""
    given: dict[str, Any] = {"r": 3, "lora_alpha": 5} | settings
    model: Any = get_peft_model(theirs, LoraConfig(**given))
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for weight in model.parameters():
            if weight.requires_grad:
                weight.add_(0.2 * torch.randn(weight.shape, generator=generator))
    model.save_pretrained(str(folder))
    return model


CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gpt2": (gpt2, {"target_modules": ["c_attn"], "fan_in_fan_out": True, "task_type": "CAUSAL_LM"}),
    "gpt2, all linear": (gpt2, {"target_modules": "all-linear"}),
    "gpt2, rslora, biases": (gpt2, {"target_modules": ["c_attn", "c_proj", "c_fc"], "bias": "all", "use_rslora": True}),
    "gpt2, dora, an output that was tied": (gpt2, {"target_modules": ["c_attn", "lm_head"], "use_dora": True}),
    "gpt2, patterns, an embedding": (
        gpt2,
        {
            "target_modules": ["c_attn", "wte"],
            "rank_pattern": {"c_attn": 4},
            "alpha_pattern": {"h.0.attn.c_attn": 9},
        },
    ),
    "gpt2, whole modules": (gpt2, {"target_modules": ["c_attn"], "modules_to_save": ["wte", "ln_f"]}),
    "llama": (llama, {"target_modules": ["q_proj", "v_proj", "down_proj", "lm_head"], "task_type": "CAUSAL_LM"}),
    "llama, tied, dora, one layer": (
        lambda: llama(tie_word_embeddings=True),
        {"target_modules": ["q_proj", "gate_proj"], "use_dora": True, "layers_to_transform": [1]},
    ),
    "qwen2": (qwen2, {"target_modules": ["k_proj", "v_proj", "o_proj"], "task_type": "CAUSAL_LM"}),
    "bert": (bert, {"target_modules": ["query", "value", "dense"], "bias": "lora_only"}),
    "bert, an output that was tied": (bert, {"target_modules": ["query", "decoder"]}),
    "marian": (marian, {"target_modules": ["q_proj", "v_proj", "fc2"], "task_type": "SEQ_2_SEQ_LM"}),
    "marian, an output that was tied": (marian, {"target_modules": ["k_proj", "lm_head"]}),
    "marian, a whole output": (marian, {"target_modules": ["out_proj"], "modules_to_save": ["lm_head"]}),
}


@pytest.mark.parametrize("name", CASES)
def test_theirs_gives_their_logits_here(name: str, tmp_path: Path) -> None:
    make, settings = CASES[name]
    before = make()
    saved(before, tmp_path / "base")
    with_adapter = adapter_of(type(before).from_pretrained(tmp_path / "base"), tmp_path / "adapter", **settings)
    expected = asked(with_adapter)
    assert np.abs(expected - asked(before)).max() > 0.1, "the adapter is too small to matter"
    np.testing.assert_allclose(said(load_folder(tmp_path / "adapter").model), expected, rtol=0, atol=CLOSE)


def test_a_classifier_of_theirs_is_made_of_its_base_here(tmp_path: Path) -> None:
    """Of a pretrained model: its pooler, the adapter's pairs, and an output that the base does not have."""
    saved(drawn(BertForPreTraining(BertConfig(**SIZES)), seed=0), tmp_path / "base")
    theirs = BertForSequenceClassification.from_pretrained(tmp_path / "base", num_labels=4)
    with_adapter = adapter_of(theirs, tmp_path / "adapter", target_modules=["query", "dense"], task_type="SEQ_CLS")
    ours = load_folder(tmp_path / "adapter").model
    assert isinstance(ours, Classifier)
    assert ours.config.labels == ("LABEL_0", "LABEL_1", "LABEL_2", "LABEL_3")
    np.testing.assert_allclose(said(ours), asked(with_adapter), rtol=0, atol=CLOSE)


def test_more_tokens_than_the_base_has(tmp_path: Path) -> None:
    """Their library then keeps the embeddings, which are the output too, in the adapter's file."""
    saved(gpt2(), tmp_path / "base")
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path / "base")
    theirs.resize_token_embeddings(37, mean_resizing=False)
    with_adapter = adapter_of(theirs, tmp_path / "adapter", target_modules=["c_attn"])
    ours: Any = load_folder(tmp_path / "adapter").model
    assert (ours.config.vocab, ours.config.tie) == (37, True)
    np.testing.assert_allclose(said(ours), asked(with_adapter), rtol=0, atol=CLOSE)


@pytest.mark.parametrize(
    ("make", "targets"),
    [
        (gpt2, ("query", "value", "feed_forward.inner")),
        (llama, ("query", "value", "gate", "output")),
        (qwen2, ("query", "value", "gate", "output")),
        (bert, ("query", "key", "outer", "transform.dense")),
    ],
    ids=["gpt2", "llama", "qwen2", "bert"],
)
def test_ours_gives_our_logits_there_and_here_again(make: Any, targets: tuple[str, ...], tmp_path: Path) -> None:
    """Pairs beside a checkpoint of theirs, as training leaves them. GPT-2's queries and values are one matrix there."""
    theirs, base = make(), tmp_path / "base"
    saved(theirs, base)
    content = load_folder(base)
    names = [name for name in named_linears(content.model) if name.endswith(targets)]
    model = adapt(content.model, names, rank=3, alpha=4.5, key=jax.random.key(2))
    drawn_pairs = [
        0.3 * jax.random.normal(jax.random.key(seed), pair.b.shape)
        for seed, pair in enumerate(named_pairs(model).values())
    ]
    model = eqx.tree_at(lambda whole: [pair.b for pair in named_pairs(whole).values()], model, drawn_pairs)
    adapter = Adapter(base, hash_of_model(base), 3, 4.5, tuple(names))
    tokenizers = content.source_tokenizer, content.target_tokenizer
    save_folder(ModelFolder(model, *tokenizers, adapter=adapter), tmp_path / "adapter")
    there = PeftModel.from_pretrained(type(theirs).from_pretrained(base), tmp_path / "adapter")
    expected = said(model)
    assert np.abs(expected - asked(theirs)).max() > 0.1
    np.testing.assert_allclose(asked(there), expected, rtol=0, atol=CLOSE)
    np.testing.assert_allclose(said(load_folder(tmp_path / "adapter").model), expected, rtol=0, atol=CLOSE)


@pytest.fixture(scope="module")
def peft(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, np.ndarray]:
    """A folder with `base` and `adapter`, and the logits of the two."""
    root = tmp_path_factory.mktemp("peft")
    saved(gpt2(), root / "base")
    theirs = GPT2LMHeadModel.from_pretrained(root / "base")
    return root, asked(adapter_of(theirs, root / "adapter", target_modules=["c_attn"]))


def renamed(adapter: Path, folder: Path, base: str | None) -> Path:
    """A copy of an adapter that says something else about its base."""
    shutil.copytree(adapter, folder)
    path = folder / "adapter_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"base_model_name_or_path": base}))
    return folder


def test_the_base_is_found_or_named_or_asked_for(
    peft: tuple[Path, np.ndarray], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, expected = peft
    monkeypatch.chdir(tmp_path)  # or a folder beside this one might be taken for the base
    beside = renamed(root / "adapter", tmp_path / "beside", "../base")
    shutil.copytree(root / "base", tmp_path / "base")
    np.testing.assert_allclose(said(load_folder(beside).model), expected, rtol=0, atol=CLOSE)
    far = renamed(root / "adapter", tmp_path / "far", "openai-community/gpt2")
    with pytest.raises(InputError) as caught:
        load_folder(far)
    assert str(caught.value) == (
        f"{far / 'adapter_config.json'}: the model that this adapter belongs to is 'openai-community/gpt2', and that "
        "is no folder here; name its folder (--base, in Python base=), or set base_model_name_or_path to where it is"
    )
    np.testing.assert_allclose(said(load_folder(far, root / "base").model), expected, rtol=0, atol=CLOSE)
    assert read_config(far, root / "base")[0] == read_config(root / "base")[0]
    with pytest.raises(InputError, match="base_model_name_or_path is missing, and the adapter alone is no model"):
        load_folder(renamed(root / "adapter", tmp_path / "none", None))
    with pytest.raises(InputError, match="this model has no adapter, and needs no base"):
        load_folder(root / "base", root / "base")


def test_beside_a_whole_model_it_belongs_to_that(peft: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    """As in their library; theirs or ours. It was passed over, once."""
    root, expected = peft
    both = renamed(root / "adapter", tmp_path / "theirs", "openai-community/gpt2")
    shutil.copytree(root / "base", both, dirs_exist_ok=True)
    np.testing.assert_allclose(said(load_folder(both).model), expected, rtol=0, atol=CLOSE)
    assert load_folder(both).about["imported from"] == "a LoRA adapter of PEFT's, added to theirs"
    ours = renamed(root / "adapter", tmp_path / "ours", "openai-community/gpt2")
    save_folder(load_folder(root / "base"), tmp_path / "imported")
    shutil.copytree(tmp_path / "imported", ours, dirs_exist_ok=True)
    np.testing.assert_allclose(said(load_folder(ours).model), expected, rtol=0, atol=CLOSE)


def test_its_base_may_be_ours_or_have_an_adapter_of_its_own(peft: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    root, expected = peft
    save_folder(load_folder(root / "base"), tmp_path / "imported")
    np.testing.assert_allclose(
        said(load_folder(root / "adapter", tmp_path / "imported").model), expected, rtol=0, atol=CLOSE
    )
    second = renamed(root / "adapter", tmp_path / "second", str(root / "adapter"))
    twice = PeftModel.from_pretrained(
        GPT2LMHeadModel.from_pretrained(root / "base"), root / "adapter"
    ).merge_and_unload()
    with_both = PeftModel.from_pretrained(twice, second)
    np.testing.assert_allclose(said(load_folder(second).model), asked(with_both), rtol=0, atol=CLOSE)
    assert hash_of_model(second) != hash_of_model(root / "adapter")
    with pytest.raises(InputError, match="made from the adapter itself"):
        load_folder(renamed(root / "adapter", tmp_path / "itself", str(tmp_path / "itself")))


def test_a_masked_model_is_still_one(tmp_path: Path) -> None:
    saved(bert(), tmp_path / "base")
    adapter_of(BertForMaskedLM.from_pretrained(tmp_path / "base"), tmp_path / "adapter", target_modules=["key"])
    assert isinstance(load_folder(tmp_path / "adapter").model, MaskedLanguageModel)


def test_what_does_not_go_together_is_said_at_once(peft: tuple[Path, np.ndarray], tmp_path: Path) -> None:
    from safetensors.numpy import load_file, save_file

    root, _ = peft
    folder = shutil.copytree(root / "adapter", tmp_path / "adapter")
    path = folder / "adapter_model.safetensors"
    arrays, layer = load_file(path), "base_model.model.transformer.h.0.attn"
    arrays[f"{layer}.c_mlp.lora_A.weight"] = arrays.pop(f"{layer}.c_attn.lora_A.weight")
    arrays["base_model.model.transformer.h.1.attn.c_attn.lora_B.weight"] = np.zeros((36, 2), np.float32)
    save_file(arrays, path)
    with pytest.raises(InputError) as caught:
        load_folder(folder)
    assert str(caught.value).startswith(f"{path}: the pairs do not go with adapter_config.json and the base: ")
    for said_of_it in (
        "transformer.h.0.attn.c_attn.lora_A is missing",
        "transformer.h.0.attn.c_mlp.lora_A is unexpected",
        "transformer.h.1.attn.c_attn.lora_B has shape (36, 2), not (36, 3)",
    ):
        assert said_of_it in caught.value.what
    arrays = {name: array * np.float32(np.nan) for name, array in load_file(root / "adapter" / path.name).items()}
    save_file(arrays, path)
    with pytest.raises(InputError, match="4 of 4 weights hold numbers that are not finite"):
        load_folder(folder)
