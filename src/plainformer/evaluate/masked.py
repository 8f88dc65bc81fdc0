"""One masked language model on one text: how well it says the tokens that are hidden from it."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from plainformer.data.masking import Masking, in_order
from plainformer.data.tokens import Counts
from plainformer.errors import InputError
from plainformer.evaluate.report import Likelihood, environment
from plainformer.models.encoder import MaskedLanguageModel
from plainformer.objective import MaskedObjective
from plainformer.train.step import make_evaluation

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class MaskedReport:
    """One masked language model on one text, read in blocks of its context, as in training.

    Attributes:
        model, data: what they are called.
        counts: tokens, bytes and unknown tokens of the text.
        likelihood: how well the hidden tokens were predicted; its `tokens` says how many they are.
        accuracy: the share of hidden tokens to which no other token is preferred.
        share, whole_words, seed: which tokens were hidden; the same ones for the same values.
        context: tokens of a block.
        seconds: wall time.
    """

    model: str
    data: str
    counts: Counts
    likelihood: Likelihood
    accuracy: float
    share: float
    whole_words: bool
    seed: int
    context: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values, with the versions that the numbers depend on."""
        return {**asdict(self), "likelihood": self.likelihood.as_dict(), "versions": environment()}

    def __str__(self) -> str:
        what = "whole words" if self.whole_words else "tokens"
        lines = [
            f"{self.model} on {self.data}: {self.counts.tokens:,} tokens, {self.counts.bytes:,} bytes in "
            f"{self.seconds:.1f} s",
            f"hidden tokens: accuracy {self.accuracy:.2%}, {self.likelihood}; {self.share:.0%} of the {what} hidden "
            f"(seed {self.seed}), in blocks of {self.context:,}",
        ]
        if self.counts.unknown:
            lines.append(f"warning: {self.counts.unknown:,} tokens are unknown to the model; none of them is hidden")
        return "\n".join(lines)


def evaluate_masked(
    model: MaskedLanguageModel,
    ids: NDArray[np.integer],
    counts: Counts,
    masking: Masking,
    *,
    seed: int,
    name: str,
    data: str,
    progress: Callable[[int, int], None] | None = None,
) -> MaskedReport:
    """How well hidden tokens are said. What is hidden depends on the seed and the text alone.

    Args:
        ids: of the text, (tokens,); may be a memory map. counts: what is known of them.
        masking: how tokens are chosen and hidden.
        seed: what the choice is drawn from; with that of a training run, it is what was hidden there.
        name, data: what to call the model and the text in the report.
        progress: called after each batch with the numbers of tokens done and of all.

    Raises:
        InputError: the text has fewer than two tokens, or none that can be hidden.
    """
    began, context = time.monotonic(), model.config.context
    sums_of = make_evaluation(MaskedObjective())
    nll, correct, hidden, done = 0.0, 0, 0, 0
    for batch in in_order(ids, masking, context=context, rows=max(1, BATCH_TOKENS // context), seed=seed):
        sums = jax.device_get(sums_of(model, [batch]))
        nll += float(sums.nll)
        correct += int(sums.correct)
        hidden += int(sums.tokens)
        done += int(batch.valid.sum())
        if progress is not None:
            progress(done, len(ids) - 1)
    if not hidden:
        raise InputError("the text has no token that can be hidden: the model knows none of it", where=data)
    return MaskedReport(
        model=name,
        data=data,
        counts=counts,
        likelihood=Likelihood(nll=nll / hidden, tokens=hidden),
        accuracy=correct / hidden,
        share=masking.share,
        whole_words=masking.starts is not None,
        seed=seed,
        context=context,
        seconds=time.monotonic() - began,
    )
