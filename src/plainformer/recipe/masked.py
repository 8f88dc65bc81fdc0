"""The recipe of a masked language model: running text, one vocabulary, an encoder that fills in hidden tokens."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from plainformer.models.config import EncoderConfig
from plainformer.recipe.sections import Section, StackOptions, TrainOptions
from plainformer.recipe.text import TextRecipe


class EncoderOptions(StackOptions):
    """[model]: the encoder. Without a preset, the smaller BERT is what is changed."""

    CONFIG: ClassVar[type[Any]] = EncoderConfig


class MaskOptions(Section):
    """[mask]: which tokens the model has to find (Devlin et al. 2019, section 3.1)."""

    share: float = Field(default=0.15, gt=0.0, lt=1.0, description="Share of the tokens that are to be found.")
    whole_words: bool = Field(default=False, description="All tokens of a chosen word together.")


class MaskedRecipe(TextRecipe):
    """A whole run: `MaskedRecipe(task="masked-language-model", data=..., train=...)`, or `load_recipe(path)`."""

    task: Literal["masked-language-model"] = Field(description="What the model is to learn.")
    model: EncoderOptions = EncoderOptions()
    mask: MaskOptions = MaskOptions()
    train: TrainOptions
