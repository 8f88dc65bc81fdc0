"""What recipes that learn from running text have in common: where the text is, and how it becomes ids."""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_serializer, model_validator

from plainformer.files.validation import broken
from plainformer.recipe.base import Recipe
from plainformer.recipe.sections import PlainLossOptions, Section, absolute


def _several(value: object) -> object:
    """One path as a list of one; TOML's lists as tuples."""
    return tuple(value) if isinstance(value, list) else (value,) if isinstance(value, str) else value


Paths = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], BeforeValidator(_several)]


class TextOptions(Section):
    """[data]: where the text is, and how it becomes batches."""

    text: Paths | None = Field(
        default=None, description="Files and globs of text: .txt, .jsonl with text, plain or .gz."
    )
    embedded: str | None = Field(default=None, min_length=1, description="A built-in text instead of files.")
    key: str = Field(default="text", min_length=1, description="Of the text in a line of JSONL.")
    dev_share: float = Field(
        default=0.1, gt=0.0, lt=1.0, description="Share of the characters, from the end, that is held out."
    )
    split: Literal["each", "end"] = Field(
        default="each", description="Whether each file gives its share from its end, or the end of all the text does."
    )
    dev_tokens: int = Field(
        default=1_000_000, ge=0, description="Look only at the first so many held-out tokens while training; 0 = all."
    )
    test: Paths | None = Field(default=None, description="Text that is scored once at the end.")
    batch_size: int = Field(default=16, ge=1, description="Blocks of model.context tokens in a batch.")

    @model_validator(mode="after")
    def _check(self) -> "TextOptions":
        if self.text and self.embedded:
            broken("embedded", "both files and a built-in text are given", "keep one of them")
        if not self.text and not self.embedded:
            broken("text", "no text is named", 'give data.text = "..." or data.embedded = "python-docs"')
        return self

    @property
    def has_test(self) -> bool:
        """Whether there is a test text to score in the end."""
        return bool(self.test)

    def anchored(self) -> "TextOptions":
        """With absolute paths."""
        paths = {name: tuple(map(absolute, found)) for name in ("text", "test") if (found := getattr(self, name))}
        return self.model_copy(update=paths)


class VocabularyOptions(Section):
    """[tokenizer]: how text becomes ids."""

    kind: Literal["bpe", "character", "byte", "file"] = Field(default="bpe", description="What a token is.")
    file: str | None = Field(
        default=None, min_length=1, description="file only: a tokenizer.json, vocab.json, .txt, .model or .tiktoken."
    )
    vocab_size: int = Field(default=4096, ge=8, description="bpe, character: tokens at most, special ones included.")
    byte_fallback: bool | Literal["bpe"] = Field(
        default=True, description="An unseen character becomes its UTF-8 bytes instead of unk; bpe: of that kind alone."
    )
    min_frequency: int = Field(default=2, ge=1, description="bpe: a token must be seen this often in the text.")

    @property
    def spells_bytes(self) -> bool:
        """Whether an unseen character becomes bytes."""
        return self.kind == "bpe" if self.byte_fallback == "bpe" else self.byte_fallback

    @field_serializer("byte_fallback")
    def _decided(self, _: object) -> bool:
        """What a run keeps, and what is compared when it is resumed."""
        return self.spells_bytes

    @model_validator(mode="after")
    def _check(self) -> "VocabularyOptions":
        if (self.kind == "file") != (self.file is not None):
            what = "a file and another kind of vocabulary are both given" if self.file else "no file is named"
            broken("file", what, 'give tokenizer.kind = "file" and tokenizer.file, or neither')
        return self

    def anchored(self) -> "VocabularyOptions":
        """With an absolute path."""
        return self.model_copy(update={"file": absolute(self.file)}) if self.file else self


class TextRecipe(Recipe):
    """A recipe that learns from running text. `task` and `model` are the task's."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = Recipe.FREE_ON_RESUME | {
        *("data.text", "data.split", "data.test", "tokenizer.file")
    }

    data: TextOptions
    tokenizer: VocabularyOptions = VocabularyOptions()
    loss: PlainLossOptions = PlainLossOptions()
    train: Any

    def anchored(self) -> "TextRecipe":
        sections = {name: getattr(self, name).anchored() for name in ("data", "tokenizer", "model")}
        return self.model_copy(update=sections)
