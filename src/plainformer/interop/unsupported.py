"""Settings of decoding that do not go along: theirs on the way in, ours on the way out. They are said, not passed over.

`generation` has those that do.
"""

from collections.abc import Collection, Mapping
from typing import Any

from plainformer.errors import shown
from plainformer.interop.generation import NEVER_REACHED
from plainformer.tokenizer import Tokenizer

_DEFAULTS: dict[str, Any] = {
    "max_length": 20,
    "min_length": 0,
    "num_beams": 1,
    "num_beam_groups": 1,
    "num_return_sequences": 1,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
    "typical_p": 1.0,
    "repetition_penalty": 1.0,
    "encoder_repetition_penalty": 1.0,
    "length_penalty": 1.0,
    "top_h": None,
    "diversity_penalty": 0.0,
    "epsilon_cutoff": 0.0,
    "eta_cutoff": 0.0,
    "no_repeat_ngram_size": 0,
    "encoder_no_repeat_ngram_size": 0,
}
"""Theirs; that of any other setting is none."""

_NO_MATTER = (
    *("pad_token_id", "bos_token_id", "decoder_start_token_id"),  # roles, which the tokenizer has
    *("use_cache", "cache_implementation", "cache_config", "return_dict_in_generate", "remove_invalid_values"),
    *("transformers_version", "low_memory", "prefill_chunk_size", "compile_config", "disable_compile"),
    *("num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"),
    *("assistant_lookbehind", "target_lookbehind"),
)
"""What has no part in which tokens are found."""

_OF_SAMPLING = (
    *("do_sample", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "max_new_tokens", "max_length"),
    *("eos_token_id", "suppress_tokens"),
)
_OF_SEARCH = (
    *("num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "min_length", "max_length"),
    *("max_new_tokens", "min_new_tokens", "num_return_sequences", "early_stopping", "renormalize_logits"),
    *("forced_bos_token_id", "forced_eos_token_id", "eos_token_id", "suppress_tokens"),
)
"""What `sampling_from` and `search_from` read."""

_OF_NEITHER = (
    *("typical_p", "top_h", "epsilon_cutoff", "eta_cutoff", "encoder_repetition_penalty", "diversity_penalty"),
    *("num_beam_groups", "encoder_no_repeat_ngram_size", "bad_words_ids", "begin_suppress_tokens", "sequence_bias"),
    *("exponential_decay_length_penalty", "stop_strings", "max_time", "guidance_scale", "token_healing", "use_mtp"),
    *("watermarking_config", "penalty_alpha", "dola_layers", "constraints", "force_words_ids", "assistant_early_exit"),
    *("prompt_lookup_num_tokens", "decoder_start_token_id"),
)
"""What else of theirs has a part in which tokens are found."""


def decoding_settings(values: Mapping[str, Any]) -> dict[str, Any]:
    """Of the settings of a model those of decoding, where an older folder has them."""
    names = {*_OF_SAMPLING, *_OF_SEARCH, *_OF_NEITHER}
    return {name: value for name, value in values.items() if name in names and value is not None}


def sampling_left_out(values: Mapping[str, Any], tokenizer: Tokenizer) -> list[str]:
    """What a language model's `generation_config.json` sets, and has no counterpart here; with its value."""
    return _left_out(values, (*_OF_SAMPLING, "decoder_start_token_id"))


def search_left_out(values: Mapping[str, Any], tokenizer: Tokenizer) -> list[str]:
    """The same for a translator."""
    # Without sampling its settings decide nothing.
    known = _OF_SEARCH if values.get("do_sample") else (*_OF_SEARCH, *_OF_SAMPLING, "top_h", "typical_p")
    found = _left_out(values, known)
    start, ours = values.get("decoder_start_token_id"), tokenizer.special_id("bos")
    if start not in (None, ours):
        found.append(f"decoder_start_token_id {shown(start)} (outputs begin after {ours})")
    ends = values.get("eos_token_id")
    ends = ends if isinstance(ends, list) else [] if ends is None else [ends]
    ends = ends or [tokenizer.special_id("eos")]
    forced = values.get("forced_eos_token_id")
    if forced is not None and (forced[0] if isinstance(forced, list) and len(forced) == 1 else forced) not in ends:
        found.append(f"forced_eos_token_id {shown(forced)} (an output ends with {shown(ends[0])})")
    return found


def _left_out(values: Mapping[str, Any], known: Collection[str]) -> list[str]:
    """Those that are not `known`, and words of several tokens among those that must not come."""
    found: list[str] = []
    for name, value in values.items():
        if name in known or name in _NO_MATTER or name.startswith(("_", "output_")):
            continue
        if value is None or value is False or value in ([], {}) or value == _DEFAULTS.get(name):
            continue
        if name == "bad_words_ids" and isinstance(value, list):
            if long := [ids for ids in value if not isinstance(ids, list) or len(ids) != 1]:
                found.append(f"{name} {shown(long)}")
            continue
        found.append(f"{name} {shown(value)}")
    return found


def search_left_behind(values: Mapping[str, Any]) -> list[str]:
    """What of our search has no counterpart there, each with what `search_to` writes instead."""
    found: list[str] = []
    searches = values.get("beam_size", 4) > 1
    penalty, alpha = values.get("length_penalty", "gnmt"), values.get("alpha", 0.6)
    if searches and penalty == "gnmt" and alpha != 0.0:
        found.append(f"length_penalty gnmt with alpha {alpha:g} (there the average, with 1)")
    if searches and values.get("beam", "shrinking") == "shrinking":
        found.append("a shrinking beam (there a full one)")
    ratio, margin = values.get("max_ratio", 1.0), values.get("max_margin", 50)
    if ratio != 0.0 or "max_margin" not in values:
        found.append(f"at most {ratio:g} x source + {margin} tokens (there {NEVER_REACHED})")
    return found
