"""Settings of decoding that do not go along: theirs on the way in, ours on the way out. They are said, not passed over.

`generation` has those that do.
"""

from collections.abc import Collection, Mapping
from typing import Any

from plainformer.interop.generation import NEVER_REACHED
from plainformer.text import Tokenizer

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

_OF_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "min_p", "repetition_penalty", "max_new_tokens")
_OF_SEARCH = (
    *("num_beams", "length_penalty", "no_repeat_ngram_size", "repetition_penalty", "min_length", "max_length"),
    *("max_new_tokens", "min_new_tokens", "num_return_sequences", "early_stopping", "renormalize_logits"),
    *("forced_bos_token_id", "forced_eos_token_id"),
)
"""What `sampling_from` and `search_from` read."""


def sampling_left_out(values: Mapping[str, Any], tokenizer: Tokenizer) -> list[str]:
    """What a language model's `generation_config.json` sets, and has no counterpart here; with its value."""
    # A bound of the new tokens overrides that of all.
    known = (*_OF_SAMPLING, *(("max_length",) if values.get("max_new_tokens") is not None else ()))
    return _left_out(values, known, tokenizer, never=("pad", "bos", "unk", "mask"))


def search_left_out(values: Mapping[str, Any], tokenizer: Tokenizer) -> list[str]:
    """The same for a translator."""
    # Without sampling its settings decide nothing.
    known = _OF_SEARCH if values.get("do_sample") else (*_OF_SEARCH, *_OF_SAMPLING, "top_h", "typical_p")
    return _left_out(values, known, tokenizer, never=("pad", "bos", "unk"))


def _left_out(
    values: Mapping[str, Any], known: Collection[str], tokenizer: Tokenizer, *, never: Collection[str]
) -> list[str]:
    """Those that are not `known`; tokens of the roles `never` are not written here in any case."""
    silent = [[tokenizer.special_id(role)] for role in never]
    found: list[str] = []
    for name, value in values.items():
        if name in known or name in _NO_MATTER or name.startswith(("_", "output_")):
            continue
        if name == "eos_token_id":
            found += _other_ends(value, tokenizer.special_id("eos"))
        elif value in (None, False, [], {}) or value == _DEFAULTS.get(name):
            continue
        elif name != "bad_words_ids" or not isinstance(value, list) or any(ids not in silent for ids in value):
            found.append(f"{name} {_short(value)}")
    return found


def _other_ends(value: Any, end: int | None) -> list[str]:
    if value is None or all(id == end for id in (value if isinstance(value, list) else [value])):
        return []
    return [f"eos_token_id {_short(value)} ({'nothing ends a text' if end is None else f'only {end} ends a text'})"]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


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
