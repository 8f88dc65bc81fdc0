"""The recipe of a translator: sentence pairs, two languages, an encoder-decoder, beam search, BLEU."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from plainformer.decode.limits import (
    LEAST_PENALTY,
    MOST_ALPHA,
    MOST_BEAM,
    MOST_MARGIN,
    MOST_PENALTY,
    MOST_RATIO,
    MOST_TOKENS,
    LengthPenalty,
)
from plainformer.decode.settings import PAPER
from plainformer.evaluate.bleu import BleuTokenizer
from plainformer.files.validation import broken
from plainformer.models.config import DecoderStart, Tie, TransformerConfig, TransformerPosition
from plainformer.recipe.base import Recipe
from plainformer.recipe.sections import (
    Count,
    FromList,
    LossOptions,
    Samples,
    Section,
    ShapeOptions,
    TrainOptions,
    absolute,
    check_held_out,
    with_dev_set,
)


class PairOptions(Section):
    """[data]: where the sentence pairs are and how they become batches."""

    source: str = Field(default="en", min_length=1, description="Source language; the extension of its files.")
    target: str = Field(default="de", min_length=1, description="Target language; the extension of its files.")
    folder: str | None = Field(default=None, min_length=1, description="Folder of the data.")
    embedded: str | None = Field(default=None, min_length=1, description="A built-in corpus instead of a folder.")
    train: str = Field(default="train", min_length=1, description="Training set: a file, or the stem of one or two.")
    train_target: str | None = Field(
        default=None, min_length=1, description="The target side's file, where train is the source side's alone."
    )
    dev: str | None = Field(
        default=None, min_length=1, description="Development set, which picks the best checkpoint; val, if not given."
    )
    test: str | None = Field(default=None, min_length=1, description="Test set, scored once at the end.")
    dev_pairs: Count | None = Field(
        default=None, description="So many pairs of the training set instead of dev; auto: a tenth, at most 1,000."
    )
    test_pairs: Count | None = Field(default=None, description="So many pairs of the training set instead of test.")
    columns: Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]] | None, FromList] = Field(
        default=None,
        description="Columns of source and target in a file of columns, from 0; found, if not given.",
    )
    max_tokens: int = Field(default=128, ge=1, description="Drop a pair with a longer side; bos and eos not counted.")
    max_ratio: float | None = Field(default=None, ge=1.0, description="Drop a pair if a side is so many times longer.")
    drop_duplicates: bool = Field(default=False, description="Drop a pair that was seen before.")
    batch_tokens: int = Field(default=4096, ge=2, description="Rows x padded length of the larger side.")
    buckets: int = Field(
        default=6, ge=1, description="At most this many batch shapes, each compiled once; of packed rows there is one."
    )
    row_tokens: int = Field(
        default=0,
        ge=0,
        description="Tokens of a row into which several pairs are packed, one behind the other; 0: each pair has a "
        "row, in length buckets. Made for the extra cpu, which knows where a pair begins.",
    )

    @property
    def path(self) -> Path | None:
        """The data folder, absolute; None for an embedded corpus."""
        return Path(absolute(self.folder)) if self.folder else None

    @property
    def has_test(self) -> bool:
        """Whether there is a test set to score in the end."""
        return bool(self.test or self.test_pairs)

    @model_validator(mode="before")
    @classmethod
    def _fill(cls, values: Any) -> Any:
        return with_dev_set(values, "dev_pairs")

    @model_validator(mode="after")
    def _check(self) -> "PairOptions":
        check_held_out("pairs", self.dev, self.dev_pairs, self.test, self.test_pairs)
        if self.train_target and not self.folder:
            broken("train_target", "an embedded corpus has no files", "leave it out, or give data.folder")
        if self.folder and self.embedded:
            broken("embedded", "both a folder and an embedded corpus are given", "keep one of them")
        if not self.folder and not self.embedded:
            broken("folder", "no data is named", 'give data.folder = "..." or data.embedded = "phrasebook"')
        if self.columns and self.columns[0] == self.columns[1]:
            broken("columns", "source and target are the same column", "give two different columns")
        if self.batch_tokens <= self.max_tokens:
            what = f"a batch of {self.batch_tokens} tokens cannot hold max_tokens = {self.max_tokens} and an eos"
            broken("batch_tokens", what, "raise batch_tokens or lower max_tokens")
        if 0 < self.row_tokens <= self.max_tokens:
            what = f"a row of {self.row_tokens} tokens cannot hold max_tokens = {self.max_tokens} and an eos"
            broken("row_tokens", what, "raise row_tokens or lower max_tokens")
        if self.row_tokens > self.batch_tokens:
            what = f"a batch of {self.batch_tokens} tokens cannot hold a row of {self.row_tokens}"
            broken("row_tokens", what, "lower row_tokens or raise batch_tokens")
        return self


class TokenizerOptions(Section):
    """[tokenizer]: how text becomes ids (§5.1: byte-pair encoding, one vocabulary for both languages)."""

    kind: Literal["bpe", "character", "word"] = Field(default="bpe", description="What a token is.")
    vocab_size: int = Field(default=10_000, ge=8, description="Tokens at most, special ones included.")
    joint: bool = Field(default=True, description="One vocabulary for both languages.")
    byte_fallback: bool = Field(default=True, description="An unseen character becomes its UTF-8 bytes instead of unk.")
    min_frequency: int = Field(default=2, ge=1, description="A token must be seen this often in the training set.")


class TransformerOptions(ShapeOptions):
    """[model]: the encoder-decoder. Without a preset, the paper's base model is what is changed."""

    CONFIG: ClassVar[type[Any]] = TransformerConfig

    encoder_layers: int | None = Field(default=None, ge=1, description="Layers of the encoder.")
    decoder_layers: int | None = Field(default=None, ge=1, description="Layers of the decoder.")
    position: TransformerPosition | None = Field(default=None, description="Position encoding (§3.5).")
    max_len: int | None = Field(default=None, ge=1, description="Positions a learned table has.")
    tie: Tie | None = Field(default=None, description="Which embedding tables are one (§3.4: three-way).")
    output_bias: bool | None = Field(default=None, description="A bias of every token's logit, as Marian has it.")
    decoder_start: DecoderStart | None = Field(
        default=None, description="The decoder's first input: a token, or its position alone (Marian, CTranslate2)."
    )


class TranslationTrainOptions(TrainOptions):
    """[train]: how long, how often to look, what to keep."""

    bleu_every: int = Field(
        default=0, ge=0, description="Steps between translations of the development set; 0 = never."
    )
    samples: Samples = 2
    bleu_sentences: int = Field(default=0, ge=0, description="Translate only the first so many of them; 0 = all.")
    best_by: Literal["nll", "bleu"] = Field(default="nll", description="What makes a checkpoint the best.")

    @model_validator(mode="after")
    def _check(self) -> "TranslationTrainOptions":
        if self.best_by == "bleu" and not self.bleu_every:
            broken("best_by", "the best by BLEU is asked for, and BLEU is never measured", "give train.bleu_every")
        return self


class DecodeOptions(Section):
    """[decode]: how the model is searched for a translation (§6.1)."""

    beam_size: int = Field(default=PAPER.beam_size, ge=1, le=MOST_BEAM, description="Hypotheses kept; 1 = greedy.")
    length_penalty: LengthPenalty = Field(default=PAPER.length_penalty, description="((5+len)/6)^alpha, len^alpha, 1.")
    alpha: float = Field(
        default=PAPER.alpha, ge=-MOST_ALPHA, le=MOST_ALPHA, description="Exponent of the length penalty."
    )
    max_ratio: float = Field(
        default=PAPER.max_ratio,
        ge=0.0,
        le=MOST_RATIO,
        description="Longest output: max_ratio x source length + max_margin tokens.",
    )
    max_margin: int = Field(default=PAPER.max_margin, ge=0, le=MOST_MARGIN, description="See max_ratio.")
    n_best: int = Field(default=PAPER.n_best, ge=1, description="Translations given for a sentence.")
    no_repeat_ngram: int = Field(
        default=PAPER.no_repeat_ngram,
        ge=0,
        le=MOST_TOKENS,
        description="Forbid repeating an n-gram of this length; 0 = off.",
    )
    repetition_penalty: float = Field(
        default=PAPER.repetition_penalty,
        ge=LEAST_PENALTY,
        le=MOST_PENALTY,
        description="Makes tokens already written less likely; 1 = off.",
    )

    @model_validator(mode="after")
    def _check(self) -> "DecodeOptions":
        if self.n_best > self.beam_size:
            what = f"a beam of {self.beam_size} cannot give the {self.n_best} best"
            broken("n_best", what, "raise beam_size or lower n_best")
        if self.max_ratio == 0.0 and self.max_margin == 0:
            broken("max_ratio", "no output may have any token", "give max_ratio or max_margin")
        return self


class EvaluateOptions(Section):
    """[evaluate]: how sacreBLEU scores."""

    tokenize: BleuTokenizer = Field(default="13a", description="sacreBLEU's tokenizer.")
    lowercase: bool = Field(default=False, description="Ignore case.")


class TranslationRecipe(Recipe):
    """A whole run. Python and TOML give the same object: `TranslationRecipe(data=..., train=...)`, `load_recipe`."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = Recipe.FREE_ON_RESUME | {
        *("data.folder", "data.train", "data.train_target", "data.test", "data.columns", "train.samples")
    }

    task: Literal["translation"] = Field(default="translation", description="What the model is to learn.")
    data: PairOptions
    tokenizer: TokenizerOptions = TokenizerOptions()
    model: TransformerOptions = TransformerOptions()
    loss: LossOptions = LossOptions()
    train: TranslationTrainOptions
    decode: DecodeOptions = DecodeOptions()
    evaluate: EvaluateOptions = EvaluateOptions()

    @model_validator(mode="after")
    def _check_translation(self) -> "TranslationRecipe":
        if self.model.init_from:
            return self
        if not self.tokenizer.joint and self.model.tie not in ("target-output", "none"):
            # Two vocabularies of one size would pass every later check and share ids that mean different tokens.
            tie = self.model.tie or "three-way"
            what = f"two vocabularies (tokenizer.joint = false) cannot share one table (model.tie = {tie!r})"
            broken("model.tie", what, 'use model.tie = "target-output" or "none", or a joint tokenizer')
        shape = self.model.trial()
        if shape.position == "learned" and shape.max_len <= self.data.max_tokens:
            what = f"{shape.max_len} learned positions cannot hold data.max_tokens = {self.data.max_tokens} and an eos"
            broken("model.max_len", what, "raise model.max_len or lower data.max_tokens")
        return self

    def anchored(self) -> "TranslationRecipe":
        folder = str(self.data.path) if self.data.path else None
        data = self.data.model_copy(update={"folder": folder})
        return self.model_copy(update={"data": data, "model": self.model.anchored()})

    def free_with(self, other: Recipe) -> frozenset[str]:
        free = super().free_with(other)
        if self.train.bleu_every or (isinstance(other, TranslationRecipe) and other.train.bleu_every):
            return free
        sections = {"decode": DecodeOptions, "evaluate": EvaluateOptions}
        return free | {f"{name}.{key}" for name, section in sections.items() for key in section.model_fields}
