"""The recipe of a language model: running text, one vocabulary, a causal decoder, sampling."""

import os
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from plainformer.models.config import LanguageModelConfig
from plainformer.recipe.base import Recipe
from plainformer.recipe.sections import PlainLossOptions, Section, StackOptions, TrainOptions
from plainformer.validation import broken


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


class VocabularyOptions(Section):
    """[tokenizer]: how text becomes ids."""

    kind: Literal["bpe", "character", "byte", "file"] = Field(default="bpe", description="What a token is.")
    file: str | None = Field(default=None, min_length=1, description="file only: an existing tokenizer.json.")
    vocab_size: int = Field(default=4096, ge=8, description="bpe, character: tokens at most, special ones included.")
    byte_fallback: bool = Field(default=True, description="An unseen character becomes its UTF-8 bytes instead of unk.")
    min_frequency: int = Field(default=2, ge=1, description="bpe: a token must be seen this often in the text.")

    @model_validator(mode="after")
    def _check(self) -> "VocabularyOptions":
        if (self.kind == "file") != (self.file is not None):
            what = "a tokenizer.json and another kind of vocabulary are both given" if self.file else "no file is named"
            broken("file", what, 'give tokenizer.kind = "file" and tokenizer.file, or neither')
        return self


class LanguageModelOptions(StackOptions):
    """[model]: the decoder. Without a preset, the smallest GPT-2 is what is changed."""

    CONFIG: ClassVar[type[Any]] = LanguageModelConfig


class GenerateOptions(Section):
    """[generate]: how the model writes, unless it is told otherwise."""

    max_tokens: int = Field(default=200, ge=1, description="The most tokens written.")
    temperature: float = Field(default=1.0, ge=0.0, description="Divides the logits; 0 = the most probable token.")
    top_k: int = Field(default=0, ge=0, description="Only the so many most probable tokens; 0 = all.")
    top_p: float = Field(
        default=1.0, gt=0.0, le=1.0, description="Only the most probable that have this share; 1 = all."
    )
    min_p: float = Field(default=0.0, ge=0.0, le=1.0, description="Only tokens so probable beside the best; 0 = all.")
    repetition_penalty: float = Field(
        default=1.0, gt=0.0, description="Makes tokens already there less likely; 1 = off."
    )
    seed: int = Field(default=0, ge=0, lt=2**32, description="Of the choices.")


class LanguageRecipe(Recipe):
    """A whole run: `LanguageRecipe(task="language-model", data=..., train=...)`, or `load_recipe(path)`."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = (
        Recipe.FREE_ON_RESUME
        | {"data.text", "data.test", "tokenizer.file"}
        | {f"generate.{key}" for key in GenerateOptions.model_fields}
    )

    task: Literal["language-model"] = Field(description="What the model is to learn.")
    data: TextOptions
    tokenizer: VocabularyOptions = VocabularyOptions()
    model: LanguageModelOptions = LanguageModelOptions()
    loss: PlainLossOptions = PlainLossOptions()
    train: TrainOptions
    generate: GenerateOptions = GenerateOptions()

    def anchored(self) -> "LanguageRecipe":
        data, file = self.data, self.tokenizer.file
        paths = {name: _absolute(found) for name in ("text", "test") if (found := getattr(data, name))}
        tokenizer = {"file": _absolute([file])[0]} if file else {}
        return self.model_copy(
            update={
                "data": data.model_copy(update=paths),
                "tokenizer": self.tokenizer.model_copy(update=tokenizer),
            }
        )


def _absolute(paths: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(os.path.abspath(Path(path).expanduser()) for path in paths)
