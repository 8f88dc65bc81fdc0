"""What the recipes of all tasks have in common."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, model_validator

from plainformer.files.validation import broken
from plainformer.recipe.finetune import TuneOptions
from plainformer.recipe.sections import OptimizerOptions, ScheduleOptions, Section
from plainformer.spelling import option

OTHER_NAMES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("lr", "learningrate", "maxlr", "peaklr"), ("schedule.peak",)),
    **dict.fromkeys(("warmupsteps", "warmupiters"), ("schedule.warmup",)),
    **dict.fromkeys(("epochs", "numepochs", "numtrainepochs", "maxsteps", "maxiters", "numsteps"), ("train.steps",)),
    **dict.fromkeys(("gradientaccumulationsteps", "gradaccum"), ("train.accumulate",)),
    **dict.fromkeys(("bf16", "precision", "dtype"), ("train.compute_dtype",)),
    **dict.fromkeys(("maxgradnorm", "gradclip", "clipnorm"), ("optimizer.clip",)),
    **dict.fromkeys(("batch", "batchsize", "bs"), ("data.batch_size", "data.batch_tokens")),
    **dict.fromkeys(("hiddensize", "embeddim", "nembd", "dim", "width"), ("model.d_model",)),
    **dict.fromkeys(("intermediatesize", "ffndim", "feedforwarddim", "ninner"), ("model.d_ff",)),
    **dict.fromkeys(("nhead", "nheads", "numheads", "numattentionheads"), ("model.heads",)),
    **dict.fromkeys(("nlayer", "nlayers", "numlayers", "numhiddenlayers"), ("model.layers", "model.encoder_layers")),
    **dict.fromkeys(("blocksize", "seqlen", "maxlength", "maxseqlen", "nctx"), ("model.context", "data.max_tokens")),
    **dict.fromkeys(("beam", "beams", "numbeams"), ("decode.beam_size",)),
}
"""What settings are called elsewhere, in small letters without signs, and the names here, of which the first that a
task has is meant."""


class Recipe(Section, ABC):
    """Everything that decides a training run, as one typed object. A task's own recipe adds its tables.

    `task` says which it is; `data`, `tokenizer`, `model`, `loss` and `train`, a `TrainOptions`, are the task's.
    """

    FREE_ON_RESUME: ClassVar[frozenset[str]] = frozenset(
        {"name", "description", "model.init_from", "train.steps", "train.patience", "train.save_every"}
        | {"train.log_every", "train.log_norms", "train.keep_last", "train.tensorboard"}
        | {"train.mesh", "train.remat", "train.scan"}
    )
    """Keys that a resumed run may change: none has a part in the updates up to a given step, but for the rounding of
    sums in another order (`train.mesh`, `train.remat`, `train.scan`). (That the text and the model to start from are
    the same, wherever they are, their fingerprints say.)"""

    OTHER_NAMES: ClassVar[Mapping[str, tuple[str, ...]]] = OTHER_NAMES

    name: str = Field(default="", description="What to call the run; the file's name if not given.")
    description: str = Field(default="", description="What it is for.")
    task: Any
    data: Any
    tokenizer: Any
    model: Any
    tune: TuneOptions = TuneOptions()
    loss: Any
    optimizer: OptimizerOptions = OptimizerOptions()
    schedule: ScheduleOptions = ScheduleOptions()
    train: Any

    @model_validator(mode="after")
    def _check(self) -> "Recipe":
        if self.name in (".", "..") or "/" in self.name or "\\" in self.name:
            broken("name", f"{self.name!r} is no name for a folder in runs/", "give a name without slashes")
        if self.model.init_from and (given := self._of_tokenizer()):
            key, what = f"tokenizer.{given[0]}", "the vocabulary is that of the model it starts from"
            broken(key, what, f"leave out {key}, or model.init_from")
        if not self.model.init_from and self.tune != TuneOptions():
            fix = f"give {option('from', 'MODEL', python='model.init_from')}"
            broken("tune", "there is nothing to tune without a model to start from", fix)
        steps, warmup = self.train.steps, self.schedule.warmup
        if self.schedule.name in ("cosine", "linear") and warmup >= steps:
            what = f"a warmup of {warmup} leaves none of {steps} steps to {self.schedule.name}"
            shorter = f"schedule.warmup={steps // 10}"
            fix = f"give {option('set', shorter, python=shorter)}, or train.steps above {warmup}"
            broken("schedule.warmup", what, fix)
        return self

    def _of_tokenizer(self) -> list[str]:
        """The keys of [tokenizer] that are given. All of them, left as they are by default, were kept by older runs."""
        given = sorted(self.tokenizer.model_fields_set)
        usual = type(self.tokenizer)()
        kept = self.tokenizer == usual and usual.model_dump(exclude_none=True).keys() <= {*given}
        return [] if kept else given

    @abstractmethod
    def anchored(self) -> "Recipe":
        """The recipe with absolute paths, as a run keeps it: its data is found from any working directory."""

    def free_with(self, other: "Recipe") -> frozenset[str]:
        """The keys in which a resumed run may differ from `other`, the one that it resumes."""
        if {self.schedule.name, other.schedule.name} & {"cosine", "linear"}:
            # These end at the last step, so another last step is another rate at every step before it.
            return self.FREE_ON_RESUME - {"train.steps"}
        return self.FREE_ON_RESUME
