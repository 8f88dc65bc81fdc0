"""What a model makes of a few held-out texts while it learns: figures alone do not show how it fails."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plainformer.data.pairs import Pairs
from plainformer.decode.settings import GenerationSettings, SamplingSettings
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.runs.task import Tokenizers
from plainformer.tokenizer import Tokenizer

PROMPT, WRITTEN = 8, 64  # tokens of a held-out text that are given, and at most written

Samples = Callable[[Any], Iterator[str]]
"""Lines to show of a model."""


def translations(dev: Pairs, count: int, tokenizers: Tokenizers, settings: GenerationSettings) -> Samples:
    """Greedy translations of so many pairs, evenly spread over the held-out ones, beside what they should be."""
    chosen = _spread(len(dev), count)
    sources, references = [dev.source[index] for index in chosen], [dev.target[index] for index in chosen]
    greedy = replace(settings, beam_size=1, n_best=1)

    def lines(model: Any) -> Iterator[str]:
        found = Translator(model, tokenizers.source, tokenizers.target, greedy).translate(
            sources, max_source_tokens=None
        )
        for source, target, reference in zip(sources, found, references, strict=True):
            yield f"  {_quoted(source)} -> {_quoted(target)} (reference: {_quoted(reference)})"

    return lines


def continuations(dev: NDArray[np.integer], count: int, tokenizer: Tokenizer, settings: SamplingSettings) -> Samples:
    """How the model goes on with so many places of the held-out tokens, evenly spread over them."""
    starts = _spread(max(1, len(dev) - PROMPT), count)
    prompts = [tokenizer.decode(dev[start : start + PROMPT].tolist()) for start in starts]
    known = [one for one in prompts if one and not tokenizer.count_unknown(tokenizer.encode(one))]
    short = replace(settings, max_tokens=min(WRITTEN, settings.max_tokens))

    def lines(model: Any) -> Iterator[str]:
        writer = TextGenerator(model, tokenizer, short)
        for number, prompt in enumerate(known):  # each by a seed of its own: choices do not depend on the prompt
            ((written,),) = writer.generate([prompt], seed=(short.seed + number) % 2**32)
            yield f"  {_quoted(prompt)} -> {_quoted(written)}"

    return lines


def _spread(many: int, count: int) -> list[int]:
    """At most `count` of so many places, evenly spread, the first among them."""
    return sorted({many * part // count for part in range(count)})


def _quoted(text: str) -> str:
    """A text in one line: what would end it, or turn a terminal over, escaped."""
    return "".join(
        char if char.isprintable() else json.dumps(char)[1:-1] for char in json.dumps(text, ensure_ascii=False)
    )
