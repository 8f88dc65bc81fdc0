"""Settings of decoding: theirs in `generation_config.json`, ours in `decode.settings`, where they correspond."""

from collections.abc import Mapping
from typing import Any

_SAMPLING = {
    "max_new_tokens": "max_tokens",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
}
"""Theirs -> those of `SamplingSettings`."""


def sampling_from(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `SamplingSettings` that a language model's `generation_config.json` gives.

    What it does not say is ours to choose; with `do_sample` false, the most probable token is taken.
    """
    found = {ours: values[theirs] for theirs, ours in _SAMPLING.items() if values.get(theirs) is not None}
    return found | {"temperature": 0.0} if values.get("do_sample") is False else found


def sampling_to(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for their file, which has no seed."""
    if values.get("temperature") == 0.0:
        kept = {
            theirs: values[ours]
            for theirs, ours in _SAMPLING.items()
            if ours in ("max_tokens", "repetition_penalty") and ours in values
        }
        return {"do_sample": False, **kept}
    # Without top_k they would take the 50 most probable.
    return {"do_sample": True, "top_k": 0} | {
        theirs: values[ours] for theirs, ours in _SAMPLING.items() if ours in values
    }
