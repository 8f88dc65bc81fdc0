"""The results of an evaluation, as a few lines for the reader and as JSON for a file."""

import json
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from plainformer.errors import WorkError
from plainformer.files import atomic


def versions(*packages: str) -> dict[str, str]:
    """The installed version of each package, without importing it; "unknown" where there is none."""
    found = {}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "unknown"
    return found


def environment() -> dict[str, str]:
    """The versions that a figure depends on."""
    return {
        "python": platform.python_version(),
        **versions("plainformer", "jax", "equinox", "tokenizers", "sacrebleu"),
    }


@runtime_checkable
class Result(Protocol):
    """A result that says itself as JSON values and as text: `bleu.Scores` is one."""

    def as_dict(self) -> dict[str, Any]: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Likelihood:
    """How well the model predicts the references, without label smoothing.

    Attributes:
        nll: mean negative log-likelihood, in nats a target token (the eos included).
        tokens: how many target tokens that is the mean of.
        loss: the smoothed training loss on the same tokens, in nats, where it was computed.
    """

    nll: float
    tokens: int
    loss: float | None = None

    @property
    def perplexity(self) -> float:
        """exp(nll); infinite where that is past the largest float."""
        return math.exp(self.nll) if self.nll < 700.0 else math.inf

    @property
    def bits_per_token(self) -> float:
        """nll in bits."""
        return self.nll / math.log(2.0)

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "perplexity": self.perplexity, "bits_per_token": self.bits_per_token}

    def __str__(self) -> str:
        return (
            f"perplexity {self.perplexity:.2f} ({self.nll:z.4f} nats, {self.bits_per_token:z.4f} bits a token; "
            f"{self.tokens:,} tokens)"
        )


@dataclass(frozen=True)
class Report:
    """One model on one set of pairs.

    Attributes:
        model: the model folder.
        data: the set, as its name or its file.
        pairs: how many pairs were evaluated.
        dropped: pairs left out, by the reason for it; reported even where a score would look better without.
        likelihood: how well the references were predicted.
        scores: how well the translations scored.
        seconds: wall time of the whole evaluation.
        settings: what the search and the scoring were told.
    """

    model: str
    data: str
    pairs: int
    dropped: Mapping[str, int] = field(default_factory=dict)
    likelihood: Likelihood | None = None
    scores: Result | None = None
    seconds: float | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """JSON values, with the versions that the numbers depend on; what was not measured is None."""
        return {
            "model": self.model,
            "data": self.data,
            "pairs": self.pairs,
            "dropped": dict(self.dropped),
            "likelihood": self.likelihood.as_dict() if self.likelihood else None,
            "scores": self.scores.as_dict() if self.scores else None,
            "seconds": self.seconds,
            "settings": dict(self.settings),
            "versions": environment(),
        }

    def __str__(self) -> str:
        lines = [f"{self.model} on {self.data}: {self.pairs:,} pairs"]
        if self.seconds:
            lines[0] += f" in {self.seconds:.1f} s ({self.pairs / self.seconds:.1f} pairs/s)"
        lines += [f"dropped {count:,}: {reason}" for reason, count in self.dropped.items() if count]
        lines += [str(result) for result in (self.likelihood, self.scores) if result]
        lines += [f"warning: {warning}" for warning in getattr(self.scores, "warnings", ())]
        return "\n".join(lines)


def as_json(result: Result) -> str:
    """A result as strict JSON: a number that is not finite becomes null."""
    return json.dumps(_finite(result.as_dict()), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_report(result: Result, path: Path) -> None:
    """Write a result as JSON, whole or not at all.

    Raises:
        WorkError: the file could not be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic.write_text(path, as_json(result))
    except OSError as failure:
        raise WorkError(f"the report could not be written ({failure.strerror})", where=str(path)) from failure


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
