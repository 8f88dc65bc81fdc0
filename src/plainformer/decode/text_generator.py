"""A prompt in, a text out: a language model with its tokenizer."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from plainformer.decode.beam_language_model import best_continuations
from plainformer.decode.growing_text import GrowingText
from plainformer.decode.own import check_named, settings_in, silent_ids
from plainformer.decode.sampling_loop import Drawing, continuations
from plainformer.decode.score import MOST_TOP, most_probable_of_texts, perplexity, score_texts
from plainformer.decode.settings import PAPER, SamplingSettings, SettingError, changed
from plainformer.decode.sliding_window import window_start
from plainformer.decode.texts import encode_texts, locations
from plainformer.errors import InputError, WorkError
from plainformer.folder import ModelFolder
from plainformer.given import LOADED, callables, instance, string, strings, whole
from plainformer.inspect.look import Look, Reading, Subject, look_at, most_probable, of_weights, reading_of
from plainformer.inspect.tokens import tokens_of
from plainformer.models.language_model import LanguageModel
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare
from plainformer.tokenizer import Tokenizer
from plainformer.tokenizer.stream import TextStream

MOST_ROWS = 64  # written together
MOST_PLACES = 2**14  # of all of them, whose keys and values are kept: what bounds memory
MOST_SAMPLES = 100_000


class Chunk(NamedTuple):
    """What is added to one of the samples of a prompt.

    Attributes:
        sample: which, counted from 0.
        text: the new text; there may be none yet, though there are new tokens.
        ids: the new tokens.
        finished: None while the sample goes on; with its last chunk True, or False where `max_tokens` cut it.
    """

    sample: int
    text: str
    ids: tuple[int, ...]
    finished: bool | None

    @property
    def tokens(self) -> int:
        """How many tokens are new."""
        return len(self.ids)


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
        most_probable: the most probable ids in the place of each scored token, and their log-probabilities, best first;
            none where they are not asked for.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[float, ...]
    scored_bytes: int
    most_probable: tuple[tuple[tuple[int, float], ...], ...] = ()

    @property
    def logprob(self) -> float:
        """The sum of `logprobs`."""
        return math.fsum(self.logprobs)

    @property
    def perplexity(self) -> float:
        """As `score.perplexity`."""
        return perplexity(self.logprob, len(self.logprobs))

    @property
    def bits_per_byte(self) -> float:
        """Bits that a byte of the text costs; the same unit whatever the tokenizer."""
        return (0.0 - self.logprob) / math.log(2.0) / self.scored_bytes


@dataclass(frozen=True)
class TextGenerator:
    """A language model ready for use: `TextGenerator(model, tokenizer).generate(["Once upon a time"])`.

    unusable: what is wrong with the settings of its folder, which then are not `settings`; generating raises it.
    """

    model: LanguageModel
    tokenizer: Tokenizer
    settings: SamplingSettings = field(default_factory=SamplingSettings)
    weights: Precision = "float32"
    unusable: InputError | None = None

    def __post_init__(self) -> None:
        """Raises InputError for parts of another kind."""
        instance(self.model, LanguageModel, "model", LOADED)
        instance(self.tokenizer, Tokenizer, "tokenizer", LOADED)

    @classmethod
    def of(cls, content: ModelFolder) -> "TextGenerator":
        """Raises InputError where the folder holds another kind of model."""
        if not isinstance(content.model, LanguageModel):
            raise InputError("this is not a language model")
        settings, unusable = settings_in(content, SamplingSettings(), content.model.config.vocab)
        return cls(content.model, content.source_tokenizer, settings, unusable=unusable)

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
                range, be it the folder's.
            WorkError: the model's outputs are not finite.
        """
        callables(on_slide=on_slide)
        settings, numbers = self.settings_with(changes), _numbers(samples)
        rows = [(prompt, number) for prompt in self._encode(prompts) for number in numbers]
        texts = [self._text(prompt, stop) for prompt, _ in rows]
        # Like lengths together: all rows stand at the same place, and the shortest prompt says where they begin.
        order = sorted(range(len(rows)), key=lambda row: len(rows[row][0]))
        while order:
            count = self._most_rows(max(len(rows[row][0]) for row in order[:MOST_ROWS]) + settings.max_tokens)
            part, order = order[:count], order[count:]
            for _ in self._turns([rows[row] for row in part], [texts[row] for row in part], settings, 64, on_slide):
                pass
        return [[text.said for text in texts[start : start + samples]] for start in range(0, len(rows), samples)]

    def stream(
        self, prompt: str, *, stop: Sequence[str] = (), on_slide: Callable[[], None] = lambda: None, **changes: Any
    ) -> Iterator[str]:
        """The text that `generate` gives for this prompt, chunk by chunk as it is written. Raises as `generate`."""
        for chunk in self.stream_samples(prompt, stop=stop, on_slide=on_slide, **changes):
            if chunk.text:
                yield chunk.text

    def stream_samples(
        self,
        prompt: str,
        *,
        samples: int = 1,
        stop: Sequence[str] = (),
        on_slide: Callable[[], None] = lambda: None,
        **changes: Any,
    ) -> Iterator[Chunk]:
        """The texts that `generate` gives for this prompt, sample after sample, chunk by chunk. Raises as `generate`.

        Samples are written together. The first is given out as it is written; what there is of the next then follows
        at once, and so on.
        """
        callables(on_slide=on_slide)
        settings, (ids,) = self.settings_with(changes), self._encode([string(prompt, "prompt")])
        rows = [(ids, number) for number in _numbers(samples)]
        count = self._most_rows(len(ids) + settings.max_tokens)
        for start in range(0, samples, count):
            part = rows[start : start + count]
            texts = [self._text(ids, stop) for _ in part]
            at = length = tokens = 0  # which of the part is being given out, and what of it has been
            for _ in self._turns(part, texts, settings, 1, on_slide):
                while at < len(part):
                    text = texts[at]
                    finished = text.stopped or text.tokens < settings.max_new_tokens(len(ids)) if text.ended else None
                    yield Chunk(start + at, text.said[length:], tuple(text.ids[tokens:]), finished)
                    length, tokens = len(text.said), text.tokens
                    if not text.ended:
                        break
                    at, length, tokens = at + 1, 0, 0

    def drawings(
        self, prompt: str, *, samples: int = 1, stop: Sequence[str] = (), **changes: Any
    ) -> list[tuple[Drawing, GrowingText]]:
        """What each of the samples of a prompt is drawn by, wherever that is done, and the text that it becomes. Takes
        and raises as `generate`."""
        settings, (ids,) = self.settings_with(changes), self._encode([string(prompt, "prompt")])
        return [
            (Drawing.of(self.decoder, ids, settings, number=number, **self._special), self._text(ids, stop))
            for number in _numbers(samples)
        ]

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
        own = self.settings_with({})
        settings = changed(PAPER, {"end_tokens": own.end_tokens, "suppress_tokens": own.suppress_tokens} | changes)
        check_named(settings, self.tokenizer, self.model.config.vocab)
        if (longest := self.settings.max_tokens if max_tokens is None else whole(max_tokens, "max_tokens")) < 1:
            raise SettingError("max_tokens", f"is {longest}", fix="give at least 1")
        results: list[list[Continuation]] = []
        for ids in self._encode(prompts):
            found = best_continuations(self.decoder, ids, settings, max_tokens=longest, **self._special)
            texts = [self._text(ids) for _ in found]
            results.append(
                [
                    Continuation(text.push(one.ids) + text.finish(), one.score, one.logprob, one.finished)
                    for text, one in zip(texts, found, strict=True)
                ]
            )
        return results

    def look(self, text: str, *, top: int = 5) -> Look:
        """The text in this model: its tokens, every array, the lens, and what could come after each token.

        Of a text that is longer than the context the window is looked at in which `generate` would go on
        (`decode.sliding_window`), its last tokens, which `notes` say.

        Args:
            top: the most probable next tokens that are kept of each position.

        Raises:
            InputError: the text is empty or holds what the vocabulary does not have.
        """
        read = self.read(text)
        subject = Subject(self.model, "text", (read.ids,), [], self.tokenizer, most_probable(top), self)
        notes = (*read.notes, *of_weights(self.weights))
        return look_at(subject, text, (), tokens_of(self.tokenizer, read.ids), notes=notes)

    def read(self, text: str) -> Reading:
        """What the model reads of a text. Raises InputError as `look`."""
        ids = self._encode([string(text, "text")], "text")[0]
        return reading_of(ids, len(ids) - window_start(len(ids), self.model.config.context), "tail")

    def score(self, texts: Sequence[str], *, where: Sequence[str] | None = None, top: int = 0) -> list[TextScore]:
        """The log-probability that the model gives to each text.

        Args:
            where: the place of each text, for an error.
            top: so many of the most probable tokens are told of each place.

        Raises:
            InputError: `top` is out of range; a text has fewer than two tokens, or holds what the vocabulary lacks.
            WorkError: the model's outputs are not finite.
        """
        texts = strings(texts)
        rows, places = self.encode_scored(texts, where=where), locations(texts, where)
        return self._scored(rows, [len(text.encode()) for text in texts], places, top)

    def score_ids(self, rows: Sequence[Sequence[int]], *, top: int = 0) -> list[TextScore]:
        """`score` of the tokens of texts, which need not be those that `encode_scored` gives: of drawn ones, say.

        Raises:
            InputError: as `score`, or an id is not in the vocabulary.
            WorkError: as `score`.
        """
        places = [f"text {number}" for number in range(1, len(rows) + 1)]
        _check_scored(rows, places)
        return self._scored(rows, [len(self.tokenizer.decode(list(ids)).encode()) for ids in rows], places, top)

    def _scored(
        self, rows: Sequence[Sequence[int]], sizes: Sequence[int], places: Sequence[str], top: int
    ) -> list[TextScore]:
        """`sizes`: how many bytes each text has."""
        if not 0 <= whole(top, "top") <= MOST_TOP:
            raise InputError(f"{top} tokens of each place are asked for", where="top", fix=f"give 0 to {MOST_TOP}")
        ranked = most_probable_of_texts(self.model, rows) if top else [()] * len(rows)
        scores = [
            TextScore(
                tuple(map(self.tokenizer.token, ids)),
                logprobs,
                size - self._bytes_of(ids[0]),
                tuple(place[:top] for place in best),
            )
            for size, ids, logprobs, best in zip(sizes, rows, score_texts(self.model, rows), ranked, strict=True)
        ]
        for place, score in zip(places, scores, strict=True):
            if not all(map(math.isfinite, score.logprobs)):
                fix = "check that its weights are finite"
                raise WorkError("the model's log-probabilities are not finite", where=place, fix=fix)
        return scores

    def encode_scored(self, texts: Sequence[str], *, where: Sequence[str] | None = None) -> list[list[int]]:
        """The ids of each text, as `score` scores them. Takes it and raises InputError as that does."""
        rows = self._encode(texts, "text", where)
        _check_scored(rows, locations(texts, where))
        return rows

    def _turns(
        self,
        rows: Sequence[tuple[list[int], int]],
        texts: Sequence[GrowingText],
        settings: SamplingSettings,
        burst: int,
        on_slide: Callable[[], None],
    ) -> Iterator[list[str]]:
        """The new text of every row, turn after turn."""
        prompts, numbers = [prompt for prompt, _ in rows], [number for _, number in rows]
        for fresh in continuations(
            self.decoder, prompts, settings, numbers=numbers, burst=burst, on_slide=on_slide, **self._special
        ):
            yield [text.push(ids) for text, ids in zip(texts, fresh, strict=True)]
            if all(text.ended for text in texts):
                return
        yield [text.finish() for text in texts]

    @cached_property
    def decoder(self) -> LanguageModel:
        """The model that generates."""
        return prepare(self.model, self.weights)

    @cached_property
    def _special(self) -> dict[str, Any]:
        """What ends a text, and what is never written: tokens that stand for no text."""
        never = silent_ids(self.tokenizer, self.model.config.vocab) - set(self.settings.end_tokens)
        return {"eos": self.tokenizer.special_id("eos"), "suppress_tokens": sorted(never)}

    def settings_with(self, changes: dict[str, Any]) -> SamplingSettings:
        """The writer's own with some replaced; a bound of what is written takes the place of one that counts the
        prompt.

        Raises:
            InputError: these settings will not do, or the folder's.
        """
        if self.unusable is not None:
            raise self.unusable
        settings = changed(self.settings, {"max_length": 0} | changes if "max_tokens" in changes else changes)
        check_named(settings, self.tokenizer, self.model.config.vocab)
        return settings

    def _text(self, prompt: list[int], stop: Sequence[str] = ()) -> GrowingText:
        stops = [stop] if isinstance(stop, str) else strings(stop, "stop string", "stop")
        return GrowingText(TextStream(self.tokenizer, prompt), [string for string in stops if string])

    def _bytes_of(self, id: int) -> int:
        """How many bytes the first token of a text spells; one that is part of a character is taken for one byte."""
        text = self.tokenizer.decode([id])
        return 1 if "\ufffd" in text else len(text.encode())

    def _most_rows(self, longest: int) -> int:
        """How many texts of up to `longest` tokens are written together."""
        return min(MOST_ROWS, max(1, MOST_PLACES // min(longest, self.model.config.context)))

    def _encode(
        self, texts: Sequence[str], what: str = "prompt", where: Sequence[str] | None = None
    ) -> list[list[int]]:
        """The ids of each text, behind bos where the tokenizer's file puts it there.

        Raises InputError for a text that gives no tokens, or that the vocabulary cannot spell.
        """
        fix = "give some text to go on from, such as a newline" if what == "prompt" else "give some text"
        rows = encode_texts(self.tokenizer, texts, what, where=where, fix=fix)
        return [[self.tokenizer.bos_id, *ids] for ids in rows] if self.tokenizer.leads_with_bos else rows


def _check_scored(rows: Sequence[Sequence[int]], places: Sequence[str]) -> None:
    """Raises InputError for a text of which nothing would be scored."""
    for place, ids in zip(places, rows, strict=True):
        if len(ids) < 2:
            fix = "give a longer text"
            raise InputError("the text has one token, and the first is not scored", where=place, fix=fix)


def _numbers(samples: int) -> range:
    """Raises InputError where there are none, or more than memory holds."""
    if not 1 <= whole(samples, "samples") <= MOST_SAMPLES:
        raise InputError(f"{samples:,} samples were asked for", fix=f"give 1 to {MOST_SAMPLES:,}")
    return range(samples)
