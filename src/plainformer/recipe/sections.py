"""The tables that recipes of all tasks share: loss, optimizer, schedule, training, the shape of a model."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from plainformer.equations.names import ActivationName, SinusoidalOrder
from plainformer.errors import InputError, shown
from plainformer.files.validation import broken, first_error
from plainformer.mesh_shape import FORM, MeshShape
from plainformer.models.config import NormName, NormPosition, SingleStackConfig, StackPosition
from plainformer.models.presets import PRESETS

# TOML knows lists only; a frozen recipe holds tuples.
FromList = BeforeValidator(lambda value: tuple(value) if isinstance(value, list) else value)
Rate = Annotated[float, Field(ge=0.0, lt=1.0)]


def _count(value: object) -> object:
    if value == "auto" or (type(value) is int and value >= 0):
        return value
    what = f"{value!r} is no number of them" if isinstance(value, str | int | float) else "it is no number"
    raise PydanticCustomError("rule", "{what}", {"key": "", "what": what, "fix": 'give a whole number, or "auto"'})


Count = Annotated[int | Literal["auto"], BeforeValidator(_count)]
"""How many to hold out: a number, or "auto"."""


def with_dev_set(values: Any, held_out: str) -> Any:
    """[data] with a development set: val, unless it is named or `held_out` says how much of the training set it is."""
    if isinstance(values, dict) and values.get("dev") is None and values.get(held_out) is None:
        return {**values, "dev": "val"}
    return values


def check_held_out(what: str, dev: str | None, dev_count: Any, test: str | None, test_count: Any) -> None:
    """Refuse a set that is both named and held out, and a development set of nothing."""
    for name, named, count in (("dev", dev, dev_count), ("test", test, test_count)):
        if named is not None and count:
            both = f"data.{name} names a set, and data.{name}_{what} holds one out"
            broken(f"{name}_{what}", both, "keep one of them")
    if dev_count == 0:
        broken(f"dev_{what}", "a run needs a development set", "hold out 1 or more")


def absolute(path: str) -> str:
    """The path from the root of the disk, whatever the working directory becomes."""
    return os.path.abspath(Path(path).expanduser())


def _is_count(field: FieldInfo | None) -> bool:
    return field is not None and int in (field.annotation, *get_args(field.annotation))


class Section(BaseModel):
    """One table of a recipe: its types are strict (no "8" for 8), its keys are known, its values do not change."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)

    if not TYPE_CHECKING:  # a checker knows the fields better

        def __init__(self, **values: Any) -> None:
            """Raises InputError where the values will not do; a file is not read by this way, but by `parse_recipe`."""
            try:
                super().__init__(**values)
            except ValidationError as failure:
                _, what, fix = first_error(failure, type(self))
                raise InputError(what, fix=fix) from failure

        # Or pydantic would call it for every table of a file, and the error's place in the whole would be lost.
        __init__.__pydantic_base_init__ = True

    @model_validator(mode="before")
    @classmethod
    def _read_counts(cls, values: Any) -> Any:
        """A count may be written 1e3, which TOML takes for a number with a point."""
        if not isinstance(values, Mapping):
            return values
        counts = {
            name: int(value)
            for name, value in values.items()
            if isinstance(value, float) and value.is_integer() and _is_count(cls.model_fields.get(name))
        }
        return {**values, **counts}


class ShapeOptions(Section):
    """[model]: a preset and what to change in it. Without a preset, the defaults of the architecture are changed.

    With `init_from` the shape is that of another model, of which only the dropout may be changed.
    """

    CONFIG: ClassVar[type[Any]]

    init_from: str | None = Field(
        default=None, min_length=1, description="A model to start from, whose shape and vocabulary are taken over."
    )
    preset: str | None = Field(default=None, description="A named shape; plainformer info --presets shows them.")
    d_model: int | None = Field(default=None, ge=1, description="Width of the residual stream.")
    d_ff: int | None = Field(default=None, ge=1, description="Inner width of the feed-forward (§3.3).")
    heads: int | None = Field(default=None, ge=1, description="Attention heads (§3.2.2).")
    d_k: int | None = Field(default=None, ge=0, description="Width of a head's queries and keys; 0 = d_model / heads.")
    d_v: int | None = Field(default=None, ge=0, description="Width of a head's values; 0 = d_model / heads.")
    norm: NormName | None = Field(default=None, description="LayerNorm, or RMSNorm.")
    norm_position: NormPosition | None = Field(default=None, description="Norm after the sum (§3.1), or before.")
    sinusoidal_order: SinusoidalOrder | None = Field(default=None, description="Order of sines and cosines.")
    activation: ActivationName | None = Field(default=None, description="In the feed-forward.")
    gated: bool | None = Field(default=None, description="A gated feed-forward (GLU).")
    bias: bool | None = Field(default=None, description="Biases in the linear layers.")
    dropout: Rate | None = Field(default=None, description="Residual and embedding dropout (§5.4).")
    scale_embeddings: bool | None = Field(
        default=None, description="Multiply embeddings by the root of d_model (§3.4)."
    )
    pad_vocab_to: int | None = Field(default=None, ge=1, description="Rows of the tables are a multiple of this.")

    def make(self, **vocabularies: int) -> Any:
        """The configuration of a new model: the defaults, changed by the preset, changed by the keys given here.

        Raises:
            InputError: the sizes do not fit together.
        """
        given = self.model_dump(exclude={"init_from", "preset"}, exclude_none=True)
        preset = PRESETS[self.preset].values if self.preset else {}
        return self.CONFIG(**(dict(preset) | given | vocabularies))

    def trial(self) -> Any:
        """The configuration with vocabularies of some size, for checks before they are known."""
        names = ("vocab",) if issubclass(self.CONFIG, SingleStackConfig) else ("source_vocab", "target_vocab")
        return self.make(**dict.fromkeys(names, 8))

    def anchored(self) -> "ShapeOptions":
        """With an absolute path."""
        return self.model_copy(update={"init_from": absolute(self.init_from)}) if self.init_from else self

    @model_validator(mode="after")
    def _check(self) -> "ShapeOptions":
        if self.init_from and (given := self.model_dump(exclude={"init_from", "dropout"}, exclude_none=True)):
            key = next(iter(given))
            broken(key, "the shape is that of the model it starts from", f"leave out model.{key}, or model.init_from")
        if self.preset is not None and self.preset not in PRESETS:
            near = get_close_matches(self.preset, PRESETS, n=1)
            names = f"the presets are {', '.join(PRESETS)}"
            broken("preset", f"there is no preset {self.preset!r}", f"did you mean {near[0]}" if near else names)
        if self.preset is not None and PRESETS[self.preset].config is not self.CONFIG:
            names = ", ".join(name for name, preset in PRESETS.items() if preset.config is self.CONFIG)
            broken("preset", f"{self.preset} is another kind of model", f"the presets for this task are {names}")
        try:
            self.trial()
        except InputError as error:
            broken((error.where or "").removeprefix("model."), error.what, error.fix or "choose sizes that fit")
        return self


class StackOptions(ShapeOptions):
    """[model] of a decoder alone or an encoder alone."""

    layers: int | None = Field(default=None, ge=1, description="Layers.")
    context: int | None = Field(default=None, ge=1, description="The longest sequence, in tokens.")
    kv_heads: int | None = Field(
        default=None, ge=0, description="Heads of keys and values, each shared by several of queries; 0 = heads."
    )
    position: StackPosition | None = Field(default=None, description="Position encoding.")
    rope_theta: float | None = Field(default=None, gt=0.0, description="rotary only: base of the angles.")
    tie: bool | None = Field(default=None, description="The embedding's table is the output projection.")


class LossOptions(Section):
    """[loss]: what is minimised (§5.4)."""

    label_smoothing: Rate = Field(default=0.1, description="Share of the target's probability spread over all tokens.")


class PlainLossOptions(Section):
    """[loss]: what is minimised, without smoothing unless it is asked for."""

    label_smoothing: Rate = Field(default=0.0, description="Share of the target's probability spread over all classes.")


class OptimizerOptions(Section):
    """[optimizer]: how gradients become updates (§5.3)."""

    name: Literal["adam", "adamw", "muon"] = Field(
        default="adam", description="Adam; with decoupled weight decay; Muon for the matrices of the layers."
    )
    betas: Annotated[tuple[Rate, Rate], FromList] = Field(default=(0.9, 0.98), description="Decay of the two moments.")
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


def _mesh(value: object) -> object:
    """A number of devices, or a shape in words, which is kept as it was written."""
    if (type(value) is not int and not isinstance(value, str)) or (isinstance(value, int) and value < 0):
        what = f"{shown(value)} is neither a number of devices nor a mesh of them"
        raise PydanticCustomError("rule", "{what}", {"key": "", "what": what, "fix": FORM})
    try:
        MeshShape.parse(value)
    except InputError as error:
        raise PydanticCustomError("rule", "{what}", {"key": "", "what": error.what, "fix": error.fix}) from error
    return value


Samples = Annotated[int, Field(ge=0, description="Held-out texts that each look shows the model at work on; 0 = none.")]


class TrainOptions(Section):
    """[train]: how long, how often to look, what to keep."""

    steps: int = Field(ge=1, description="Updates of the parameters.")
    accumulate: int = Field(default=1, ge=1, description="Microbatches that make one batch; the result is the same.")
    save_every: int = Field(default=1000, ge=1, description="Steps between checkpoints.")
    evaluate_every: int = Field(default=1000, ge=1, description="Steps between losses on the development set.")
    log_every: int = Field(default=100, ge=1, description="Steps between lines of metrics.")
    patience: int = Field(
        default=0, ge=0, description="Stop after so many evaluations without a better one; 0 = never."
    )
    keep_last: int = Field(default=3, ge=1, description="Newest checkpoints that are kept, and averaged at the end.")
    # JAX's 32-bit keys would silently take 2**32 + 1 for 1.
    seed: int = Field(
        default=1, ge=0, lt=2**32, description="Of the initial weights, the order of the data and the dropout."
    )
    compute_dtype: Literal["float32", "bfloat16"] = Field(default="float32", description="Of the matrix products.")
    remat: bool = Field(
        default=False, description="Compute layers again for the gradient: less memory, more time; the same result."
    )
    scan: Literal["auto", "on", "off"] = Field(
        default="auto",
        description="Layers in a loop: compiled in the time of one; on a CPU a step takes 1.1 to 1.3 times as "
        "long. auto = on accelerators from 16 layers on, but not with Muon or frozen parameters.",
    )
    log_norms: bool = Field(
        default=False, description="Log norms of gradients, updates and values of every parameter (kind norms)."
    )
    tensorboard: bool = Field(default=False, description="Write TensorBoard files too (extra: tensorboard).")
    mesh: Annotated[int | str, BeforeValidator(_mesh)] = Field(
        default=0,
        description='Devices that share a batch, 0 = all; or what they share: "data=2,fsdp=4,tensor=2".',
    )
