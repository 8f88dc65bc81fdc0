"""Text in, text out: a loaded model with its tokenizers and its way of searching."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from plainformer.decode.batch import position_limit
from plainformer.decode.beam_tree import BeamTree, beam_tree
from plainformer.decode.constraints import Constraints
from plainformer.decode.limits import MOST_SOURCE
from plainformer.decode.own import check_named, settings_in
from plainformer.decode.protocols import Hypothesis
from plainformer.decode.score import PairScore, score_pairs
from plainformer.decode.settings import GenerationSettings, changed
from plainformer.decode.texts import locations
from plainformer.decode.translate_batches import SourceSearch, allowed_mask, generate
from plainformer.errors import InputError, some_of
from plainformer.folder import ModelFolder
from plainformer.given import LOADED, callables, instance, string, strings, whole
from plainformer.inspect.look import Look, Reading, Subject, look_at, most_probable, of_weights
from plainformer.inspect.tokens import tokens_of
from plainformer.models.transformer import Transformer
from plainformer.quantize.linear import Precision
from plainformer.quantize.prepare import prepare
from plainformer.spelling import option
from plainformer.tokenizer import Tokenizer

MOST_AT_ONCE = 1_000_000  # texts of a stream


@dataclass(frozen=True)
class Translation:
    """One translation.

    Attributes:
        text: the target sentence.
        score: its log-probability (nats) over the length penalty; what the n best are ranked by.
        logprob: its log-probability.
        finished: False where the length bound cut it.
    """

    text: str
    score: float
    logprob: float
    finished: bool


@dataclass(frozen=True)
class Translator:
    """A translation model ready for use: `plainformer.load(folder).translate(["I like pizza"])`.

    unusable: what is wrong with the settings of its folder, which then are not `settings`; who translates is told.
    """

    model: Transformer
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    settings: GenerationSettings
    weights: Precision = "float32"
    unusable: InputError | None = None

    def __post_init__(self) -> None:
        """Raises InputError for parts of another kind."""
        instance(self.model, Transformer, "model", LOADED)
        instance(self.source_tokenizer, Tokenizer, "source_tokenizer", LOADED)
        instance(self.target_tokenizer, Tokenizer, "target_tokenizer", LOADED)

    @classmethod
    def of(cls, content: ModelFolder) -> "Translator":
        """Raises InputError where the folder holds another kind of model."""
        if not isinstance(content.model, Transformer):
            raise InputError("this is not a translation model")
        settings, unusable = settings_in(
            content, GenerationSettings(), content.model.config.target_vocab, position_limit(content.model.config)
        )
        return cls(content.model, content.source_tokenizer, content.target_tokenizer, settings, unusable=unusable)

    def translate(self, texts: Sequence[str], **changes: Any) -> list[str]:
        """The best translation of every text, in order; of a blank one, an empty text.

        Args:
            changes: settings that differ from the model's own, such as `beam_size=5`, and what `translate_n_best`
                takes.

        Raises:
            InputError: a setting is unknown or out of range, be it the folder's, one string is given instead of a list,
                or a text is too long.
        """
        return [options[0].text if options else "" for options in self.translate_n_best(texts, **changes)]

    def translate_n_best(
        self,
        texts: Sequence[str],
        *,
        where: Sequence[str] | None = None,
        max_source_tokens: int | None = MOST_SOURCE,
        expected: int | None = None,
        progress: Callable[[int, int], None] | None = None,
        **changes: Any,
    ) -> list[list[Translation]]:
        """The `n_best` translations of every text, best first; an empty list for a blank text.

        Args:
            where: the place of each text, for errors; by number if not given.
            max_source_tokens: a text of more tokens is refused, before any is translated; None: only one for which the
                model has no positions.
            expected: how many texts are to come from now on, these included; these alone, if not given. For many it
                pays to compile more.
            progress: called whenever some are done, with the numbers of texts done and of all.
            changes: as for `translate`.

        Raises:
            InputError: as `translate`.
        """
        texts = strings(texts)
        if expected is not None:
            whole(expected, "expected")
        if progress is not None:
            callables(progress=progress)
        settings = self._settings(changes)
        places = locations(texts, where)
        wanted = [index for index, text in enumerate(texts) if text.strip()]
        sources = self.encode_sources(
            [texts[index] for index in wanted], [places[index] for index in wanted], max_source_tokens
        )
        found = generate(
            self._decoder,
            sources,
            settings,
            **self._special(),
            allowed_tokens=self._sayable(),
            expected=expected,
            progress=progress,
        )
        results: list[list[Translation]] = [[] for _ in texts]
        for index, hypotheses in zip(wanted, found, strict=True):
            results[index] = self.translations(hypotheses)
        return results

    def encode_sources(
        self, texts: Sequence[str], where: Sequence[str], max_source_tokens: int | None = MOST_SOURCE
    ) -> list[list[int]]:
        """The ids of texts that are not blank, without their ends. Raises InputError for one that is too long."""
        sources = self.source_tokenizer.encode_batch(texts)
        self._check_fit(sources, where, max_source_tokens)
        return sources

    def search_with(self, changes: dict[str, Any]) -> SourceSearch:
        """What sources are searched with, where so much differs from the model's own settings.

        Raises:
            InputError: these settings will not do, or the folder's.
        """
        settings = self._settings(changes)
        return SourceSearch.of(self._decoder, settings, **self._special(), allowed_tokens=self._sayable())

    def translations(self, hypotheses: Sequence[Hypothesis]) -> list[Translation]:
        """What was found, as texts."""
        rendered = self.target_tokenizer.decode_batch([list(hypothesis.ids) for hypothesis in hypotheses])
        return [
            Translation(text, hypothesis.score, hypothesis.logprob, hypothesis.finished)
            for text, hypothesis in zip(rendered, hypotheses, strict=True)
        ]

    def look(self, text: str, target: str | None = None, *, top: int = 5, **changes: Any) -> Look:
        """The text in this model: its tokens, every array, the lens, and the tree of the beam.

        Args:
            target: the translation to look at; the one that is found, if not given, and then with the search's tree.
            top: the most probable tokens that are kept of each position.
            changes: as for `translate`.

        Raises:
            InputError: as `translate`, and for a blank text.
        """
        read = self.read(text)
        ids, settings, tree = read.ids[:-1], self._settings(changes), None
        special, notes = self._special(), [*of_weights(self.weights), *read.notes]
        if target is None:
            tree, found, differs = self._searched(ids, settings)
            notes += differs
            chosen = [*found.ids, *([self.target_tokenizer.eos_id] if found.finished else [])]
        else:
            chosen = [*self.target_tokenizer.encode(string(target, "target")), special["eos"]]
            self._check_fit([chosen[:-1]], ["target"], MOST_SOURCE, "look at a shorter one")
        inputs = read.ids, [special["bos"], *chosen[:-1]]
        whose = self.model, "translation", inputs, chosen, self.target_tokenizer, most_probable(top), self
        subject = Subject(*whose, settings=settings)
        tokens = tokens_of(self.source_tokenizer, inputs[0]), tokens_of(self.target_tokenizer, inputs[1])
        return look_at(subject, text, *tokens, beam=tree, notes=tuple(notes))

    def read(self, text: str) -> Reading:
        """What the model reads of a text, its end of sentence among it. Raises InputError as `look`."""
        if not string(text, "text").strip():
            raise InputError("the text is empty", fix="give some text")
        ids = self.source_tokenizer.encode(text)
        self._check_fit([ids], ["text"], MOST_SOURCE, "look at one of its sentences")
        pieces = self.source_tokenizer.unknown_pieces(text)
        unknown, notes = tuple(piece.strip() or piece for piece in pieces), ()
        if unknown:
            said = some_of([repr(piece) for piece in unknown])
            notes = (f"the model's vocabulary does not have {said}, which is read as unknown",)
        return Reading([*ids, self.source_tokenizer.eos_id], unknown=unknown, notes=notes)

    def _settings(self, changes: dict[str, Any]) -> GenerationSettings:
        if self.unusable is not None:
            raise self.unusable
        settings = changed(self.settings, changes)
        check_named(settings, self.target_tokenizer, self.model.config.target_vocab)
        return settings

    def _searched(self, ids: list[int], settings: GenerationSettings) -> tuple[BeamTree, Hypothesis, tuple[str, ...]]:
        """The tree of a search, what the search itself found, and what there is to say where they differ."""
        special, config = self._special(), self.model.config
        allowed, closed = self._sayable(), [*ids, special["source_eos"]]
        found = generate(self.model, [ids], settings, **special, allowed_tokens=allowed)[0]
        ends = Constraints.of(settings, bos=special["bos"], eos=special["eos"], pad=special["pad"]).ends
        mask = allowed_mask(allowed, ends, settings.suppress_tokens, config.target_vocab)
        bound = settings.bound(len(closed), position_limit(config))
        special.pop("source_eos")
        tree = beam_tree(self.model, closed, settings, bound, **special, allowed_tokens=mask)
        if [one.ids for one in tree.hypotheses] == [one.ids for one in found]:
            return tree, found[0], ()
        what = (
            "two hypotheses are equal but for roundings: the tree, which has no cache, ends in another than the search"
        )
        return tree, found[0], (what,)

    def stream(self, texts: Iterable[str], *, batch: int = 1, **changes: Any) -> Iterator[str]:
        """Translations one by one, `batch` texts being read and translated at once: more are faster, and come later.

        Raises:
            InputError: as `translate`.
        """
        if whole(batch, "batch") < 1:
            raise InputError(f"{batch} texts at once are asked for", where="batch", fix="give at least 1")
        remaining, done = iter(texts if isinstance(texts, Iterator) else strings(texts)), 0
        while chunk := list(islice(remaining, min(batch, MOST_AT_ONCE))):
            where = [f"text {number}" for number in range(done + 1, done + len(chunk) + 1)]
            yield from self.translate(chunk, where=where, **changes)
            done += len(chunk)

    def score(
        self, sources: Sequence[str], targets: Sequence[str], *, where: Sequence[str] | None = None
    ) -> list[PairScore]:
        """The log-probability that the model gives to each target, given its source. Of an empty target that is the
        end's; an empty source is one like any other.

        Args:
            where: the place of each pair, for errors; by number if not given.

        Raises:
            InputError: sources or targets are no list of texts, one list is longer than the other, or a text is of more
                tokens than are taken at once.
        """
        sources, targets = strings(sources, "source"), strings(targets, "target")
        if len(sources) != len(targets):
            what = f"there are {len(sources):,} sources and {len(targets):,} targets"
            raise InputError(what, fix="give one target for each source")
        places, fix = locations(sources, where, "pair"), "split it into sentences"
        sides = self.source_tokenizer.encode_batch(sources), self.target_tokenizer.encode_batch(targets)
        for rows in sides:
            self._check_fit(rows, places, MOST_SOURCE, fix)
        return score_pairs(self.model, *sides, **self._special())

    def check_lengths(
        self,
        texts: Sequence[str],
        where: Sequence[str],
        most: int,
        *,
        tokenizer: Tokenizer | None = None,
        fix: str | None = None,
    ) -> None:
        """Refuse a text of more than `most` tokens, or than the model has positions for: attention grows with the
        square of the length, and a model is no good at lengths that it has never seen.

        Args:
            tokenizer: of the side that the texts are of; the source's, if not given.
            fix: what to do about a text that is too long for `most`.

        Raises:
            InputError: naming the first such text by its place in `where`.
        """
        texts, places = strings(texts), locations(strings(texts), where)
        rows = (tokenizer or self.source_tokenizer).encode_batch(texts)
        self._check_fit(rows, places, whole(most, "most"), fix)

    def _check_fit(
        self, rows: Sequence[Sequence[int]], places: Sequence[str], most: int | None, fix: str | None = None
    ) -> None:
        """`check_lengths` of ids, without a bound of ours if `most` is None."""
        limit = position_limit(self.model.config)
        fix = fix or f"split it into sentences, or raise {option('max_source_tokens', python='max_source_tokens')}"
        if most is not None and whole(most, "max_source_tokens") < 1:
            raise InputError(
                f"{most} tokens of a text are to be taken", where="max_source_tokens", fix="give 1 or more"
            )
        if limit is not None and (most is None or limit - 1 < most):  # the end of sentence takes one
            most, fix = limit - 1, "split it into sentences: the model has no more positions"
        for place, ids in zip(places, rows, strict=True):
            if most is not None and len(ids) > most:
                what = f"the line has {len(ids):,} tokens, and at most {most:,} are taken at once"
                raise InputError(what, where=place, fix=fix)

    @cached_property
    def _decoder(self) -> Transformer:
        """The model that translates. In float32 it is the one that was loaded: a beam has rows enough for its order."""
        return self.model if self.weights == "float32" else prepare(self.model, self.weights)

    def _sayable(self) -> Collection[int] | None:
        """All tokens but the one for what the vocabulary lacks: it stands for no text, and would be dropped unseen."""
        unknown, tokens = self.target_tokenizer.unk_id, self.target_tokenizer.vocab_size
        rows = self.model.config.target_vocab
        if unknown is None and tokens >= rows:
            return None
        return [id for id in range(min(tokens, rows)) if id != unknown]

    def _special(self) -> dict[str, Any]:
        return {
            "bos": self.target_tokenizer.bos_id,
            "eos": self.target_tokenizer.eos_id,
            "pad": self.target_tokenizer.pad_id,
            "source_eos": self.source_tokenizer.eos_id,
        }
