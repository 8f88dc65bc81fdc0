"""How to search: what a recipe and `generation_config.json` say of decoding. Imports neither JAX nor NumPy."""

from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar, get_args, get_type_hints

from plainformer import renamed
from plainformer.decode.limits import (
    LEAST_PENALTY,
    MOST_ALPHA,
    MOST_BEAM,
    MOST_MARGIN,
    MOST_PENALTY,
    MOST_RATIO,
    MOST_TOKENS,
    LengthPenalty,
)
from plainformer.errors import InputError, reason, shown
from plainformer.files.json_object import is_of_type

Beam = Literal["shrinking", "full"]
EarlyStopping = Literal["never", "heuristic", "first"]


class SettingError(InputError):
    """A setting that will not do.

    Args:
        setting: its name here.
        said: what is wrong with it, to be read behind its name.
        fix: as of every error; names no setting.
    """

    def __init__(self, setting: str, said: str, *, fix: str | None = None) -> None:
        super().__init__(f"{setting} {said}", where=f"generation.{setting}", fix=fix)
        self.setting, self.said = setting, said

    def called(self, name: str, where: str | None) -> InputError:
        """The same of a setting that has another name, in another place."""
        return InputError(f"{name} {self.said}", where=where, fix=self.fix)


@renamed.old_fields(renamed.generation)
@dataclass(frozen=True)
class GenerationSettings:
    """How to search. The defaults are the paper's (section 6.1): beam 4, alpha 0.6, up to the source's length + 50.

    Attributes:
        beam_size: hypotheses kept a sentence; 1 is greedy search.
        length_penalty: `gnmt` ((5 + length) / 6)^alpha, `average` length^alpha, or `none`.
        alpha: exponent of the length penalty. Below 0, the shorter of two hypotheses is preferred.
        max_ratio, max_margin: a sentence ends after max_ratio · (source tokens) + max_margin tokens. Both sides count
            their end of sentence.
        n_best: hypotheses returned a sentence, at most beam_size.
        no_repeat_ngram: no n-gram of this size occurs twice in an output; 0 allows repeats.
        repetition_penalty: divides (or multiplies, where negative) the logits of tokens already generated, in a full
            beam their log-probabilities; 1 is none.
        beam: what becomes of a hypothesis that has ended. In a `shrinking` beam it still counts as one of the
            beam_size, so one fewer is extended from then on. In a `full` one it does not: beam_size are extended at
            every step, and beside them the best beam_size that ended are kept, which is how the Hugging Face library
            and CTranslate2 search. A beam of one is greedy in either.
        early_stopping: when the search of a sentence ends before its length bound. `never`: when no active hypothesis
            can still become better than what is returned of a shrinking beam, or kept of a full one, so that the
            result is the same as without ending. Of a full beam alone, once beam_size hypotheses have ended:
            `heuristic`, when none would be better if it ended here, with this length, which can miss a better one;
            `first`, at once.
        min_tokens: the end of sentence is not generated before so many tokens, itself among them, unless no other token
            is allowed.
        forced_bos: an id that every output begins with, at no cost; None is none.
        forced_eos: at the length bound of a sentence its end is generated, at no cost, so that none is cut.
        renormalize_logits: the softmax is over the allowed tokens alone, not over the whole vocabulary.
        end_tokens: ids of which each ends an output, in the place of the tokenizer's end of sentence; none is that.
        suppress_tokens: ids that are never generated.

    Raises:
        InputError: a value is out of its range.
    """

    beam_size: int = 4
    length_penalty: LengthPenalty = "gnmt"
    alpha: float = 0.6
    max_ratio: float = 1.0
    max_margin: int = 50
    n_best: int = 1
    no_repeat_ngram: int = 0
    repetition_penalty: float = 1.0
    beam: Beam = "shrinking"
    early_stopping: EarlyStopping = "never"
    min_tokens: int = 0
    forced_bos: int | None = None
    forced_eos: bool = False
    renormalize_logits: bool = False
    end_tokens: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_types(self)
        _check_ranges(
            self,
            {
                "beam_size": (1 <= self.beam_size <= MOST_BEAM, f"give 1 to {MOST_BEAM}"),
                "length_penalty": (
                    self.length_penalty in get_args(LengthPenalty),
                    f"choose one of {', '.join(get_args(LengthPenalty))}",
                ),
                "alpha": (abs(self.alpha) <= MOST_ALPHA, f"give {-MOST_ALPHA:g} to {MOST_ALPHA:g}"),
                "max_ratio": (0.0 <= self.max_ratio <= MOST_RATIO, f"give 0 to {MOST_RATIO:g}"),
                "max_margin": (0 <= self.max_margin <= MOST_MARGIN, f"give 0 to {MOST_MARGIN}"),
                "n_best": (
                    1 <= self.n_best <= self.beam_size,
                    f"give 1 to {self.beam_size}, as many as the beam keeps",
                ),
                "no_repeat_ngram": (
                    0 <= self.no_repeat_ngram <= MOST_TOKENS,
                    "give 0 (repeats allowed) or a size",
                ),
                "beam": (self.beam in get_args(Beam), f"choose one of {', '.join(get_args(Beam))}"),
                "early_stopping": (
                    self.early_stopping in get_args(EarlyStopping)
                    and (self.beam == "full" or self.early_stopping == "never"),
                    f"choose one of {', '.join(get_args(EarlyStopping))}; in a shrinking beam, never",
                ),
                "min_tokens": (0 <= self.min_tokens <= MOST_TOKENS, f"give 0 (none) to {MOST_TOKENS}"),
                "forced_bos": (
                    self.forced_bos is None or (is_of_type(self.forced_bos, int) and self.forced_bos >= 0),
                    "give an id, or none",
                ),
                "repetition_penalty": _penalty(self.repetition_penalty),
            },
        )

    @property
    def is_full(self) -> bool:
        """Whether hypotheses that ended leave their places to others; a beam of one is greedy."""
        return self.beam == "full" and self.beam_size > 1

    @property
    def penalises_logprobs(self) -> bool:
        """Whether what the repetition penalty changes are log-probabilities."""
        return self.is_full and self.repetition_penalty != 1.0

    def bound(self, source_length: int, limit: int | None = None) -> int:
        """The most tokens that a source of `source_length` tokens may give; both count their end of sentence.

        `limit` is the longest target that the model can represent, None where there is no such bound.
        """
        bound = max(1, int(self.max_ratio * source_length) + self.max_margin)
        return bound if limit is None else min(bound, limit)


@renamed.old_fields(renamed.generation)
@dataclass(frozen=True)
class SamplingSettings:
    """How a language model goes on with a text.

    Attributes:
        max_tokens: the most tokens written; fewer where the model ends its text, or a stop string comes.
        max_length: the most tokens of a prompt and what is written together; 0 is no such bound.
        temperature: divides the logits; below 1 the likely becomes likelier, 0 takes the most probable token.
        top_k: only the so many most probable tokens; 0 is all.
        top_p: only the most probable tokens that together have this probability; 1 is all.
        min_p: only tokens at least so many times as probable as the most probable; 0 is all.
        repetition_penalty: divides (or multiplies, where negative) the logits of tokens that are in the text, prompt
            included; 1 is none.
        seed: of the choices. A text depends on its prompt, the seed and its number among the samples, on nothing else.
        end_tokens: ids of which each ends a text, in the place of the tokenizer's end; none is that.
        suppress_tokens: ids that are never written.

    Raises:
        InputError: a value is out of its range.
    """

    max_tokens: int = 200
    max_length: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    seed: int = 0
    end_tokens: tuple[int, ...] = ()
    suppress_tokens: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        _check_types(self)
        _check_ranges(
            self,
            {
                "max_tokens": (1 <= self.max_tokens <= MOST_TOKENS, f"give 1 to {MOST_TOKENS}"),
                "max_length": (0 <= self.max_length <= MOST_TOKENS, f"give 1 to {MOST_TOKENS}, or 0 for no such bound"),
                "temperature": (0.0 <= self.temperature < float("inf"), "give at least 0; 0 is greedy"),
                "top_k": (self.top_k >= 0, "give 0 (all) or how many"),
                "top_p": (0.0 < self.top_p <= 1.0, "give a share above 0 and at most 1"),
                "min_p": (0.0 <= self.min_p <= 1.0, "give a share from 0 to 1"),
                "repetition_penalty": _penalty(self.repetition_penalty),
                "seed": (0 <= self.seed < 2**32, "give 0 to 4294967295"),
            },
        )

    def max_new_tokens(self, prompt: int) -> int:
        """The most tokens that are written after a prompt of so many; below 1 where it leaves no room."""
        return min(self.max_tokens, self.max_length - prompt) if self.max_length else self.max_tokens


def _penalty(value: float) -> tuple[bool, str]:
    """Whether a penalty of repetition will do, and what to give instead."""
    return LEAST_PENALTY <= value <= MOST_PENALTY, f"give {LEAST_PENALTY:g} to {MOST_PENALTY:g}; 1 is none"


def _check_types(settings: Any) -> None:
    for name, wanted in get_type_hints(type(settings)).items():
        value = getattr(settings, name)
        # Of a union with None, the other; of a choice, that it is a string, since its range says which.
        kinds = [kind for kind in get_args(wanted) or (wanted,) if isinstance(kind, type)] or [str]
        fits = any(value is None if kind is type(None) else is_of_type(value, kind) for kind in kinds)
        if wanted != tuple[int, ...] and not fits:
            raise SettingError(name, f"is {shown(value)} and must be of type {kinds[0].__name__}")
        if wanted == tuple[int, ...] and not (
            isinstance(value, tuple) and all(is_of_type(id, int) and id >= 0 for id in value)
        ):
            raise SettingError(name, f"is {shown(value)} and must be a list of ids")


def _check_ranges(settings: Any, requirements: dict[str, tuple[bool, str]]) -> None:
    """Raises InputError for the first setting of which the requirement does not hold, with what to do instead."""
    for name, (holds, fix) in requirements.items():
        if not holds:
            raise SettingError(name, f"is {shown(getattr(settings, name))}", fix=fix)


def check_tokens(settings: GenerationSettings | SamplingSettings, size: int) -> None:
    """Raises InputError where an id in the settings is none of a vocabulary of `size` tokens."""
    first = getattr(settings, "forced_bos", None)
    named = {"forced_bos": () if first is None else (first,)}
    named |= {"end_tokens": settings.end_tokens, "suppress_tokens": settings.suppress_tokens}
    for name, ids in named.items():
        if wrong := [id for id in ids if id >= size]:
            said = f"is {wrong[0]}, and the vocabulary has {size:,} tokens"
            raise SettingError(name, said, fix=f"give an id from 0 to {size - 1}, or none")


PAPER = GenerationSettings()
"""The paper's search (section 6.1)."""

SAMPLING = SamplingSettings()
"""Draws from the whole distribution, as it is."""


Settings = TypeVar("Settings", GenerationSettings, SamplingSettings)


def changed(settings: Settings, changes: dict[str, Any]) -> Settings:
    """The settings with some of them replaced. Raises InputError for one that is unknown, or of the wrong type."""
    known = set(settings.__dataclass_fields__)
    changes = renamed.generation(changes, told=True)
    if unknown := sorted(set(changes) - known):
        raise InputError(f"unknown setting {', '.join(unknown)}", fix=f"the settings are {', '.join(sorted(known))}")
    try:
        return replace(settings, **{name: _plain(value) for name, value in changes.items()})
    except TypeError as mismatch:
        raise InputError(f"a setting is of the wrong type ({reason(mismatch)})") from mismatch


def _plain(value: Any) -> Any:
    """A value as the settings have it: a number or numbers of NumPy's as Python's, and of a list, as JSON has them, a
    tuple."""
    value = value.tolist() if hasattr(value, "tolist") else value  # without NumPy, which this file does without
    return tuple(value) if isinstance(value, list) else value
