"""LoRA pairs of ours as PEFT has them, beside a model of theirs: its names, and one pair where theirs is one matrix."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from plainformer.files.safetensors import PREFIX
from plainformer.interop.family import Family
from plainformer.interop.weight_map import pairs_of
from plainformer.models.config import EncoderConfig, LanguageModelConfig
from plainformer.models.parameters import AnyConfig
from plainformer.nn.lora import LowRank


def peft_files(
    family: Family,
    config: AnyConfig,
    pairs: Mapping[str, LowRank],
    whole: Mapping[str, np.ndarray],
    *,
    rank: int,
    alpha: float,
) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """The arrays of PEFT's file, and the settings that say how they are to be read.

    Where several matrices of ours are one of theirs (GPT-2's queries, keys and values), so are their pairs: the A stand
    on each other, the B on a diagonal, and rank and alpha are so many times as large.

    Args:
        pairs, whole: by the names of ours, `layers.0.self_attention.query` and `output.weight`.
    """
    arrays: dict[str, np.ndarray] = {}
    targets, saved, ranks, alphas = [], [], {}, {}
    turned = False
    for pair in pairs_of(family, config):
        module, _, kind = pair.theirs.rpartition(".")
        if set(pair.ours) <= set(whole):
            arrays[f"{PREFIX}{pair.theirs}"] = pair.write(whole)
            saved += [] if module in saved else [module]
            continue
        ours = [name.removesuffix(".weight") for name in pair.ours]
        if kind != "weight" or not (there := [name for name in ours if name in pairs]):
            continue
        ends = dict(zip(ours, np.cumsum([shape[-1] for shape in pair.ours.values()]), strict=True))
        b = np.zeros((max(ends.values()), rank * len(there)), np.float32)
        for number, name in enumerate(there):
            own = np.asarray(pairs[name].b, np.float32).T
            b[ends[name] - len(own) : ends[name], rank * number : rank * (number + 1)] = own
        a = np.concatenate([np.asarray(pairs[name].a, np.float32).T for name in there])
        arrays |= {f"{PREFIX}{module}.lora_A.weight": a, f"{PREFIX}{module}.lora_B.weight": b}
        targets.append(module)
        turned |= pair.layout == "same"
        if len(there) > 1:
            ranks[module], alphas[module] = rank * len(there), alpha * len(there)
    settings = {"target_modules": targets, "modules_to_save": saved or None, "fan_in_fan_out": turned}
    return arrays, settings | {"rank_pattern": ranks, "alpha_pattern": alphas, "task_type": _task(config)}


def _task(config: AnyConfig) -> str | None:
    if isinstance(config, EncoderConfig):
        return "SEQ_CLS" if config.labels else None
    return "CAUSAL_LM" if isinstance(config, LanguageModelConfig) else "SEQ_2_SEQ_LM"
