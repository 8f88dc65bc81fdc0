"""One language model on one text: how probable it finds it."""

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.data.block import in_order
from plainformer.data.tokens import Counts
from plainformer.decode.score import text_logprobs
from plainformer.evaluate.report import Likelihood, environment
from plainformer.models.language_model import LanguageModel

BATCH_TOKENS = 4096


@dataclass(frozen=True)
class TextReport:
    """One language model on one text, read in blocks of its context, as in training.

    Attributes:
        model, data: what they are called.
        counts: tokens, bytes and unknown tokens of the text.
        likelihood: how well every token but the first was predicted.
        bits_per_byte: what a byte of the text costs; the same unit whatever the tokenizer.
        context: tokens of a block; each is predicted from those before it in its block.
        seconds: wall time.
    """

    model: str
    data: str
    counts: Counts
    likelihood: Likelihood
    bits_per_byte: float
    context: int
    seconds: float

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON values, with the versions that the numbers depend on."""
        return {**asdict(self), "likelihood": self.likelihood.as_dict(), "versions": environment()}

    def __str__(self) -> str:
        lines = [
            f"{self.model} on {self.data}: {self.counts.tokens:,} tokens, {self.counts.bytes:,} bytes in "
            f"{self.seconds:.1f} s",
            f"{self.bits_per_byte:z.4f} bits a byte, {self.likelihood}, in blocks of {self.context:,}",
        ]
        if self.counts.unknown:
            lines.append(f"warning: {self.counts.unknown:,} tokens are unknown to the model")
        return "\n".join(lines)


def evaluate_text(
    model: LanguageModel,
    ids: NDArray[np.integer],
    counts: Counts,
    *,
    name: str,
    data: str,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[TextReport, list[float]]:
    """The likelihood of a text: every token but the first, predicted from those before it in its block.

    Beside the report there is what each block costs, in nats, in order: the sum of its tokens' losses.

    Args:
        ids: of the text, (tokens,); may be a memory map. counts: what is known of them.
        name, data: what to call the model and the text in the report.
        progress: called after each batch with the numbers of tokens done and of all.

    Raises:
        InputError: the text has fewer than two tokens.
    """
    began, context = time.monotonic(), model.config.context
    rows = max(1, BATCH_TOKENS // context)
    losses: list[float] = []
    tokens = 0
    for blocks in in_order(ids, context=context, rows=rows):
        logprobs = np.asarray(text_logprobs(model, jnp.asarray(blocks.ids), jnp.asarray(blocks.targets)), np.float64)
        losses += (0.0 - np.sum(logprobs, axis=1, where=blocks.valid))[blocks.valid.any(axis=1)].tolist()
        tokens += int(blocks.valid.sum())
        if progress is not None:
            progress(tokens, len(ids) - 1)
    likelihood = Likelihood(nll=sum(losses) / tokens, tokens=tokens)
    report = TextReport(
        model=name,
        data=data,
        counts=counts,
        likelihood=likelihood,
        bits_per_byte=counts.bits_per_byte(likelihood.nll),
        context=context,
        seconds=time.monotonic() - began,
    )
    return report, losses
