"""A recipe: everything that decides a training run, as one typed object, read from TOML and written back whole."""

import os
from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from plainformer import atomic, toml
from plainformer.errors import InputError, WorkError
from plainformer.evaluate.bleu import BleuTokenizer
from plainformer.models.config import TransformerConfig
from plainformer.models.presets import PRESETS
from plainformer.validation import broken, descriptions, first_error, show

# TOML knows lists only; a frozen recipe holds tuples.
_FromList = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


class Section(BaseModel):
    """One table of a recipe: its types are strict (no "8" for 8), its keys are known, its values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DataOptions(Section):
    """[data]: where the sentence pairs are and how they become batches."""

    source: str = Field(default="en", min_length=1, description="Source language; the extension of its files.")
    target: str = Field(default="de", min_length=1, description="Target language; the extension of its files.")
    folder: str | None = Field(default=None, min_length=1, description="Folder of the data.")
    embedded: str | None = Field(default=None, min_length=1, description="A built-in corpus instead of a folder.")
    train: str = Field(default="train", min_length=1, description="Training set: a file, or the stem of one or two.")
    dev: str = Field(default="val", min_length=1, description="Development set, which picks the best checkpoint.")
    test: str | None = Field(default=None, min_length=1, description="Test set, scored once at the end.")
    columns: Annotated[tuple[Annotated[int, Field(ge=0)], Annotated[int, Field(ge=0)]], _FromList] = Field(
        default=(0, 1), description="Columns of source and target in a file of columns, from 0."
    )
    max_tokens: int = Field(default=128, ge=1, description="Drop a pair with a longer side; bos and eos not counted.")
    max_ratio: float | None = Field(default=None, ge=1.0, description="Drop a pair if a side is so many times longer.")
    drop_duplicates: bool = Field(default=False, description="Drop a pair that was seen before.")
    batch_tokens: int = Field(default=4096, ge=2, description="Rows x padded length of the larger side.")
    buckets: int = Field(default=6, ge=1, description="At most this many batch shapes; each is compiled once.")

    @property
    def path(self) -> Path | None:
        """The data folder, absolute; None for an embedded corpus."""
        return Path(os.path.abspath(Path(self.folder).expanduser())) if self.folder else None

    @model_validator(mode="after")
    def _check(self) -> "DataOptions":
        if self.folder and self.embedded:
            broken("embedded", "both a folder and an embedded corpus are given", "keep one of them")
        if not self.folder and not self.embedded:
            broken("folder", "no data is named", 'give data.folder = "..." or data.embedded = "phrasebook"')
        if self.columns[0] == self.columns[1]:
            broken("columns", "source and target are the same column", "give two different columns")
        if self.batch_tokens <= self.max_tokens:
            what = f"a batch of {self.batch_tokens} tokens cannot hold max_tokens = {self.max_tokens} and an eos"
            broken("batch_tokens", what, "raise batch_tokens or lower max_tokens")
        return self


class TokenizerOptions(Section):
    """[tokenizer]: how text becomes ids (§5.1: byte-pair encoding, one vocabulary for both languages)."""

    kind: Literal["bpe", "character", "word"] = Field(default="bpe", description="What a token is.")
    vocab_size: int = Field(default=10_000, ge=8, description="Tokens at most, special ones included.")
    joint: bool = Field(default=True, description="One vocabulary for both languages.")
    byte_fallback: bool = Field(default=True, description="An unseen character becomes its UTF-8 bytes instead of unk.")
    min_frequency: int = Field(default=2, ge=1, description="A token must be seen this often in the training set.")


class ModelOptions(Section):
    """[model]: a preset and what to change in it. Without a preset, the paper's base model is what is changed."""

    preset: str | None = Field(default=None, description='A named shape: "paper-base", "paper-big", "tiny".')
    d_model: int | None = Field(default=None, ge=1, description="Width of the residual stream.")
    d_ff: int | None = Field(default=None, ge=1, description="Inner width of the feed-forward (§3.3).")
    heads: int | None = Field(default=None, ge=1, description="Attention heads (§3.2.2).")
    d_k: int | None = Field(default=None, ge=0, description="Width of a head's queries and keys; 0 = d_model / heads.")
    d_v: int | None = Field(default=None, ge=0, description="Width of a head's values; 0 = d_model / heads.")
    encoder_layers: int | None = Field(default=None, ge=1, description="Layers of the encoder.")
    decoder_layers: int | None = Field(default=None, ge=1, description="Layers of the decoder.")
    norm: Literal["layer", "rms"] | None = Field(default=None, description="LayerNorm, or RMSNorm.")
    norm_position: Literal["post", "pre"] | None = Field(
        default=None, description="Norm after the sum (§3.1), or before."
    )
    position: Literal["sinusoidal", "learned"] | None = Field(default=None, description="Position encoding (§3.5).")
    sinusoidal_order: Literal["interleaved", "half"] | None = Field(
        default=None, description="Order of sines and cosines."
    )
    max_len: int | None = Field(default=None, ge=1, description="Positions a learned table has.")
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] | None = Field(
        default=None, description="In the feed-forward."
    )
    gated: bool | None = Field(default=None, description="A gated feed-forward (GLU).")
    bias: bool | None = Field(default=None, description="Biases in the linear layers.")
    dropout: Rate | None = Field(default=None, description="Residual and embedding dropout (§5.4).")
    scale_embeddings: bool | None = Field(
        default=None, description="Multiply embeddings by the root of d_model (§3.4)."
    )
    tie: Literal["three-way", "source-target", "target-output", "none"] | None = Field(
        default=None, description="Which embedding tables are one (§3.4: three-way)."
    )
    pad_vocab_to: int | None = Field(default=None, ge=1, description="Rows of the tables are a multiple of this.")

    def config(self, *, source_vocab: int, target_vocab: int) -> TransformerConfig:
        """The shape that is meant: the paper's base model, changed by the preset, changed by the keys given here.

        Raises:
            InputError: the sizes do not fit together.
        """
        given = self.model_dump(exclude={"preset"}, exclude_none=True)
        preset = PRESETS[self.preset] if self.preset else {}
        return TransformerConfig(source_vocab=source_vocab, target_vocab=target_vocab, **(preset | given))

    @model_validator(mode="after")
    def _check(self) -> "ModelOptions":
        if self.preset is not None and self.preset not in PRESETS:
            near = get_close_matches(self.preset, PRESETS, n=1)
            names = f"the presets are {', '.join(PRESETS)}"
            broken("preset", f"there is no preset {self.preset!r}", f"did you mean {near[0]}" if near else names)
        try:
            # The rules are the config's own; the vocabularies are not known yet, and any two equal ones will do.
            self.config(source_vocab=8, target_vocab=8)
        except InputError as error:
            broken((error.where or "").removeprefix("model."), error.what, error.fix or "choose sizes that fit")
        return self


class LossOptions(Section):
    """[loss]: what is minimised (§5.4)."""

    label_smoothing: Rate = Field(default=0.1, description="Share of the target's probability spread over all tokens.")


class OptimizerOptions(Section):
    """[optimizer]: how gradients become updates (§5.3)."""

    name: Literal["adam", "adamw", "muon"] = Field(
        default="adam", description="Adam; with decoupled weight decay; Muon for the matrices of the layers."
    )
    betas: Annotated[tuple[Rate, Rate], _FromList] = Field(default=(0.9, 0.98), description="Decay of the two moments.")
    eps: float = Field(default=1e-9, gt=0.0, description="Added to the root of the second moment.")
    momentum: Rate = Field(default=0.95, description="muon only: decay of the mean gradient.")
    weight_decay: float = Field(
        default=0.0, ge=0.0, description="adamw and muon: decay of matrices, as a fraction of the rate."
    )
    clip: float = Field(default=0.0, ge=0.0, description="Largest global norm of the gradient; 0 = no clipping.")

    @model_validator(mode="after")
    def _check(self) -> "OptimizerOptions":
        if self.name == "adam" and self.weight_decay:
            broken("weight_decay", "adam does not decay weights", 'use optimizer.name = "adamw", or 0')
        if self.name != "muon" and self.momentum != 0.95:
            broken("momentum", f"{self.name} has no momentum to set", "set betas, and leave momentum out")
        return self


class ScheduleOptions(Section):
    """[schedule]: the learning rate at each step, counted from 1 (§5.3: noam)."""

    name: Literal["noam", "inverse_sqrt", "cosine", "constant", "linear"] = Field(
        default="noam", description="Its shape."
    )
    warmup: int = Field(default=4000, ge=0, description="Steps of linear rise.")
    factor: float = Field(default=1.0, gt=0.0, description="noam only: a factor on the paper's rate.")
    peak: float | None = Field(default=None, gt=0.0, description="All but noam: the rate at the end of the warmup.")
    floor: float = Field(
        default=0.0, ge=0.0, le=1.0, description="cosine, linear: the last rate, as a share of the peak."
    )

    @model_validator(mode="after")
    def _check(self) -> "ScheduleOptions":
        # A setting that would have no effect is refused: the reader of a recipe would believe it.
        if self.name == "noam":
            if self.peak is not None:
                broken("peak", "noam has no peak to set (its rate follows from d_model and warmup)", "set factor")
            if self.warmup < 1:
                broken("warmup", "noam divides by its warmup", "give at least 1 step")
        elif self.peak is None:
            broken("peak", f"{self.name} needs the rate that it rises to", "give schedule.peak, such as 0.001")
        elif self.factor != 1.0:
            broken("factor", f"{self.name} has no factor", "set peak instead, and leave factor out")
        if self.floor and self.name not in ("cosine", "linear"):
            broken("floor", f"{self.name} has no floor", 'leave it out, or use "cosine" or "linear"')
        return self


class TrainOptions(Section):
    """[train]: how long, how often to look, what to keep."""

    steps: int = Field(ge=1, description="Updates of the parameters.")
    accumulate: int = Field(default=1, ge=1, description="Microbatches that make one batch; the result is the same.")
    save_every: int = Field(default=1000, ge=1, description="Steps between checkpoints.")
    evaluate_every: int = Field(default=1000, ge=1, description="Steps between losses on the development set.")
    log_every: int = Field(default=100, ge=1, description="Steps between lines of metrics.")
    bleu_every: int = Field(
        default=0, ge=0, description="Steps between translations of the development set; 0 = never."
    )
    bleu_sentences: int = Field(default=0, ge=0, description="Translate only the first so many of them; 0 = all.")
    patience: int = Field(
        default=0, ge=0, description="Stop after so many evaluations without a better one; 0 = never."
    )
    keep_last: int = Field(default=3, ge=1, description="Newest checkpoints that are kept, and averaged at the end.")
    best_by: Literal["nll", "bleu"] = Field(default="nll", description="What makes a checkpoint the best.")
    # JAX's 32-bit keys would silently take 2**32 + 1 for 1.
    seed: int = Field(
        default=1, ge=0, lt=2**32, description="Of the initial weights, the order of the data and the dropout."
    )
    compute_dtype: Literal["float32", "bfloat16"] = Field(default="float32", description="Of the matrix products.")
    tensorboard: bool = Field(default=False, description="Write TensorBoard files too (extra: tensorboard).")
    mesh: int = Field(default=0, ge=0, description="Devices that share a batch; 0 = all there are.")

    @model_validator(mode="after")
    def _check(self) -> "TrainOptions":
        if self.best_by == "bleu" and not self.bleu_every:
            broken("best_by", "the best by BLEU is asked for, and BLEU is never measured", "give train.bleu_every")
        return self


class DecodeOptions(Section):
    """[decode]: how the model is searched for a translation (§6.1)."""

    beam_size: int = Field(default=4, ge=1, description="Hypotheses kept; 1 = greedy.")
    length_penalty: Literal["gnmt", "average", "none"] = Field(
        default="gnmt", description="((5+len)/6)^alpha, len^alpha, 1."
    )
    alpha: float = Field(default=0.6, ge=0.0, description="Exponent of the length penalty.")
    max_ratio: float = Field(
        default=1.0, ge=0.0, description="Longest output: max_ratio x source length + max_margin tokens."
    )
    max_margin: int = Field(default=50, ge=0, description="See max_ratio.")
    n_best: int = Field(default=1, ge=1, description="Translations given for a sentence.")
    no_repeat_ngram: int = Field(default=0, ge=0, description="Forbid repeating an n-gram of this length; 0 = off.")
    repetition_penalty: float = Field(
        default=1.0, gt=0.0, description="Makes tokens already written less likely; 1 = off."
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


class Recipe(Section):
    """A whole run. Python and TOML give the same object: `Recipe(data=..., train=...)`, `load_recipe(path)`."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = frozenset(
        {"name", "description", "data.folder", "data.test", "train.steps", "train.patience", "train.save_every"}
        | {"train.log_every", "train.keep_last", "train.tensorboard", "train.mesh"}
    )
    """Keys that a resumed run may change: none has a part in the updates up to a given step. (That the text is the
    same, wherever it is, its fingerprint says.)"""

    name: str = Field(default="", description="What to call the run; the file's name if not given.")
    description: str = Field(default="", description="What it is for.")
    data: DataOptions
    tokenizer: TokenizerOptions = TokenizerOptions()
    model: ModelOptions = ModelOptions()
    loss: LossOptions = LossOptions()
    optimizer: OptimizerOptions = OptimizerOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    train: TrainOptions
    decode: DecodeOptions = DecodeOptions()
    evaluate: EvaluateOptions = EvaluateOptions()

    @model_validator(mode="after")
    def _check(self) -> "Recipe":
        if not self.tokenizer.joint and self.model.tie not in ("target-output", "none"):
            # Two vocabularies of one size would pass every later check and share ids that mean different tokens.
            tie = self.model.tie or "three-way"
            what = f"two vocabularies (tokenizer.joint = false) cannot share one table (model.tie = {tie!r})"
            broken("model.tie", what, 'use model.tie = "target-output" or "none", or a joint tokenizer')
        shape = self.model.config(source_vocab=8, target_vocab=8)
        if shape.position == "learned" and shape.max_len <= self.data.max_tokens:
            what = f"{shape.max_len} learned positions cannot hold data.max_tokens = {self.data.max_tokens} and an eos"
            broken("model.max_len", what, "raise model.max_len or lower data.max_tokens")
        if self.schedule.name in ("cosine", "linear") and self.schedule.warmup >= self.train.steps:
            what = f"a warmup of {self.schedule.warmup} leaves none of {self.train.steps} steps to {self.schedule.name}"
            broken("schedule.warmup", what, "lower schedule.warmup or raise train.steps")
        return self


def load_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """The recipe in a TOML file, changed by `section.key=value` overrides.

    Raises:
        InputError: the file is missing, is not TOML, or does not make a recipe; the message gives file, line and key.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as missing:
        raise InputError("there is no such recipe", where=str(path), fix=_recipes_beside(path)) from missing
    except (OSError, UnicodeDecodeError) as failure:
        reason = failure.strerror if isinstance(failure, OSError) else "it is not UTF-8 text"
        raise InputError(f"the recipe cannot be read ({reason})", where=str(path), fix="give a TOML file") from failure
    return parse_recipe(text, overrides, where=str(path), name=path.stem)


def parse_recipe(text: str, overrides: Sequence[str] = (), *, where: str = "recipe", name: str = "") -> Recipe:
    """The recipe in TOML `text`; `where` and `name` are its file's, for errors and for a recipe without a name.

    Raises:
        InputError: the text is not TOML, or does not make a recipe.
    """
    document = toml.parse(text, where=where)
    document.setdefault("name", name)
    changed = {toml.assign(document, override): override for override in overrides}
    try:
        return Recipe.model_validate(document)
    except ValidationError as failure:
        key, what, fix = first_error(failure, Recipe)
    line = toml.find_line(text, key)
    # The override that set the key, or, where the file has no line for it, one that set something below it.
    blamed = [part for part in changed if f"{key}.".startswith(f"{part}.") or (not line and part.startswith(f"{key}."))]
    place = f"--set {changed[blamed[0]]}" if blamed else f"{where}:{line}" if line else where
    raise InputError(what, where=place, fix=fix)


def dump_recipe(recipe: Recipe, *, comments: bool = False) -> str:
    """The recipe as TOML with every key, defaults included, that `parse_recipe` reads back equal.

    Args:
        recipe: any recipe.
        comments: write each key's description above it.
    """
    return toml.dumps(recipe.model_dump(), dict(descriptions(Recipe)) if comments else None)


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Write `dump_recipe` to a file, whole or not at all.

    Raises:
        WorkError: the file could not be written.
    """
    try:
        atomic.write_text(path, dump_recipe(recipe))
    except OSError as failure:
        raise WorkError(f"the recipe could not be written ({failure.strerror})", where=str(path)) from failure


def difference(old: Recipe, new: Recipe) -> list[str]:
    """What changed, as "optimizer.eps: 1e-09 -> 1e-08", one line a key."""
    before, after = dict(_values(old.model_dump())), dict(_values(new.model_dump()))
    return [f"{key}: {show(before[key])} -> {show(after[key])}" for key in before if before[key] != after[key]]


def resume_conflicts(old: Recipe, new: Recipe) -> list[str]:
    """The part of `difference` that a resumed run may not change: all but `FREE_ON_RESUME`."""
    free = Recipe.FREE_ON_RESUME
    if {old.schedule.name, new.schedule.name} & {"cosine", "linear"}:
        # These end at the last step, so another last step is another rate at every step before it.
        free = free - {"train.steps"}
    if not (old.train.bleu_every or new.train.bleu_every):
        free = free | {key for key, _ in _values(new.model_dump()) if key.startswith(("decode.", "evaluate."))}
    return [line for line in difference(old, new) if line.partition(":")[0] not in free]


def _values(document: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in document.items():
        if isinstance(value, Mapping):
            yield from _values(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _recipes_beside(path: Path) -> str:
    """What to do about a recipe that is not there."""
    beside = sorted(entry.name for entry in path.parent.glob("*.toml"))
    if near := get_close_matches(path.name, beside, n=1) or get_close_matches(f"{path.name}.toml", beside, n=1):
        return f"did you mean {path.parent / near[0]}"
    return f"the recipes in {path.parent} are {', '.join(beside)}" if beside else f"{path.parent} has no recipes"
