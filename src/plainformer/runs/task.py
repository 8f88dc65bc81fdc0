"""What a task brings to a training run: `runs.run` does the same for all of them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

from plainformer.data.part import Part
from plainformer.folder import AnyConfig, Model, ModelFolder
from plainformer.runs.pretrained import Pretrained
from plainformer.shapes import PRNGKeyArray
from plainformer.tokenizer import Tokenizer
from plainformer.train.step import Objective


class Console(NamedTuple):
    """Where a run says what it does.

    say: a line that stays. progress: how much of something (its name, done, all) is done.
    """

    say: Callable[[str], None] = print
    progress: Callable[[str, int, int], None] = lambda what, done, total: None


@dataclass(frozen=True)
class Tokenizers:
    """The tokenizers of a run: source and target of a translator; with one vocabulary, one object twice."""

    source: Tokenizer
    target: Tokenizer

    def save(self, folder: Path) -> None:
        self.source.save(folder / "tokenizer.json")
        if self.target is not self.source:
            self.target.save(folder / "target_tokenizer.json")

    @classmethod
    def of(cls, pretrained: Pretrained, console: Console) -> "Tokenizers":
        """The tokenizers of the model that training starts from."""
        source, target = pretrained.content.source_tokenizer, pretrained.content.target_tokenizer
        second = "" if target is source else f" and {target.vocab_size:,}"
        console.say(f"tokenizer: that of the model it starts from, {source.vocab_size:,}{second} tokens")
        return cls(source, target)

    @classmethod
    def load(cls, folder: Path) -> "Tokenizers":
        source, second = Tokenizer.load(folder / "tokenizer.json"), folder / "target_tokenizer.json"
        return cls(source, Tokenizer.load(second) if Tokenizer.saved_at(second) else source)


@dataclass(frozen=True)
class PreparedTask:
    """A task made ready for the loop.

    Attributes:
        config: of the model to be trained.
        objective: what it learns.
        batches: of the batches of steps first to last, the part that a process makes.
        dev_batches: the batches of the development set.
        content: a trained model as the folder that is kept of it.
        describe: more figures of the development set, from its mean NLL (nats a token).
        bleu: BLEU of a model's translations of the development set, for the tasks that have it.
        samples: lines to show of what a model makes of some of the development set, for the tasks that have them.
        shapes: how many shapes of batch there are, each of which is a program to compile.
        initial: the model to start from, where it is not a new one.
        new_parts: parts of the model that the one to start from did not have.
        unit: what the throughput counts.
    """

    config: AnyConfig
    objective: Objective
    batches: Callable[[int, int, Part], Iterator[Any]]
    dev_batches: Callable[[], Iterable[Any]]
    content: Callable[[Model], ModelFolder]
    describe: Callable[[float], Mapping[str, float]] = field(default=lambda nll: {})
    bleu: Callable[[Any], float] | None = None
    samples: Callable[[Any], Iterable[str]] | None = None
    shapes: int = 1
    initial: Callable[[AnyConfig, PRNGKeyArray], Model] | None = None
    new_parts: tuple[str, ...] = ()
    unit: str = "target tokens"


@runtime_checkable
class Task(Protocol):
    """A recipe's text, read.

    pretrained: the model that training starts from, where it is not a new one.
    """

    pretrained: Pretrained | None

    def fingerprints(self) -> dict[str, str]:
        """Of the parts of the text that training depends on: "train", "dev"."""
        ...

    def held_out(self) -> Mapping[str, str]:
        """By name ("dev", "test") what was held out of the training set, as the lines of a file of the run."""
        ...

    def learn_tokenizers(self, console: Console) -> Tokenizers:
        """Tokenizers as the recipe wants them. Raises InputError where the text will not do."""
        ...

    def check_needs(self) -> None:
        """Raise InputError now where something would be missing only at the end of the training."""
        ...

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> PreparedTask:
        """Batches and objective, for a batch that is spread over `devices`. Raises InputError as above."""
        ...
