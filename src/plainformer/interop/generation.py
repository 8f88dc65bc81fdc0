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


_SEARCH = {
    "num_beams": "beam_size",
    "length_penalty": "alpha",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "repetition_penalty": "repetition_penalty",
    "min_length": "min_tokens",
    "num_return_sequences": "n_best",
    "forced_bos_token_id": "first_token",
    "renormalize_logits": "renormalise",
}
"""Theirs -> those of `GenerationSettings`. A least length counts the decoder's start in theirs, the end in ours."""

NEVER_REACHED = 512
"""The most tokens of an output, where the settings have no number."""

_STOPS: dict[Any, str] = {False: "estimate", True: "enough", "never": "decided"}
"""Their `early_stopping` -> our `stop`."""


def search_from(values: Mapping[str, Any]) -> dict[str, Any]:
    """The keyword arguments of `GenerationSettings` that a translator's `generation_config.json` gives.

    Their beam is full, and their length penalty the average's. What says nothing of length leaves it to us.
    """
    found: dict[str, Any] = {"beam_size": 1, "length_penalty": "average", "alpha": 1.0}
    found |= {ours: values[theirs] for theirs, ours in _SEARCH.items() if values.get(theirs) is not None}
    found["alpha"] = float(found["alpha"])
    stopping = values.get("early_stopping") or False
    found |= {"beam": "full", "stop": _STOPS.get(stopping, "estimate")}
    if (longest := values.get("max_length")) is not None:  # it counts the decoder's start
        found |= {"max_ratio": 0.0, "max_margin": max(0, longest - 1)}
    return found | {"force_end": values.get("forced_eos_token_id") is not None}


def search_to(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for their file, where there is something like it: its beam is full, and its lengths are absolute.

    A penalty that it does not have becomes the average, which is its default, and a bound relative to the source, one
    that no sentence reaches.
    """
    found = {theirs: values[ours] for theirs, ours in _SEARCH.items() if values.get(ours) is not None}
    if values.get("length_penalty", "gnmt") != "average":
        found["length_penalty"] = {"none": 0.0}.get(values.get("length_penalty", "gnmt"), 1.0)
    stops = {ours: theirs for theirs, ours in _STOPS.items()}
    found |= {"early_stopping": stops[values.get("stop", "decided")], "do_sample": False}
    absolute = values.get("max_ratio") == 0.0 and "max_margin" in values
    return found | {"max_length": values["max_margin"] + 1 if absolute else NEVER_REACHED}
