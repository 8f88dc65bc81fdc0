"""A prompt in, a text out: a language model with its tokenizer."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from plainformer.decode.continuation import continuations
from plainformer.decode.lookahead import best_continuations
from plainformer.decode.score import score_texts
from plainformer.decode.settings import PAPER, SamplingSettings, changed
from plainformer.decode.texts import encode_texts
from plainformer.errors import InputError
from plainformer.folder import ModelFolder
from plainformer.models.language_model import LanguageModel
from plainformer.text import Tokenizer
from plainformer.text.stream import TextStream

MOST_ROWS = 64  # written together
MOST_PLACES = 2**14  # of all of them, whose keys and values are kept: what bounds memory


@dataclass(frozen=True)
class Continuation:
    """What a beam search found to come after a prompt.

    Attributes:
        text: without the prompt.
        score: its log-probability (nats) over the length penalty; what the n best are ranked by.
        logprob: its log-probability.
        finished: False where `max_tokens` cut it.
    """

    text: str
    score: float
    logprob: float
    finished: bool


@dataclass(frozen=True)
class TextScore:
    """How probable a text is. Its first token is given, not scored: nothing stands before it.

    Attributes:
        tokens: all tokens of the text, as they stand in the vocabulary.
        logprobs: the log-probability (nats) of each but the first, given those before it.
        scored_bytes: how many bytes of UTF-8 the scored tokens spell.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    scored_bytes: int

    @property
    def logprob(self) -> float:
        """The sum of `logprobs`."""
        return math.fsum(self.logprobs)

    @property
    def perplexity(self) -> float:
        """e to the mean negative log-probability of a token: how many equally likely ones it was chosen among."""
        return math.exp(-self.logprob / len(self.logprobs))

    @property
    def bits_per_byte(self) -> float:
        """Bits that a byte of the text costs; the same unit whatever the tokenizer."""
        return -self.logprob / math.log(2.0) / self.scored_bytes


@dataclass(frozen=True)
class Writer:
    """A language model ready for use: `Writer(model, tokenizer).generate(["Once upon a time"])`."""

    model: LanguageModel
    tokenizer: Tokenizer
    settings: SamplingSettings = field(default_factory=SamplingSettings)

    @classmethod
    def of(cls, content: ModelFolder) -> "Writer":
        """Raises InputError where the folder holds another kind of model, or settings that will not do."""
        if not isinstance(content.model, LanguageModel):
            raise InputError("this is not a language model")
        return cls(content.model, content.source_tokenizer, changed(SamplingSettings(), dict(content.generation)))

    def generate(
        self,
        prompts: Sequence[str],
        *,
        samples: int = 1,
        stop: Sequence[str] = (),
        on_slide: Callable[[], None] = lambda: None,
        **changes: Any,
    ) -> list[list[str]]:
        """What comes after each prompt: `samples` texts each, without the prompt.

        Args:
            stop: a text ends before the first of these strings that is complete.
            on_slide: called whenever a text does not fit the context, which then slides.
            changes: settings that differ from the writer's own, such as `temperature=0.7`.

        Raises:
            InputError: a prompt is empty or holds what the vocabulary does not have; a setting is unknown or out of
                range.
        """
        if samples < 1:
            raise InputError(f"{samples} samples were asked for", fix="give at least 1")
        settings = changed(self.settings, changes)
        rows = [(prompt, number) for prompt in self._encode(prompts) for number in range(samples)]
        texts = [self._text(prompt, stop) for prompt, _ in rows]
        # Like lengths together: all rows stand at the same place, and the shortest prompt says where they begin.
        order = sorted(range(len(rows)), key=lambda row: len(rows[row][0]))
        while order:
            longest = max(len(rows[row][0]) for row in order[:MOST_ROWS]) + settings.max_tokens
            count = min(MOST_ROWS, max(1, MOST_PLACES // min(longest, self.model.config.context)))
            part, order = order[:count], order[count:]
            for _ in self._turns([rows[row] for row in part], [texts[row] for row in part], settings, 64, on_slide):
                pass
        return [[text.said for text in texts[start : start + samples]] for start in range(0, len(rows), samples)]

    def stream(
        self, prompt: str, *, stop: Sequence[str] = (), on_slide: Callable[[], None] = lambda: None, **changes: Any
    ) -> Iterator[str]:
        """The text that `generate` gives for this prompt, piece by piece as it is written. Raises as `generate`."""
        settings, (ids,) = changed(self.settings, changes), self._encode([prompt])
        for (piece,) in self._turns([(ids, 0)], [self._text(ids, stop)], settings, 1, on_slide):
            if piece:
                yield piece

    def search(
        self, prompts: Sequence[str], *, max_tokens: int | None = None, **changes: Any
    ) -> list[list[Continuation]]:
        """The most probable continuations of each prompt, by beam search: the `n_best` of them, best first.

        Args:
            max_tokens: the most tokens of a continuation; None is the writer's own setting.
            changes: `decode.GenerationSettings` that differ from the paper's, such as `beam_size=8` or `n_best=3`.

        Raises:
            InputError: as `generate`, and where prompt and `max_tokens` do not fit the context.
        """
        settings = changed(PAPER, changes)
        if (longest := self.settings.max_tokens if max_tokens is None else max_tokens) < 1:
            raise InputError(f"max_tokens is {longest}", fix="give at least 1")
        results: list[list[Continuation]] = []
        for ids in self._encode(prompts):
            found = best_continuations(self.model, ids, settings, max_tokens=longest, **self._special)
            texts = [self._text(ids) for _ in found]
            results.append(
                [
                    Continuation(text.push(one.ids) + text.finish(), one.score, one.logprob, one.finished)
                    for text, one in zip(texts, found, strict=True)
                ]
            )
        return results

    def score(self, texts: Sequence[str]) -> list[TextScore]:
        """The log-probability that the model gives to each text.

        Raises:
            InputError: a text has fewer than two tokens, or holds what the vocabulary does not have.
        """
        rows = self._encode(texts, "text")
        for number, ids in enumerate(rows, 1):
            if len(ids) < 2:
                raise InputError("the text has one token, and the first is not scored", where=f"text {number}")
        return [
            TextScore(
                tuple(map(self.tokenizer.token, ids)),
                logprobs,
                len(text.encode()) - self._bytes_of(ids[0]),
            )
            for text, ids, logprobs in zip(texts, rows, score_texts(self.model, rows), strict=True)
        ]

    def _turns(
        self,
        rows: Sequence[tuple[list[int], int]],
        texts: Sequence["_Text"],
        settings: SamplingSettings,
        burst: int,
        on_slide: Callable[[], None],
    ) -> Iterator[list[str]]:
        """The new text of every row, turn after turn."""
        prompts, numbers = [prompt for prompt, _ in rows], [number for _, number in rows]
        for fresh in continuations(
            self.model, prompts, settings, numbers=numbers, burst=burst, on_slide=on_slide, **self._special
        ):
            yield [text.push(ids) for text, ids in zip(texts, fresh, strict=True)]
            if all(text.ended for text in texts):
                return
        yield [text.finish() for text in texts]

    @cached_property
    def _special(self) -> dict[str, Any]:
        """What ends a text, and what is never written: tokens that stand for no text."""
        eos = self.tokenizer.special_id("eos")
        others = {self.tokenizer.special_id(role) for role in ("pad", "bos", "unk", "mask")}
        return {"eos": eos, "forbidden": sorted(id for id in others if id is not None and id != eos)}

    def _text(self, prompt: list[int], stop: Sequence[str] = ()) -> "_Text":
        stops = [stop] if isinstance(stop, str) else stop
        return _Text(TextStream(self.tokenizer, prompt), [string for string in stops if string])

    def _bytes_of(self, id: int) -> int:
        """How many bytes the first token of a text spells; one that is part of a character is taken for one byte."""
        text = self.tokenizer.decode([id])
        return 1 if "\ufffd" in text else len(text.encode())

    def _encode(self, texts: Sequence[str], what: str = "prompt") -> list[list[int]]:
        """Raises InputError for a text that gives no tokens, or that the vocabulary cannot spell."""
        return encode_texts(self.tokenizer, texts, what, fix="give some text to go on from, such as a newline")


@dataclass
class _Text:
    """One text as it grows. What could be the beginning of a stop string is held back until that is known."""

    stream: TextStream
    stop: Sequence[str]
    said: str = ""
    held: str = ""
    ended: bool = False

    def push(self, ids: Sequence[int]) -> str:
        return self._give(self.stream.push(ids), last=False)

    def finish(self) -> str:
        return self._give(self.stream.flush(), last=True)

    def _give(self, text: str, *, last: bool) -> str:
        if self.ended:
            return ""
        held = self.held + text
        # The stop string that is complete first counts, however much text came at once; of several, the longest.
        found = [(at + len(stop), at) for stop in self.stop if (at := held.find(stop)) >= 0]
        self.ended = last or bool(found)
        sure = min(found)[1] if found else len(held) if last else len(held) - self._beginning(held)
        self.said, self.held = self.said + held[:sure], held[sure:]
        return held[:sure]

    def _beginning(self, text: str) -> int:
        """How many characters at the end of `text` could begin a stop string."""
        lengths = (n for stop in self.stop for n in range(1, len(stop)) if text.endswith(stop[:n]))
        return max(lengths, default=0)
