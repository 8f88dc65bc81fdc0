"""Where requests to a translator become jobs: texts encoded, settings checked, and the runners that search."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from plainformer.decode.batch import check_ids
from plainformer.decode.length_penalty import check_length
from plainformer.decode.limits import MOST_SOURCE
from plainformer.decode.parallel_search import searches_at_once
from plainformer.decode.settings import SettingError
from plainformer.decode.texts import locations
from plainformer.decode.translate_batches import SourceSearch
from plainformer.decode.translator import Translator
from plainformer.serve.beam_runner import BeamRunner, Buckets, Sentence
from plainformer.serve.limits import Limits
from plainformer.serve.scheduler import Runner, Threads

MOST_SETTINGS = 64  # whose masks and tables are remembered


class TranslatorDesk:
    """Of one translator."""

    def __init__(self, model: Translator, limits: Limits) -> None:
        at_once = searches_at_once()
        self._model, self._limits, self._at_once, self.threads = model, limits, at_once, Threads(at_once)
        self._buckets = Buckets(limits.hypotheses)
        self._searches = lru_cache(maxsize=MOST_SETTINGS)(self._search)

    def runners(self, wake: Callable[[], None]) -> Sequence[Runner]:
        return [BeamRunner(self._buckets, self._limits.hypotheses, self.threads, wake) for _ in range(self._at_once)]

    def warm(self, lengths: Sequence[int]) -> None:
        """Have what translates sources of these lengths compiled, with the model's own settings."""
        how = self._searches(())
        for length in lengths:
            self._buckets.find(how, length, self.threads)[1].result()

    def sentences(self, texts: Sequence[str], changes: dict[str, Any]) -> list[Sentence | None]:
        """The job of each text; None of a blank one. Raises InputError as `Translator.translate_n_best`."""
        changes, most = dict(changes), changes.get("max_source_tokens", MOST_SOURCE)
        changes.pop("max_source_tokens", None)
        how = self._searches(tuple(sorted((name, _hashable(value)) for name, value in changes.items())))
        wanted = [index for index, text in enumerate(texts) if text.strip()]
        places = locations(texts, None)
        rows = self._model.encode_sources([texts[index] for index in wanted], [places[index] for index in wanted], most)
        config = how.model.config
        check_ids(rows, config.source_vocab, config, "source")
        found: list[Sentence | None] = [None] * len(texts)
        for index, ids in zip(wanted, rows, strict=True):
            source = [*ids, how.closing]
            check_length(how.settings, how.bound(len(source)))
            found[index] = Sentence(how, source, how.bound(len(source)))
        return found

    def _search(self, changes: tuple[tuple[str, Any], ...]) -> SourceSearch:
        how, most = self._model.search_with(dict(changes)), self._limits.beam_size
        if most and how.settings.beam_size > most:
            raise SettingError("beam_size", f"is {how.settings.beam_size}", fix=f"give 1 to {most}")
        return how


def _hashable(value: Any) -> Any:
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(value) if isinstance(value, list) else value
