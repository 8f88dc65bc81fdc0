"""[tune]: what changes in a model that training starts from."""

from typing import Annotated

from pydantic import Field, model_validator

from plainformer.files.json_object import LARGEST
from plainformer.files.validation import broken
from plainformer.recipe.sections import FromList, Section

Patterns = Annotated[tuple[Annotated[str, Field(min_length=1)], ...], FromList]


class TuneOptions(Section):
    """[tune]: of the model that training starts from (model.init_from), what stays as it is."""

    freeze: Patterns = Field(
        default=(), description="Parameters that stay as they are, by patterns of their names, as of files."
    )
    lora_rank: int | None = Field(
        default=None, ge=1, description="Train pairs of matrices of this rank beside frozen ones (LoRA); unset = all."
    )
    lora_alpha: float = Field(default=16.0, gt=0.0, description="A pair counts alpha / rank times.")
    lora_targets: Patterns = Field(
        default=("*.query", "*.value"), min_length=1, description="Linear layers that get a pair, by patterns."
    )

    @model_validator(mode="after")
    def _check(self) -> "TuneOptions":
        if self.lora_alpha > LARGEST:
            broken("lora_alpha", f"{self.lora_alpha:g} is no number of 32 bits", "give a smaller one")
        if self.lora_rank is None:
            for key in ("lora_alpha", "lora_targets"):
                if getattr(self, key) != type(self).model_fields[key].default:
                    broken(key, "there is no LoRA without a rank", f"give tune.lora_rank, or leave out {key}")
        elif self.freeze:
            broken(
                "freeze", "with LoRA the whole model that it starts from is frozen", "leave out freeze, or lora_rank"
            )
        return self
