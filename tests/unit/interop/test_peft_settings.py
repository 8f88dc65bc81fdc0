"""What the settings of an adapter of PEFT's say: done, passed over, or refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from plainformer.errors import InputError
from plainformer.interop.peft import Lora, read_lora

USUAL: dict[str, Any] = {
    "peft_type": "LORA",
    "base_model_name_or_path": "somewhere",
    "r": 4,
    "lora_alpha": 6,
    "lora_dropout": 0.1,
    "target_modules": ["query", "value"],
    "modules_to_save": None,
    "bias": "none",
    "fan_in_fan_out": False,
    "init_lora_weights": True,
    "megatron_core": "megatron.core",
    "loftq_config": {},
    "use_dora": False,
}


def read(folder: Path, **changes: Any) -> Lora:
    (folder / "adapter_config.json").write_text(json.dumps(USUAL | changes))
    return read_lora(folder)


def test_scales_follow_the_patterns(tmp_path: Path) -> None:
    """By hand: alpha / r, with rslora alpha / √r; a pattern is the end of a name, from a dot on."""
    assert read(tmp_path).scale_of("layer.0.query") == 1.5
    assert read(tmp_path, use_rslora=True).scale_of("layer.0.query") == 3.0
    lora = read(tmp_path, rank_pattern={"0.query": 8}, alpha_pattern={"query": 16, "value": 2})
    assert [lora.rank_of(name) for name in ("layer.0.query", "layer.10.query", "a.value")] == [8, 4, 4]
    assert [lora.scale_of(name) for name in ("layer.0.query", "layer.10.query", "a.value")] == [2.0, 4.0, 0.5]
    assert read(tmp_path, alpha_pattern={r".*\.[01]\.query": 12}).scale_of("layer.1.query") == 3.0


def test_targets_are_known_where_no_other_setting_takes_some_away(tmp_path: Path) -> None:
    assert read(tmp_path).targets == ("query", "value")
    for changes in ({"target_modules": ".*query"}, {"layers_to_transform": 0}, {"exclude_modules": ["a"]}):
        assert read(tmp_path, **changes).targets == ()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peft_type": "IA3"}, "peft_type is 'IA3', and known is LORA"),
        ({"peft_type": None}, "peft_type is None, and known is LORA"),
        ({"lora_bias": True}, "lora_bias is True, which no part of plainformer does"),
        ({"layer_replication": [[0, 2]]}, "layer_replication is [[0, 2]], which no part"),
        ({"target_parameters": ["experts.w"]}, "target_parameters is ['experts.w'], which no part"),
        ({"trainable_token_indices": [3]}, "trainable_token_indices is [3], which no part"),
        ({"alora_invocation_tokens": [1, 2]}, "alora_invocation_tokens is [1, 2], which no part"),
        (
            {"use_qalora": True, "use_bdlora": {"a": 1}},
            "use_bdlora is {'a': 1}, which no part of plainformer does; use_q",
        ),
        ({"of_next_year": 1}, "of_next_year is 1, which no part of plainformer does"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights is 'pissa', which changes the weights of the base"),
        ({"task_type": "TOKEN_CLS"}, "task_type is 'TOKEN_CLS', and known are CAUSAL_LM"),
        ({"bias": "some"}, "bias is 'some', and known are none, all, lora_only"),
        ({"r": 0}, "r is 0 and lora_alpha 6: r must be at least 1"),
        ({"r": "4"}, "r is '4' and must be of type int"),
        ({"lora_alpha": float("nan")}, "lora_alpha nan: r must be at least 1, and lora_alpha finite"),
        ({"lora_alpha": 1e39}, "lora_alpha 1e+39: r must be at least 1, and lora_alpha finite"),
        ({"alpha_pattern": {"query": 1e39}}, "alpha_pattern has 1e+39 for 'query'"),
        ({"rank_pattern": {"query": 0}}, "rank_pattern has 0 for 'query'"),
        ({"alpha_pattern": {"(": 1.0}}, "alpha_pattern must be an object of numbers, by patterns of names"),
        ({"target_modules": 7}, "target_modules must be a list of names, or a pattern"),
        ({"modules_to_save": [7]}, "modules_to_save must be a list of names"),
        ({"of_next_year": "a" * 5000}, f"of_next_year is '{'a' * 56}..., which"),
    ],
)
def test_what_no_part_does_is_refused_by_name(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, **changes)
    assert said in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'adapter_config.json'}: ")
    assert str(caught.value).endswith("; merge it with PEFT (merge_and_unload), and save the whole model")


def test_alpha_is_any_number_of_32_bits(tmp_path: Path) -> None:
    """As in an adapter of ours."""
    assert read(tmp_path, lora_alpha=3.4e38, alpha_pattern={"query": -3.4e38}).alpha == 3.4e38


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read(tmp_path, lora_bias=True, bias=3, task_type="QUESTION_ANS")
    assert all(name in caught.value.what for name in ("lora_bias", "bias is 3", "QUESTION_ANS"))
