"""In what a configuration of ours departs from a family of theirs."""

from collections.abc import Mapping
from typing import Any

from plainformer.models.config import Config


def differing(config: Config, theirs: Mapping[str, Any]) -> list[str]:
    """The settings that are not what a family has without exception."""
    found = {name: getattr(config, name) for name in theirs}
    return [
        f"{name} is {found[name]!r}, and theirs is {value!r}" for name, value in theirs.items() if found[name] != value
    ]


def odd_widths(config: Config) -> list[str]:
    """Heads that are wider or narrower than an even share of d_model."""
    widths = {"d_k": config.key_width, "d_v": config.value_width}
    return [
        f"{name} is {width}, and theirs is d_model / heads = {config.d_model / config.heads:g}"
        for name, width in widths.items()
        if width * config.heads != config.d_model
    ]


def grouped_heads(config: Any) -> list[str]:
    """Heads that share keys and values."""
    if config.kv_heads in (0, config.heads):
        return []
    return [f"{config.heads} heads share {config.kv_heads} keys and values, and theirs have their own"]
