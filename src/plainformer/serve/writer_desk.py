"""Where requests to a language model become jobs: prompts encoded, settings checked, and the runner that draws."""

from collections.abc import Callable, Sequence
from typing import Any

from plainformer.decode.settings import SettingError
from plainformer.decode.text_generator import TextGenerator
from plainformer.serve.limits import Limits
from plainformer.serve.sampling_runner import Rooms, SamplingRunner, Writing, room_for
from plainformer.serve.scheduler import Runner, Threads


class WriterDesk:
    """Of one language model."""

    def __init__(self, model: TextGenerator, limits: Limits) -> None:
        self._model, self._limits, self.threads = model, limits, Threads(1)
        self._rooms = Rooms(model.decoder, limits)

    def runners(self, wake: Callable[[], None]) -> Sequence[Runner]:
        return [SamplingRunner(self._model.decoder, self._rooms, self._limits, self.threads, wake)]

    def warm(self, lengths: Sequence[int]) -> None:
        """Have what goes on with prompts of these lengths compiled, for the model's own settings."""
        if self._model.unusable is None:
            for length in lengths:
                most = self._model.settings.max_new_tokens(length)
                self._rooms.warm(room_for(length, most, self._model.decoder.config.context), self.threads).result()

    def writings(self, prompt: str, samples: int, stop: Sequence[str], changes: dict[str, Any]) -> list[Writing]:
        """The job of each sample. Raises InputError as `TextGenerator.generate`."""
        most = self._limits.max_tokens
        if most and (asked := self._model.settings_with(changes).max_tokens) > most:
            raise SettingError("max_tokens", f"is {asked:,}", fix=f"give 1 to {most:,}")
        context = self._model.decoder.config.context
        return [
            Writing(drawing, text, room_for(len(drawing.prompt), drawing.most, context))
            for drawing, text in self._model.drawings(prompt, samples=samples, stop=stop, **changes)
        ]
