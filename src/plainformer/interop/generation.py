"""Settings of decoding: theirs in `generation_config.json`, ours in `decode.settings`, where they correspond."""

from collections.abc import Mapping
from typing import Any

from plainformer.errors import shown
from plainformer.interop.settings import Settings, is_ids

_SAMPLING = {
    "max_new_tokens": "max_tokens",
    "max_length": "max_length",
    "temperature": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "repetition_penalty": "repetition_penalty",
}
"""Theirs -> those of `SamplingSettings`."""

_PLACE, _FIX = "generation_config.json", "correct it, or delete it"


def sampling_from(values: Mapping[str, Any], where: str = _PLACE) -> dict[str, Any]:
    """The keyword arguments of `SamplingSettings` that a language model's `generation_config.json` gives.

    What it does not say is ours to choose; with `do_sample` false, the most probable token is taken, and with true,
    among the 50 most probable if no other number is given. `where` is the place for errors.

    Raises:
        InputError: settings are of the wrong type; all that are, at once.
    """
    read = Settings(values, where)
    found = _read(read, values, _SAMPLING, whole=("max_new_tokens", "max_length", "top_k"))
    if "max_tokens" in found:  # of two bounds that of the new tokens counts
        found.pop("max_length", None)
    elif "max_length" in found:
        found["max_tokens"] = found["max_length"]
    found |= _tokens(read, values)
    samples = None if values.get("do_sample") is None else read.read("do_sample", False)
    read.check(_FIX)
    if samples:
        return {"top_k": MOST_PROBABLE} | found
    return found if samples is None else found | {"temperature": 0.0}


def sampling_keys(values: Mapping[str, Any]) -> dict[str, str]:
    """As `Family.generation_keys`."""
    longest = "max_length" if values.get("max_new_tokens") is None else "max_new_tokens"
    return {ours: theirs for theirs, ours in _SAMPLING.items()} | _TOKENS | {"max_tokens": longest}


_TOKENS = {"end_tokens": "eos_token_id", "suppress_tokens": "suppress_tokens"}
"""Ours -> theirs."""


def _tokens(read: Settings, values: Mapping[str, Any]) -> dict[str, tuple[int, ...]]:
    """The tokens that end a text, and those that never come: suppressed ones, and bad words of one token."""
    ends, never = read.ids("eos_token_id"), read.ids("suppress_tokens")
    words = values.get("bad_words_ids") or []
    if not isinstance(words, list) or not all(is_ids(word) for word in words):
        read.refuse(f"bad_words_ids is {shown(words)} and must be a list of lists of ids")
        words = []
    never += tuple(word[0] for word in words if len(word) == 1 and word[0] not in (*ends, *never))
    found = {"end_tokens": ends, "suppress_tokens": never}
    return {name: ids for name, ids in found.items() if ids}


def _read(
    read: Settings, values: Mapping[str, Any], names: Mapping[str, str], *, whole: tuple[str, ...], yes: str = ""
) -> dict[str, Any]:
    """What is there of `names`, by our names: the `whole` are integers, `yes` is a bool, others are floats."""
    return {
        ours: read.read(theirs, False if theirs == yes else 0 if theirs in whole else 0.0)
        for theirs, ours in names.items()
        if values.get(theirs) is not None
    }


MOST_PROBABLE = 50
"""Among how many tokens they sample, where nothing is said."""


def sampling_to(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for their file, which has no seed."""
    bound = "max_length" if values.get("max_length") else "max_tokens"
    ours_left_out = {"max_length", "max_tokens"} - {bound}
    tokens = {theirs: list(values[ours]) for ours, theirs in _TOKENS.items() if values.get(ours)}
    if values.get("temperature") == 0.0:
        kept = {
            theirs: values[ours]
            for theirs, ours in _SAMPLING.items()
            if ours in (bound, "repetition_penalty") and ours in values
        }
        return {"do_sample": False, **kept, **tokens}
    # Without top_k they would take the 50 most probable.
    kept = {theirs: values[ours] for theirs, ours in _SAMPLING.items() if ours in values and ours not in ours_left_out}
    return {"do_sample": True, "top_k": 0, **kept, **tokens}


_SEARCH = {
    "num_beams": "beam_size",
    "length_penalty": "alpha",
    "no_repeat_ngram_size": "no_repeat_ngram",
    "repetition_penalty": "repetition_penalty",
    "min_length": "min_tokens",
    "num_return_sequences": "n_best",
    "forced_bos_token_id": "forced_bos",
    "renormalize_logits": "renormalize_logits",
}
"""Theirs -> those of `GenerationSettings`. A least length counts the decoder's start in theirs, the end in ours:
of a translation of two tokens, both count three."""

_NUMBERS = ("num_beams", "no_repeat_ngram_size", "min_length", "num_return_sequences", "forced_bos_token_id")

MOST_TOKENS = 100_000
"""Of an output that a translator's file may allow: what our search may be given, too."""

NEVER_REACHED = 512
"""The most tokens of an output, where the settings have no number."""

_EARLY_STOPPING: dict[Any, str] = {False: "heuristic", True: "first", "never": "never"}
"""Their `early_stopping` -> ours."""


def search_from(values: Mapping[str, Any], where: str = _PLACE) -> dict[str, Any]:
    """The keyword arguments of `GenerationSettings` that a translator's `generation_config.json` gives.

    Their beam is full, and their length penalty the average's. What says nothing of length leaves it to us.

    Raises:
        InputError: as `sampling_from`.
    """
    read = Settings(values, where)
    found: dict[str, Any] = {"beam_size": 1, "length_penalty": "average", "alpha": 1.0}
    found |= _read(read, values, _SEARCH, whole=_NUMBERS, yes="renormalize_logits")
    stopping = values.get("early_stopping")
    if not (stopping is None or isinstance(stopping, bool) or stopping == "never"):
        read.refuse(f"early_stopping is {shown(stopping)}, and known are false, true and 'never'")
        stopping = None
    found |= {"beam": "full", "early_stopping": _EARLY_STOPPING[stopping or False]}
    # Of two bounds that of the new tokens counts; the other has the decoder's start among them.
    name, start = ("max_length", 1) if values.get("max_new_tokens") is None else ("max_new_tokens", 0)
    if values.get(name) is not None:
        most = read.size(name, 1 + start, least=1 + start, most=MOST_TOKENS + start) - start
        found |= {"max_ratio": 0.0, "max_margin": most}
    if values.get("min_new_tokens") is not None:  # without the end
        found["min_tokens"] = read.size("min_new_tokens", 0, least=0, most=MOST_TOKENS) + 1
    found |= _tokens(read, values)
    forced = read.ids("forced_eos_token_id")
    read.check(_FIX)
    if len(forced) == 1 and forced[0] in (ends := found.get("end_tokens", ())):  # the first is the one that is forced
        found["end_tokens"] = (*forced, *(id for id in ends if id not in forced))
    return found | {"forced_eos": bool(forced)}


def search_keys(values: Mapping[str, Any]) -> dict[str, str]:
    """As `Family.generation_keys`."""
    longest = "max_length" if values.get("max_new_tokens") is None else "max_new_tokens"
    least = "min_length" if values.get("min_new_tokens") is None else "min_new_tokens"
    keys = {ours: theirs for theirs, ours in _SEARCH.items()} | _TOKENS
    return keys | {"max_margin": longest, "min_tokens": least}


def search_to(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same for their file, where there is something like it: its beam is full, and its lengths are absolute.

    A penalty that it does not have becomes the average, which is its default, and a bound relative to the source, one
    that no sentence reaches: `losses.search_left_behind` names what does.
    """
    found = {theirs: values[ours] for theirs, ours in _SEARCH.items() if values.get(ours) is not None}
    if (penalty := values.get("length_penalty", "gnmt")) != "average":
        found["length_penalty"] = 0.0 if penalty == "none" or values.get("alpha") == 0.0 else 1.0
    found |= {"eos_token_id": list(values["end_tokens"])} if values.get("end_tokens") else {}
    stops = {ours: theirs for theirs, ours in _EARLY_STOPPING.items()}
    found |= {"early_stopping": stops[values.get("early_stopping", "never")], "do_sample": False}
    absolute = values.get("max_ratio") == 0.0 and "max_margin" in values
    return found | {"max_length": values["max_margin"] + 1 if absolute else NEVER_REACHED}
