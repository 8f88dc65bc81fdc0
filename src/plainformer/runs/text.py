"""Running text of a recipe: read, given a vocabulary, encoded; what language models and masked ones have in common."""

from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plainformer.data.block import BlockLoader
from plainformer.data.text import RunningText, embedded_text, read_text
from plainformer.data.tokens import Counts, Tokens, encode_text
from plainformer.errors import InputError
from plainformer.folder import Model, ModelFolder
from plainformer.recipe.text import TextOptions, TextRecipe, VocabularyOptions
from plainformer.runs.pretrained import open_pretrained
from plainformer.runs.task import Console, Tokenizers
from plainformer.tokenizer import (
    SpecialTokens,
    Tokenizer,
    byte_tokenizer,
    read_tokenizer,
    read_tokenizer_file,
    train_bpe,
    train_character,
)

_SPELLS = "tokenizer.byte_fallback=true, or tokenizer.kind=byte, knows every character"
DEV_TOKENS = 4096  # of a batch that is only looked at


class TextTask:
    """The text of a recipe, split by position: the first part to train on, the rest to watch.

    Raises:
        InputError: it is missing or broken, or there is no such model to start from.
    """

    model: type[Model]  # what is trained
    mask: str | None = None  # the token that hides others, where the model needs one

    def __init__(self, recipe: TextRecipe) -> None:
        self.recipe, self.text = recipe, text_of(recipe.data)
        self.pretrained = open_pretrained(recipe.model, self.model)

    def fingerprints(self) -> dict[str, str]:
        # A split by position is the recipe's, and so is checked with it.
        return {"text": self.text.fingerprint, **({"split": self.text.split} if self.text.split else {})}

    def held_out(self) -> dict[str, str]:
        # A part of the text is, by its place, which the recipe gives.
        return {}

    def learn_tokenizers(self, console: Console) -> Tokenizers:
        if self.pretrained:
            return Tokenizers.of(self.pretrained, console)
        options, text = self.recipe.tokenizer, self.text
        sample = text.sample(text.train_characters) if options.kind == "character" else text.sample()
        tokenizer = learn_tokenizer(options, sample, mask=self.mask)
        console.say(f"tokenizer: {self.recipe.tokenizer.kind}, {tokenizer.vocab_size:,} tokens")
        return Tokenizers(tokenizer, tokenizer)

    def check_needs(self) -> None:
        test_text(self.recipe.data)

    def config(self, tokenizers: Tokenizers) -> Any:
        """Of the model to be trained."""
        return self.pretrained.config if self.pretrained else self.recipe.model.make(vocab=tokenizers.source.vocab_size)

    def encode(self, tokenizer: Tokenizer, console: Console) -> Tokens:
        """The ids of the text. Raises InputError where the vocabulary of a model to start from lacks some of it."""
        tokens = encode(self.text, tokenizer, console)
        unknown = tokens.train_counts.unknown + tokens.dev_counts.unknown
        if self.pretrained and unknown:
            what = f"at {unknown:,} places the text has what the vocabulary of the model it starts from does not have"
            raise InputError(what, where=self.text.name, fix="start from a model that knows bytes, or change the text")
        return tokens

    def blocks(self, tokens: Tokens, context: int, devices: int, console: Console) -> BlockLoader:
        """The blocks to train on. Raises InputError where a batch's blocks cannot be shared out evenly."""
        rows, train = self.recipe.data.batch_size, self.recipe.train
        if rows % (devices * train.accumulate):
            raise InputError(
                f"{rows} blocks of a batch cannot be split evenly over {devices} devices and {train.accumulate} "
                "microbatches",
                where="data.batch_size",
                fix=f"choose a multiple of {devices * train.accumulate}",
            )
        loader = BlockLoader(tokens.train, context=context, rows=rows, seed=train.seed)
        console.say(loader.described(train.steps))
        return loader

    def dev_part(self, tokens: Tokens, tokenizer: Tokenizer, console: Console) -> tuple[NDArray[np.integer], Counts]:
        """The held-out tokens that are looked at while training, and how many tokens and bytes they are."""
        most = self.recipe.data.dev_tokens
        if not most or len(tokens.dev) <= most:
            return tokens.dev, tokens.dev_counts
        console.say(f"dev: only the first {most:,} of its {len(tokens.dev):,} tokens are looked at while training")
        part = tokens.dev[:most]
        return part, Counts(tokens=most, bytes=len(tokenizer.decode(part.tolist()).encode()))

    def check_test(self, tokenizer: Tokenizer, console: Console) -> None:
        """Raise InputError now where the test text could not be scored at the end of the training."""
        text = test_text(self.recipe.data)
        if text is None:
            return
        # Kept in a file, which scoring finds again.
        tokens = encode_text(text, tokenizer, progress=partial(console.progress, "characters encoded"))
        if len(tokens.train) < 2:
            raise InputError("the test text has fewer than two tokens", where="data.test", fix="give more text")

    def content(self, model: Model, tokenizers: Tokenizers, generation: Mapping[str, Any]) -> ModelFolder:
        recipe = self.recipe
        about = {"name": recipe.name, "description": recipe.description, "data": self.text.name}
        return ModelFolder(model, tokenizers.source, tokenizers.target, generation, about)


def text_of(data: TextOptions) -> RunningText:
    """The text that a recipe names. Raises InputError where it is missing or broken."""
    if data.embedded:
        return embedded_text(data.embedded, dev_share=data.dev_share)
    return read_text(data.text or (), dev_share=data.dev_share, key=data.key, each=data.split == "each")


def test_text(data: TextOptions) -> RunningText | None:
    """The text that is scored in the end, all of it. Raises InputError where it is missing or broken."""
    return read_text(data.test, dev_share=0.0, key=data.key) if data.test else None


def learn_tokenizer(options: VocabularyOptions, texts: Iterable[str], *, mask: str | None = None) -> Tokenizer:
    """The vocabulary that a recipe wants, learnt from `texts`, or read from its file."""
    special = SpecialTokens(mask=mask)
    if options.kind == "file":
        return _read(Path(options.file or ""))
    if options.kind == "byte":
        return byte_tokenizer(SpecialTokens(unk=None, mask=mask))
    if options.kind == "character":
        return train_character(texts, options.vocab_size, special=special, byte_fallback=options.spells_bytes)
    return train_bpe(
        texts,
        options.vocab_size,
        special=special,
        byte_fallback=options.spells_bytes,
        min_frequency=options.min_frequency,
        lead_space=False,
    )


def _read(path: Path) -> Tokenizer:
    return read_tokenizer(path) if path.is_dir() else read_tokenizer_file(path)


def encode(text: RunningText, tokenizer: Tokenizer, console: Console) -> Tokens:
    """The ids of a text, with what is worth saying about them."""
    console.say(text.split_line())
    tokens = encode_text(text, tokenizer, progress=partial(console.progress, "characters encoded"))
    for name, counts in (("train", tokens.train_counts), ("dev", tokens.dev_counts)):
        _say_counts(name, counts, console)
    return tokens


def dev_rows(context: int, devices: int) -> int:
    """Blocks of a batch that is only looked at, the same number for each device."""
    return max(1, DEV_TOKENS // context // devices) * devices


def _say_counts(name: str, counts: Counts, console: Console) -> None:
    unknown = ""
    if counts.unknown:
        unknown = f", {counts.unknown:,} of them unknown ({counts.unknown / counts.tokens:.3%}; {_SPELLS})"
    each = f", {counts.bytes / counts.tokens:.2f} bytes each" if counts.tokens else ""
    console.say(f"{name}: {counts.tokens:,} tokens{each}{unknown}")
    if counts.inexact_seams:
        console.say(f"{name}: at {counts.inexact_seams:,} places the text had to be cut inside a token to be encoded")
