"""Lines that nothing can be made of: a command ends at the first, or leaves them empty, counts them and says so."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeVar

import typer

from plainformer.errors import InputError

BAD_LINES = 3
"""The exit code of a command that has done all its work but for some lines."""

NAMED = 5  # of the bad lines, in the end

OnBadLine = Literal["stop", "empty"]
OnBadLineOption = Annotated[
    OnBadLine,
    typer.Option(
        "--on-bad-line",
        metavar="stop|empty",
        help="At a line that is no text or that the model cannot take: stop, or give an empty one, and end with 3.",
    ),
]

Answer = TypeVar("Answer")


@dataclass
class BadLines:
    """What becomes of bad lines: with `on` of `stop` the first is an error, once the lines before it are answered; with
    `empty` it has no answer, and all are counted."""

    on: OnBadLine = "stop"
    count: int = 0
    first: list[str] = field(default_factory=list)
    _unreadable: dict[str, InputError] = field(default_factory=dict)  # by place, until their chunk is answered

    def unreadable(self, error: InputError) -> None:
        """Take note of a line that is no text. Raises the error itself where the command is to stop."""
        if self.on == "stop":
            raise error
        self._unreadable[str(error.where)] = error

    def is_unreadable(self, place: str) -> bool:
        """Whether the line that came last from there, as an empty one, was no text."""
        return place in self._unreadable

    def answers(
        self,
        where: Sequence[str],
        lines: Sequence[str],
        answer: Callable[[Sequence[str], Sequence[str]], Sequence[Answer]],
        check: Callable[[str, str], object],
    ) -> Iterator[tuple[str, str, Answer | None]]:
        """The place, the text and the answer of each line, in order; of a bad one the answer is None.

        Args:
            answer: the answers to places and lines; refuses a bad one by an error with its place, before it has worked.
            check: of a place and a line alone, refuses it likewise.

        Raises:
            InputError: a line is bad, and the command is to stop; those before it come first.
        """
        wrong = {index: error for index, place in enumerate(where) if (error := self._unreadable.pop(place, None))}
        end = len(lines)
        try:
            found = self._answered(where, lines, wrong, end, answer)
        except InputError as error:
            if error.where not in where:
                raise  # it is not a line that is wrong
            wrong |= _refused(where, lines, wrong, check)
            end = min(wrong) if self.on == "stop" and wrong else end
            found = self._answered(where, lines, wrong, end, answer)
        for index, (place, line) in enumerate(zip(where[:end], lines[:end], strict=True)):
            if index in wrong:
                self._note(wrong[index])
            yield place, line, found.get(index)
        if end < len(lines):
            raise wrong[end]

    def _answered(
        self,
        where: Sequence[str],
        lines: Sequence[str],
        wrong: dict[int, InputError],
        end: int,
        answer: Callable[[Sequence[str], Sequence[str]], Sequence[Answer]],
    ) -> dict[int, Answer]:
        """The answers to the lines before `end` that are not wrong, by number."""
        sound = [index for index in range(end) if index not in wrong]
        found = answer([where[index] for index in sound], [lines[index] for index in sound]) if sound else []
        return dict(zip(sound, found, strict=True))

    def _note(self, error: InputError) -> None:
        self.count += 1
        if len(self.first) < NAMED:
            self.first.append(f"{error.where}: {error.what}")

    def end(self) -> None:
        """Say how many lines were bad, and which were the first; the command then ends with `BAD_LINES`."""
        if not self.count:
            return
        many = "1 line was bad and left" if self.count == 1 else f"{self.count:,} lines were bad and left"
        more = "" if self.count == len(self.first) else ", the first of them"
        typer.echo("\n  ".join([f"{many} empty{more}:", *self.first]), err=True)
        raise typer.Exit(BAD_LINES)


def _refused(
    where: Sequence[str], lines: Sequence[str], wrong: dict[int, InputError], check: Callable[[str, str], object]
) -> dict[int, InputError]:
    """What is wrong with each wrong line that is not known to be wrong yet."""
    found: dict[int, InputError] = {}
    for index, (place, line) in enumerate(zip(where, lines, strict=True)):
        if index in wrong:
            continue
        try:
            check(place, line)
        except InputError as error:
            found[index] = error
    return found
