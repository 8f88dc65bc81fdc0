"""The task of a translator: sentence pairs to tokenizers, batches and an objective."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from plainformer.data import Cleaned, Pairs, clean, fingerprint
from plainformer.data.loader import PairLoader, SpecialIds
from plainformer.data.packing import PackedLoader
from plainformer.decode.settings import GenerationSettings
from plainformer.decode.translator import Translator
from plainformer.errors import InputError
from plainformer.evaluate.bleu import check_tokenizer, score_translations
from plainformer.folder import Model, ModelFolder
from plainformer.kernels.cpu import registry
from plainformer.kernels.cpu.ffi import VECTOR
from plainformer.models.build import SCORE_BIASES
from plainformer.models.transformer import Transformer
from plainformer.objective import TranslationObjective
from plainformer.recipe import TranslationRecipe
from plainformer.runs.held_out import divided, kept_pairs, split_line, split_pairs
from plainformer.runs.pairs import read_pairs_of
from plainformer.runs.pretrained import check_room, open_pretrained
from plainformer.runs.samples import Samples, translations
from plainformer.runs.task import Console, PreparedTask, Tokenizers
from plainformer.runs.tokenizer_cache import learnt
from plainformer.tokenizer import Tokenizer, train_bpe, train_character, train_word


class TranslationTask:
    """The pairs of a recipe: what is trained on, what is watched, what is scored in the end.

    Raises:
        InputError: a set is missing or broken, or there is no such model to start from.
    """

    def __init__(self, recipe: TranslationRecipe) -> None:
        self.recipe, data = recipe, recipe.data
        whole = read_pairs_of(recipe, data.train, data.train_target)
        self.parts = split_pairs(whole, data)
        self.train, self.dev, self.test = divided(
            whole,
            self.parts,
            dev=lambda: read_pairs_of(recipe, data.dev or ""),
            test=lambda: read_pairs_of(recipe, data.test) if data.test else None,
        )
        self.notes = [*whole.notes, *(note for part in (self.dev, self.test) if part for note in part.notes)]
        self.pretrained = open_pretrained(recipe.model, Transformer)
        if self.pretrained and self.pretrained.config.position == "learned":
            check_room(self.pretrained.config.max_len - 1, data.max_tokens)  # and an eos

    def fingerprints(self) -> dict[str, str]:
        held_out = {"test": fingerprint(self.test)} if self.test and self.parts.test else {}
        return {"train": fingerprint(self.train), "dev": fingerprint(self.dev), **held_out}

    def held_out(self) -> dict[str, str]:
        found = {"dev": self.dev if self.parts.dev else None, "test": self.test if self.parts.test else None}
        return {name: kept_pairs(part, self.recipe.data) for name, part in found.items() if part}

    def learn_tokenizers(self, console: Console) -> Tokenizers:
        """Tokenizers of the recipe's kind, learnt from both sides together or from each, or the pretrained model's."""
        if self.pretrained:
            return Tokenizers.of(self.pretrained, console)
        options, pairs = self.recipe.tokenizer, self.train

        def learn(texts: Sequence[str]) -> Tokenizer:
            if options.kind == "character":
                return train_character(texts, options.vocab_size, byte_fallback=options.byte_fallback)
            if options.kind == "word":
                return train_word(texts, options.vocab_size, min_frequency=options.min_frequency)
            return train_bpe(
                texts, options.vocab_size, byte_fallback=options.byte_fallback, min_frequency=options.min_frequency
            )

        key = fingerprint(pairs), options.model_dump()
        if options.joint:
            both = learnt(lambda: learn([*pairs.source, *pairs.target]), "both", *key)
            tokenizers, second = Tokenizers(both, both), ""
        else:
            source = learnt(lambda: learn(pairs.source), "source", *key)
            tokenizers = Tokenizers(source, learnt(lambda: learn(pairs.target), "target", *key))
            second = f" and {tokenizers.target.vocab_size:,}"
        console.say(f"tokenizer: {options.kind}, {tokenizers.source.vocab_size:,}{second} tokens")
        return tokenizers

    def check_needs(self) -> None:
        if self.recipe.data.has_test or self.recipe.train.bleu_every:
            check_tokenizer(self.recipe.evaluate.tokenize)

    def prepare(self, tokenizers: Tokenizers, devices: int, console: Console) -> PreparedTask:
        recipe = self.recipe
        train_set, dev_set = self._encode(tokenizers, console)
        row_tokens, buckets = recipe.data.row_tokens, recipe.data.buckets
        given = self._given(train_set, tokenizers, devices * recipe.train.accumulate)
        loader = PackedLoader(**given, row_tokens=row_tokens) if row_tokens else PairLoader(**given, buckets=buckets)
        console.say(loader.described())
        dev_loader = PairLoader(**self._given(dev_set, tokenizers, devices), buckets=buckets)
        vocabularies = {"source_vocab": tokenizers.source.vocab_size, "target_vocab": tokenizers.target.vocab_size}
        config: Any = self.pretrained.config if self.pretrained else recipe.model.make(**vocabularies)
        if row_tokens and not self._knows_texts(config, devices):
            console.say(
                "warning: attention computes all scores of a packed row here, and most of them for nothing: only the "
                "extra cpu, on one device and in float32, with heads multiples of 16 wide and no biases of scores, "
                "knows its texts. Lower data.row_tokens, or leave it out"
            )
        return PreparedTask(
            config=config,
            objective=TranslationObjective(recipe.loss.label_smoothing),
            batches=loader.batches,
            dev_batches=dev_loader.in_order,
            shapes=loader.shapes,
            content=lambda model: self._content(model, tokenizers),
            bleu=self._dev_bleu(dev_set.pairs, tokenizers) if recipe.train.bleu_every else None,
            samples=self._samples(dev_set.pairs, tokenizers) if recipe.train.samples else None,
            initial=self.pretrained.model if self.pretrained else None,
        )

    def _encode(self, tokenizers: Tokenizers, console: Console) -> tuple[Cleaned, Cleaned]:
        """Training and dev ids, with the report on what was kept and what was not."""
        data = self.recipe.data
        for note in self.notes:
            console.say(note)
        if self.parts.dev or self.parts.test:
            console.say(split_line(data.train, self.parts, "pairs"))
        held_out = {"dev": self.dev} | ({"test": self.test} if self.test else {})

        def ids_of(name: str, pairs: Pairs, **options: Any) -> Cleaned:
            try:
                return clean(
                    pairs,
                    source_ids=tokenizers.source.encode_batch(pairs.source),
                    target_ids=tokenizers.target.encode_batch(pairs.target),
                    max_tokens=data.max_tokens,
                    source_unk_id=tokenizers.source.unk_id,
                    target_unk_id=tokenizers.target.unk_id,
                    **options,
                )
            except InputError as error:
                raise InputError(error.what, where=error.where or name, fix=error.fix) from error

        only_train = {"max_ratio": data.max_ratio, "drop_duplicates": data.drop_duplicates, "held_out": held_out}
        train_set, dev_set = ids_of(data.train, self.train, **only_train), ids_of(data.dev or "dev", self.dev)
        for name, part in (("train", train_set), ("dev", dev_set)):
            for line in part.report.lines():
                console.say(f"{name}: {line}")
        return train_set, dev_set

    def _given(self, part: Cleaned, tokenizers: Tokenizers, multiple: int) -> dict[str, Any]:
        """What every loader is told."""
        source, target = tokenizers.source, tokenizers.target
        return {
            "source": part.source_ids,
            "target": part.target_ids,
            "special": SpecialIds(source.pad_id, source.eos_id, target.pad_id, target.bos_id, target.eos_id),
            "batch_tokens": self.recipe.data.batch_tokens,
            "seed": self.recipe.train.seed,
            "multiple": multiple,
        }

    def _knows_texts(self, config: Any, devices: int) -> bool:
        """Whether attention passes over the scores of other texts in a row."""
        is_wide = config.key_width % VECTOR == 0 and config.value_width % VECTOR == 0
        is_known = is_wide and config.position not in SCORE_BIASES and self.recipe.train.compute_dtype == "float32"
        return devices == 1 and is_known and registry.is_ready("attention")

    def _content(self, model: Model, tokenizers: Tokenizers) -> ModelFolder:
        recipe, data = self.recipe, self.recipe.data
        about = {
            "name": recipe.name,
            "description": recipe.description,
            "languages": f"{data.source} to {data.target}",
            "data": data.embedded or data.train,
        }
        return ModelFolder(model, tokenizers.source, tokenizers.target, recipe.decode.model_dump(), about)

    def _samples(self, dev: Pairs, tokenizers: Tokenizers) -> Samples:
        settings = GenerationSettings(**self.recipe.decode.model_dump())
        return translations(dev, self.recipe.train.samples, tokenizers, settings)

    def _dev_bleu(self, dev: Pairs, tokenizers: Tokenizers) -> Callable[[Any], float]:
        """BLEU of greedy translations of the first `bleu_sentences` of the dev set."""
        recipe = self.recipe
        count = recipe.train.bleu_sentences or len(dev)
        greedy = replace(GenerationSettings(**recipe.decode.model_dump()), beam_size=1, n_best=1)

        def bleu(model: Any) -> float:
            assert isinstance(model, Transformer)
            translations = Translator(model, tokenizers.source, tokenizers.target, greedy).translate(
                dev.source[:count], max_source_tokens=None
            )
            return score_translations(
                translations,
                dev.target[:count],
                tokenize=recipe.evaluate.tokenize,
                lowercase=recipe.evaluate.lowercase,
            ).bleu

        return bleu
