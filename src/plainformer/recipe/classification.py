"""The recipe of a classifier: labelled texts, one vocabulary, an encoder, new or one that was trained with masks."""

from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field, model_validator

from plainformer.files.validation import broken
from plainformer.models.config import EncoderConfig
from plainformer.recipe.base import Recipe
from plainformer.recipe.sections import (
    Count,
    PlainLossOptions,
    Section,
    StackOptions,
    TrainOptions,
    absolute,
    check_held_out,
    with_dev_set,
)
from plainformer.recipe.text import VocabularyOptions
from plainformer.tokenizer.truncation import Truncate


class LabelledOptions(Section):
    """[data]: where the labelled texts are and how they become batches."""

    folder: str = Field(min_length=1, description="Folder of the data.")
    train: str = Field(default="train", min_length=1, description="Training set: a file, or its stem.")
    dev: str | None = Field(
        default=None, min_length=1, description="Development set, which picks the best checkpoint; val, if not given."
    )
    test: str | None = Field(default=None, min_length=1, description="Test set, scored once at the end.")
    dev_texts: Count | None = Field(
        default=None, description="So many of the training texts instead of dev; auto: a tenth of each label's."
    )
    test_texts: Count | None = Field(default=None, description="So many of the training texts instead of test.")
    max_tokens: int | None = Field(
        default=None,
        ge=1,
        description="Tokens of a text that are read, which a new model's context follows; unset: all that it can read.",
    )
    truncate: Truncate = Field(
        default="head",
        description="Of a longer text, which tokens are read: the first, the last, half of each; no: it is left out.",
    )
    min_label_count: int = Field(default=2, ge=1, description="Refuse a label that fewer training texts have.")
    batch_tokens: int = Field(default=4096, ge=1, description="Rows x padded length of a batch.")
    buckets: int = Field(default=4, ge=1, description="At most this many batch shapes; each is compiled once.")

    @property
    def path(self) -> Path:
        """The data folder, absolute."""
        return Path(absolute(self.folder))

    @property
    def has_test(self) -> bool:
        """Whether there is a test set to score in the end."""
        return bool(self.test or self.test_texts)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        return with_dev_set(_as_it_was_meant(values), "dev_texts")

    @model_validator(mode="after")
    def _check(self) -> "LabelledOptions":
        check_held_out("texts", self.dev, self.dev_texts, self.test, self.test_texts)
        if self.max_tokens and self.batch_tokens < self.max_tokens:
            what = f"a batch of {self.batch_tokens} tokens cannot hold max_tokens = {self.max_tokens}"
            broken("batch_tokens", what, "raise batch_tokens or lower max_tokens")
        return self


class ClassifierOptions(StackOptions):
    """[model]: the encoder, or the masked language model whose encoder and vocabulary are taken over (`init_from`).

    Without either and without a preset, the smaller BERT is what is changed.
    """

    CONFIG: ClassVar[type[Any]] = EncoderConfig


class ClassificationRecipe(Recipe):
    """A whole run: `ClassificationRecipe(task="classification", data=..., train=...)`, or `load_recipe(path)`."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = Recipe.FREE_ON_RESUME | {
        *("data.folder", "data.train", "data.test", "tokenizer.file")
    }

    task: Literal["classification"] = Field(description="What the model is to learn.")
    data: LabelledOptions
    tokenizer: VocabularyOptions = VocabularyOptions()
    model: ClassifierOptions = ClassifierOptions()
    loss: PlainLossOptions = PlainLossOptions()
    train: TrainOptions

    @model_validator(mode="after")
    def _check_context(self) -> "ClassificationRecipe":
        most = self.data.max_tokens or 0
        if (
            self.model.init_from is None
            and self.model.context is not None
            and self.model.trial().max_text_tokens < most
        ):
            what = f"a context of {self.model.context} cannot hold data.max_tokens = {most}"
            broken("model.context", what, "leave out model.context, which follows data.max_tokens, or lower that")
        return self

    def shape(self, vocab: int) -> EncoderConfig:
        """The configuration of a new model. Its context holds `data.max_tokens`, whatever the preset's is."""
        config: EncoderConfig = self.model.make(vocab=vocab)
        return config.with_max_text_tokens(max(config.max_text_tokens, self.data.max_tokens or 0))

    def anchored(self) -> "ClassificationRecipe":
        return self.model_copy(
            update={
                "data": self.data.model_copy(update={"folder": str(self.data.path)}),
                "tokenizer": self.tokenizer.anchored(),
                "model": self.model.anchored(),
            }
        )


def _as_it_was_meant(given: Any) -> Any:
    """A run's own recipe names every setting. Where it has no `truncate`, longer texts were left out then."""
    whole = {"max_tokens", "min_label_count", "batch_tokens", "buckets"}
    if isinstance(given, dict) and whole <= given.keys() and "truncate" not in given:
        return {**given, "truncate": "no"}
    return given
