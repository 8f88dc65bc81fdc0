"""The task of a classifier: labelled texts to a vocabulary, batches and an objective, with a new encoder or an old."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from plainformer.data.labelled import Labelled, read_labelled
from plainformer.data.labelled_loader import LabelledLoader
from plainformer.data.labelled_report import CleanedLabelled, clean_labelled
from plainformer.data.labels import check_counts, check_labels, check_readable, label_names
from plainformer.decode.texts import enclose
from plainformer.errors import InputError
from plainformer.folder import Model, ModelFolder
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.objective import ClassificationObjective
from plainformer.recipe import ClassificationRecipe
from plainformer.runs.held_out import divided, kept_labelled, split_labelled, split_line
from plainformer.runs.pretrained import check_room, open_pretrained
from plainformer.runs.task import Console, PreparedTask, Tokenizers
from plainformer.runs.text import learn_tokenizer
from plainformer.shapes import PRNGKeyArray


class ClassificationTask:
    """The labelled texts of a recipe, and the model that it starts from.

    Raises:
        InputError: a set is missing or broken, a label is unknown, or there is no such model.
    """

    def __init__(self, recipe: ClassificationRecipe) -> None:
        self.recipe, data = recipe, recipe.data
        whole = read_labelled(data.path, data.train)
        self.parts = split_labelled(whole, data)
        self.train, self.dev, self.test = divided(
            whole,
            self.parts,
            dev=lambda: read_labelled(data.path, data.dev or ""),
            test=lambda: read_labelled(data.path, data.test) if data.test else None,
        )
        self.notes = [*whole.notes, *(note for part in (self.dev, self.test) if part for note in part.notes)]
        with _placed(data.train):
            self.labels = label_names(self.train)
            check_counts(self.train, data.min_label_count)
        for held_out in (self.dev, self.test):
            if held_out is not None:
                check_labels(held_out, self.labels)
        self.pretrained = open_pretrained(recipe.model, MaskedLanguageModel)
        if self.pretrained and data.max_tokens and self._is_bounded() and data.truncate == "no":
            check_room(self.pretrained.config.max_text_tokens, data.max_tokens)

    def fingerprints(self) -> dict[str, str]:
        held_out = {"test": self.test.fingerprint()} if self.test and self.parts.test else {}
        return {"train": self.train.fingerprint(), "dev": self.dev.fingerprint(), **held_out}

    def held_out(self) -> dict[str, str]:
        found = {"dev": self.dev if self.parts.dev else None, "test": self.test if self.parts.test else None}
        return {name: kept_labelled(part) for name, part in found.items() if part}

    def learn_tokenizers(self, console: Console) -> Tokenizers:
        if self.pretrained:
            return Tokenizers.of(self.pretrained, console)
        tokenizer = learn_tokenizer(self.recipe.tokenizer, self.train.texts)
        console.say(f"tokenizer: {self.recipe.tokenizer.kind}, {tokenizer.vocab_size:,} tokens")
        return Tokenizers(tokenizer, tokenizer)

    def check_needs(self) -> None:
        pass

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> PreparedTask:
        recipe, config = self.recipe, self._config(tokenizers)
        for note in self.notes:
            console.say(note)
        if self.parts.dev or self.parts.test:
            console.say(split_line(recipe.data.train, self.parts, "texts"))
        self._say_length(config, console)
        if self.test:  # now, and not at the end of the training
            most = config.max_text_tokens if recipe.data.truncate == "no" else None
            check_readable(self.test, tokenizers.source.encode_batch(self.test.texts), most)
        train_set = self._clean("train", self.train, tokenizers, console)
        dev_set = self._clean("dev", self.dev, tokenizers, console)
        loader = self._loader(train_set, tokenizers, multiple=devices * recipe.train.accumulate)
        dev_loader = self._loader(dev_set, tokenizers, multiple=devices)
        shapes = ", ".join(f"{bucket.rows}x{bucket.source}" for bucket in loader.buckets)
        console.say(f"batches (texts x tokens): {shapes}; {loader.batches_per_epoch:,} an epoch")
        return PreparedTask(
            config=config,
            objective=ClassificationObjective(recipe.loss.label_smoothing),
            batches=loader.batches,
            dev_batches=dev_loader.in_order,
            shapes=len(loader.buckets),
            content=lambda model: self._content(model, tokenizers),
            initial=self._from_pretrained if self.pretrained else None,
            new_parts=self._new_parts(config),
            unit="texts",
        )

    def _config(self, tokenizers: Tokenizers) -> Any:
        if self.pretrained is None:
            return self.recipe.shape(tokenizers.source.vocab_size).with_labels(self.labels)
        config = self.pretrained.config
        if not self._is_bounded():
            config = config.with_max_text_tokens(max(config.max_text_tokens, self.recipe.data.max_tokens or 0))
        # What reads a text between two tokens is a BERT, of which the first stands for the whole.
        return config.with_labels(self.labels, **({"pooling": "first"} if config.add_cls_sep else {}))

    def _new_parts(self, config: Any) -> tuple[str, ...]:
        if self.pretrained is None:
            return ()
        return ("output", "pooling") if config.pooling == "first" else ("output",)

    def _from_pretrained(self, config: Any, key: PRNGKeyArray) -> Classifier:
        assert self.pretrained is not None
        masked: Any = self.pretrained.content.model
        changes = {name: getattr(config, name) for name in ("dropout", "pooling", "context")}
        return Classifier.from_masked(masked, config.labels, key=key, **changes)

    def _clean(self, name: str, part: Labelled, tokenizers: Tokenizers, console: Console) -> CleanedLabelled:
        tokenizer = tokenizers.source
        held_out = {"dev": self.dev} | ({"test": self.test} if self.test else {})
        with _placed(name):
            found = clean_labelled(
                part,
                ids=tokenizer.encode_batch(part.texts),
                max_tokens=self._most(tokenizers),
                truncate=self.recipe.data.truncate,
                unk_id=tokenizer.unk_id,
                held_out=held_out if part is self.train else None,
            )
        for line in found.report.lines():
            console.say(f"{name}: {line}")
        if part is self.train and (lost := [label for label in self.labels if label not in found.report.labels]):
            console.say(f"{name}:   warning: no text with the label {', '.join(map(repr, lost))} was kept: not learnt")
        return found

    def _most(self, tokenizers: Tokenizers) -> int:
        """The most tokens of a text that are read."""
        room = self._config(tokenizers).max_text_tokens
        return min(self.recipe.data.max_tokens or room, room)

    def _is_bounded(self) -> bool:
        """Whether the model that it starts from has a table of positions, which ends."""
        return self.pretrained is not None and self.pretrained.config.position == "learned"

    def _say_length(self, config: Any, console: Console) -> None:
        """Say where the model that it starts from has read shorter texts than are to be read."""
        most = self.recipe.data.max_tokens or 0
        if self.pretrained is None or most <= (had := self.pretrained.config.max_text_tokens):
            return
        if config.max_text_tokens > had:
            how = f"this one reads {most:,} (data.max_tokens): its positions, {config.position}, go on"
        else:
            how = f"has no positions for more: {had:,} are read, and not data.max_tokens = {most:,}"
        console.say(f"the model that it starts from has read {had:,} tokens, and {how}")

    def _loader(self, part: CleanedLabelled, tokenizers: Tokenizers, *, multiple: int) -> LabelledLoader:
        data = self.recipe.data
        tokenizer, add_cls_sep = tokenizers.source, self._config(tokenizers).add_cls_sep
        rows = [enclose(tokenizer, ids) for ids in part.ids] if add_cls_sep else part.ids
        if (longest := max(map(len, rows))) > data.batch_tokens:
            what = f"a batch of {data.batch_tokens} tokens cannot hold the longest text, which has {longest}"
            raise InputError(what, where="data.batch_tokens", fix="raise it, or lower data.max_tokens")
        return LabelledLoader(
            rows,
            part.data.labels,
            self.labels,
            pad=tokenizer.pad_id,
            batch_tokens=data.batch_tokens,
            buckets=data.buckets,
            seed=self.recipe.train.seed,
            multiple=multiple,
        )

    def _content(self, model: Model, tokenizers: Tokenizers) -> ModelFolder:
        recipe = self.recipe
        about = {"name": recipe.name, "description": recipe.description, "data": recipe.data.train}
        way = recipe.data.truncate
        settings = {"max_tokens": 0 if way == "no" else self._most(tokenizers), "truncate": way}
        return ModelFolder(model, tokenizers.source, tokenizers.target, settings, about)


@contextmanager
def _placed(where: str) -> Iterator[None]:
    """Give an error that names no place this one."""
    try:
        yield
    except InputError as error:
        raise InputError(error.what, where=error.where or where, fix=error.fix) from error
