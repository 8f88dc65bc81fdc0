"""From a recipe's text to batches: pairs, tokenizers, ids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from plainformer.data import Cleaned, Pairs, clean, fingerprint, read_pairs
from plainformer.data.embedded import EMBEDDED, LANGUAGES
from plainformer.data.loader import PairLoader, SpecialIds
from plainformer.errors import InputError
from plainformer.recipe import Recipe
from plainformer.text import Tokenizer, train_bpe, train_character, train_word

Say = Callable[[str], None]


@dataclass(frozen=True)
class Text:
    """The pairs of a recipe: what is trained on, what is watched, what is scored in the end."""

    train: Pairs
    dev: Pairs
    test: Pairs | None

    def fingerprints(self) -> dict[str, str]:
        return {"train": fingerprint(self.train), "dev": fingerprint(self.dev)}


@dataclass(frozen=True)
class Tokenizers:
    """Source and target; with a joint vocabulary, one object twice."""

    source: Tokenizer
    target: Tokenizer

    def special(self) -> SpecialIds:
        source, target = self.source, self.target
        return SpecialIds(source.pad_id, source.eos_id, target.pad_id, target.bos_id, target.eos_id)

    def save(self, folder: Path) -> None:
        self.source.save(folder / "tokenizer.json")
        if self.target is not self.source:
            self.target.save(folder / "target_tokenizer.json")

    @classmethod
    def load(cls, folder: Path) -> "Tokenizers":
        source, second = Tokenizer.load(folder / "tokenizer.json"), folder / "target_tokenizer.json"
        return cls(source, Tokenizer.load(second) if second.exists() else source)


def read_pairs_of(recipe: Recipe, name: str) -> Pairs:
    """One set of the recipe's data, by its name there.

    Raises:
        InputError: it is missing or broken.
    """
    data = recipe.data
    if data.path is not None:
        return read_pairs(data.path, name, data.source, data.target, columns=data.columns)
    if data.embedded not in EMBEDDED:
        raise InputError(f"no corpus {data.embedded!r} is built in", fix=f"there is {', '.join(EMBEDDED)}")
    if LANGUAGES[data.embedded] != (data.source, data.target):
        there = " to ".join(LANGUAGES[data.embedded])
        raise InputError(f"the corpus {data.embedded} is {there}", where="data.source, data.target")
    pairs = EMBEDDED[data.embedded](name)
    origin = [f"{data.embedded}/{name}:{number}" for number in range(1, len(pairs) + 1)]
    return Pairs([source for source, _ in pairs], [target for _, target in pairs], origin)


def read_text(recipe: Recipe) -> Text:
    """All sets of a recipe. Raises InputError where one is missing or broken."""
    data = recipe.data
    return Text(
        read_pairs_of(recipe, data.train),
        read_pairs_of(recipe, data.dev),
        read_pairs_of(recipe, data.test) if data.test else None,
    )


def learn_tokenizers(recipe: Recipe, pairs: Pairs) -> Tokenizers:
    """Tokenizers of the recipe's kind, learnt from both sides together or from each."""
    options = recipe.tokenizer

    def learn(texts: Sequence[str]) -> Tokenizer:
        if options.kind == "character":
            return train_character(texts, options.vocab_size, byte_fallback=options.byte_fallback)
        if options.kind == "word":
            return train_word(texts, options.vocab_size, min_frequency=options.min_frequency)
        return train_bpe(
            texts, options.vocab_size, byte_fallback=options.byte_fallback, min_frequency=options.min_frequency
        )

    if options.joint:
        both = learn([*pairs.source, *pairs.target])
        return Tokenizers(both, both)
    return Tokenizers(learn(pairs.source), learn(pairs.target))


def encode(recipe: Recipe, text: Text, tokenizers: Tokenizers, say: Say) -> tuple[Cleaned, Cleaned]:
    """Training and dev ids, with the report on what was kept and what was not."""
    held_out = {"dev": text.dev} | ({"test": text.test} if text.test else {})

    def ids_of(name: str, pairs: Pairs, **options: Any) -> Cleaned:
        try:
            return clean(
                pairs,
                source_ids=tokenizers.source.encode_batch(pairs.source),
                target_ids=tokenizers.target.encode_batch(pairs.target),
                max_tokens=recipe.data.max_tokens,
                source_unk_id=tokenizers.source.unk_id,
                target_unk_id=tokenizers.target.unk_id,
                **options,
            )
        except InputError as error:
            raise InputError(error.what, where=error.where or name, fix=error.fix) from error

    train_set = ids_of(
        recipe.data.train,
        text.train,
        max_ratio=recipe.data.max_ratio,
        drop_duplicates=recipe.data.drop_duplicates,
        held_out=held_out,
    )
    dev_set = ids_of(recipe.data.dev, text.dev)
    for name, part in (("train", train_set), ("dev", dev_set)):
        for line in part.report.lines():
            say(f"{name}: {line}")
    return train_set, dev_set


def make_loader(recipe: Recipe, part: Cleaned, tokenizers: Tokenizers, *, multiple: int) -> PairLoader:
    return PairLoader(
        part.source_ids,
        part.target_ids,
        tokenizers.special(),
        batch_tokens=recipe.data.batch_tokens,
        buckets=recipe.data.buckets,
        seed=recipe.train.seed,
        multiple=multiple,
    )


def say_shapes(loader: PairLoader, say: Say) -> None:
    shapes = ", ".join(f"{bucket.rows}x{bucket.source}/{bucket.target}" for bucket in loader.buckets)
    say(
        f"batches (pairs x source/target tokens): {shapes}; {loader.batches_per_epoch:,} an epoch, "
        f"{loader.real_share():.0%} of target positions are real tokens"
    )
