"""The task of a language model: running text to a vocabulary, blocks of tokens and an objective."""

from functools import partial
from pathlib import Path

from plainformer.data.block import BlockLoader, in_order
from plainformer.data.text import RunningText, embedded_text, read_text
from plainformer.data.tokens import Counts, Tokens, encode_text
from plainformer.errors import InputError
from plainformer.folder import Model, ModelFolder
from plainformer.models.config import LanguageModelConfig
from plainformer.objective import LanguageObjective
from plainformer.recipe import LanguageRecipe
from plainformer.runs.task import Console, Tokenizers, Work
from plainformer.text import Tokenizer, byte_tokenizer, train_bpe, train_character


def text_of(recipe: LanguageRecipe) -> RunningText:
    """The text that a recipe names. Raises InputError where it is missing or broken."""
    data = recipe.data
    if data.embedded:
        return embedded_text(data.embedded, dev_share=data.dev_share)
    return read_text(data.text or (), dev_share=data.dev_share, key=data.key)


def learn_tokenizer(recipe: LanguageRecipe, text: RunningText) -> Tokenizer:
    """The vocabulary that the recipe wants, learnt from the part of the text that is trained on."""
    options = recipe.tokenizer
    if options.kind == "file":
        return Tokenizer.load(Path(options.file or ""))
    if options.kind == "byte":
        return byte_tokenizer()
    if options.kind == "character":
        every = text.sample(text.train_characters)
        return train_character(every, options.vocab_size, byte_fallback=options.byte_fallback)
    return train_bpe(
        text.sample(),
        options.vocab_size,
        byte_fallback=options.byte_fallback,
        min_frequency=options.min_frequency,
        lead_space=False,
    )


class LanguageTask:
    """The text of a recipe, split by position: the first part to train on, the rest to watch.

    Raises:
        InputError: it is missing or broken.
    """

    def __init__(self, recipe: LanguageRecipe) -> None:
        self.recipe, self.text = recipe, text_of(recipe)

    def fingerprints(self) -> dict[str, str]:
        # The split is the recipe's, and so is checked with it.
        return {"train": self.text.fingerprint, "dev": self.text.fingerprint}

    def learn_tokenizers(self, console: Console) -> Tokenizers:
        tokenizer = learn_tokenizer(self.recipe, self.text)
        console.say(f"tokenizer: {self.recipe.tokenizer.kind}, {tokenizer.vocab_size:,} tokens")
        return Tokenizers(tokenizer, tokenizer)

    def check_needs(self) -> None:
        if self.recipe.data.test:
            read_text(self.recipe.data.test, dev_share=0.0, key=self.recipe.data.key)

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> Work:
        recipe, tokenizer = self.recipe, tokenizers.source
        config: LanguageModelConfig = recipe.model.make(vocab=tokenizer.vocab_size)
        console.say(self.text.split_line())
        tokens = encode_text(self.text, tokenizer, progress=partial(console.progress, "characters encoded"))
        for name, counts in (("train", tokens.train_counts), ("dev", tokens.dev_counts)):
            _say_counts(name, counts, console)
        rows, multiple = recipe.data.batch_size, devices * recipe.train.accumulate
        if rows % multiple:
            raise InputError(
                f"{rows} blocks of a batch cannot be split evenly over {devices} devices and "
                f"{recipe.train.accumulate} microbatches",
                where="data.batch_size",
                fix=f"choose a multiple of {multiple}",
            )
        loader = BlockLoader(tokens.train, context=config.context, rows=rows, seed=recipe.train.seed)
        console.say(
            f"batches: {rows} blocks of {config.context:,} tokens; {loader.blocks_per_epoch / rows:,.1f} an epoch, "
            f"{recipe.train.steps * rows / loader.blocks_per_epoch:,.1f} epochs in all"
        )
        dev = self._dev_part(tokens, console)
        return Work(
            config=config,
            objective=LanguageObjective(recipe.loss.label_smoothing),
            batches=loader.batches,
            dev_batches=lambda: in_order(dev, context=config.context, rows=_dev_rows(config.context, devices)),
            content=lambda model: self._content(model, tokenizer),
            describe=lambda nll: {"bits_per_byte": tokens.dev_counts.bits_per_byte(nll)},
            unit="tokens",
        )

    def _dev_part(self, tokens: Tokens, console: Console):
        most = self.recipe.data.dev_tokens
        if not most or len(tokens.dev) <= most:
            return tokens.dev
        console.say(f"dev: only the first {most:,} of its {len(tokens.dev):,} tokens are looked at while training")
        return tokens.dev[:most]

    def _content(self, model: Model, tokenizer: Tokenizer) -> ModelFolder:
        recipe = self.recipe
        about = {"name": recipe.name, "description": recipe.description, "data": self.text.name}
        return ModelFolder(model, tokenizer, tokenizer, recipe.generate.model_dump(), about)


def _dev_rows(context: int, devices: int) -> int:
    """Blocks of a batch that is only looked at: about 4,096 tokens, the same number for each device."""
    return max(1, 4096 // context // devices) * devices


def _say_counts(name: str, counts: Counts, console: Console) -> None:
    unknown = f", {counts.unknown:,} of them unknown ({counts.unknown / counts.tokens:.3%})" if counts.unknown else ""
    each = f"{counts.bytes / counts.tokens:.2f} bytes each" if counts.tokens else ""
    console.say(f"{name}: {counts.tokens:,} tokens, {each}{unknown}")
    if counts.inexact_seams:
        console.say(f"{name}: at {counts.inexact_seams:,} places the text had to be cut inside a token to be encoded")
