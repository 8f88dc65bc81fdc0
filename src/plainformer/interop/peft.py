"""What the settings of a LoRA adapter of PEFT's say. What decides the function is done, or refused by its name."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plainformer.errors import shown
from plainformer.files.json_object import LARGEST, read_object
from plainformer.files.safetensors import ADAPTER_CONFIG
from plainformer.interop.settings import Settings

TASKS = ("CAUSAL_LM", "SEQ_2_SEQ_LM", "SEQ_CLS", "FEATURE_EXTRACTION")
READ = {"peft_type", "task_type", "r", "lora_alpha", "rank_pattern", "alpha_pattern", "use_rslora", "use_dora", "bias"}
READ |= {"init_lora_weights", "target_modules", "modules_to_save"}
# Of training, of the file, or of how the layers were chosen that have pairs, which the file shows.
PASSED_OVER = {
    "lora_dropout",
    "inference_mode",
    "eva_config",
    "loftq_config",
    "auto_mapping",
    "peft_version",
    "revision",
}
PASSED_OVER |= {"exclude_modules", "layers_to_transform", "layers_pattern", "fan_in_fan_out", "megatron_core"}
PASSED_OVER |= {"qalora_group_size", "base_model_name_or_path", "base_model_sha256", "base_model_path_from_here"}
PLAIN_STARTS = ("True", "False", "None", "gaussian", "eva", "orthogonal")
"""Values of `init_lora_weights` that leave the base as it is."""

ANOTHER = "merge it with PEFT (merge_and_unload), and save the whole model"


@dataclass(frozen=True)
class Lora:
    """What `adapter_config.json` says of the numbers.

    Attributes:
        folder: of the two files.
        rank, alpha: of every pair but those of layers that a pattern of `ranks` or `alphas` matches.
        rslora: the product is divided by √rank (Kalajdzievski 2023).
        dora: the rows of the sum have lengths of their own.
        targets: ends of the names of all layers that must have a pair; empty where the file alone says which.
        classifies: it makes a classifier of its base, whatever that is.
    """

    folder: Path
    rank: int
    alpha: float
    ranks: Mapping[str, int]
    alphas: Mapping[str, float]
    rslora: bool
    dora: bool
    targets: tuple[str, ...]
    classifies: bool

    def rank_of(self, module: str) -> int:
        return _by_pattern(self.ranks, module, self.rank)

    def scale_of(self, module: str) -> float:
        """What B A is multiplied by."""
        rank = self.rank_of(module)
        return _by_pattern(self.alphas, module, self.alpha) / (rank**0.5 if self.rslora else rank)


def read_lora(folder: Path) -> Lora:
    """PEFT's settings. Raises InputError where they are damaged or name what no part here does, all of it at once."""
    path = folder / ADAPTER_CONFIG
    values = read_object(path)
    read = Settings(values, str(path))
    if values.get("peft_type") != "LORA":
        read.refuse(f"peft_type is {shown(values.get('peft_type'))}, and known is LORA")
        read.check(ANOTHER)
    rank, alpha = read.read("r", 8), read.read("lora_alpha", 8.0)
    rslora, dora = read.read("use_rslora", False), read.read("use_dora", False)
    if rank < 1 or not abs(alpha) <= LARGEST:
        read.refuse(f"r is {rank} and lora_alpha {alpha:g}: r must be at least 1, and lora_alpha finite")
    ranks, alphas = (
        _pattern(read, values, name, kind) for name, kind in (("rank_pattern", int), ("alpha_pattern", float))
    )
    targets = values.get("target_modules")
    if not isinstance(targets, str | None) and not _are_names(targets):
        read.refuse("target_modules must be a list of names, or a pattern")
    if values.get("modules_to_save") is not None and not _are_names(values["modules_to_save"]):
        read.refuse("modules_to_save must be a list of names")
    if (task := values.get("task_type")) not in (None, *TASKS):
        read.refuse(f"task_type is {shown(task)}, and known are {', '.join(TASKS)}")
    if read.read("bias", "none") not in ("none", "all", "lora_only"):
        read.refuse(f"bias is {shown(values['bias'])}, and known are none, all, lora_only")
    if str(start := values.get("init_lora_weights")) not in PLAIN_STARTS:
        read.refuse(f"init_lora_weights is {shown(start)}, which changes the weights of the base")
    for name in sorted(set(values) - READ - PASSED_OVER):
        if values[name]:
            read.refuse(f"{name} is {shown(values[name])}, which no part of plainformer does")
    read.check(ANOTHER)
    all_of_them = values.get("layers_to_transform") in (None, []) and not values.get("exclude_modules")
    every = tuple(targets) if isinstance(targets, list) and all_of_them else ()
    return Lora(folder, rank, alpha, ranks, alphas, rslora, dora, every, task == "SEQ_CLS")


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


def _pattern(read: Settings, values: Mapping[str, Any], name: str, kind: type) -> dict[str, Any]:
    """Numbers by patterns of names."""
    found = values.get(name) or {}
    try:
        if not isinstance(found, dict) or any(re.compile(key) is None for key in found):
            raise TypeError
    except (TypeError, re.error):
        read.refuse(f"{name} must be an object of numbers, by patterns of names")
        return {}
    inside = read.inside(found, name)
    given = {key: inside.read(key, kind(1)) for key in found}
    if wrong := [key for key, number in given.items() if not abs(number) <= LARGEST or (kind is int and number < 1)]:
        read.refuse(f"{name} has {shown(found[wrong[0]])} for {shown(wrong[0])}")
    return given


def _by_pattern(patterns: Mapping[str, Any], module: str, usual: Any) -> Any:
    """The value of the first pattern that matches the end of a name, from a dot on; else the usual one."""
    return next((value for key, value in patterns.items() if re.match(rf"(.*\.)?({key})$", module)), usual)
