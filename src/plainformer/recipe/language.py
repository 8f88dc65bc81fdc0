"""The recipe of a language model: running text, one vocabulary, a causal decoder, sampling."""

from typing import Any, ClassVar, Literal

from pydantic import Field

from plainformer.decode.limits import LEAST_PENALTY, MOST_PENALTY, MOST_TOKENS
from plainformer.decode.settings import SAMPLING
from plainformer.models.config import LanguageModelConfig
from plainformer.recipe.sections import Samples, Section, StackOptions, TrainOptions
from plainformer.recipe.text import TextRecipe


class LanguageModelOptions(StackOptions):
    """[model]: the decoder. Without a preset, the smallest GPT-2 is what is changed."""

    CONFIG: ClassVar[type[Any]] = LanguageModelConfig


class LanguageTrainOptions(TrainOptions):
    """[train]: how long, how often to look, what to keep."""

    samples: Samples = 2


class GenerateOptions(Section):
    """[generate]: how the model writes, unless it is told otherwise."""

    max_tokens: int = Field(default=SAMPLING.max_tokens, ge=1, le=MOST_TOKENS, description="The most tokens written.")
    temperature: float = Field(
        default=SAMPLING.temperature, ge=0.0, description="Divides the logits; 0 = the most probable token."
    )
    top_k: int = Field(default=SAMPLING.top_k, ge=0, description="Only the so many most probable tokens; 0 = all.")
    top_p: float = Field(
        default=SAMPLING.top_p, gt=0.0, le=1.0, description="Only the most probable that have this share; 1 = all."
    )
    min_p: float = Field(
        default=SAMPLING.min_p, ge=0.0, le=1.0, description="Only tokens so probable beside the best; 0 = all."
    )
    repetition_penalty: float = Field(
        default=SAMPLING.repetition_penalty,
        ge=LEAST_PENALTY,
        le=MOST_PENALTY,
        description="Makes tokens already there less likely; 1 = off.",
    )
    seed: int = Field(default=SAMPLING.seed, ge=0, lt=2**32, description="Of the choices.")


class LanguageRecipe(TextRecipe):
    """A whole run: `LanguageRecipe(task="language-model", data=..., train=...)`, or `load_recipe(path)`."""

    FREE_ON_RESUME: ClassVar[frozenset[str]] = (
        TextRecipe.FREE_ON_RESUME | {"train.samples"} | {f"generate.{key}" for key in GenerateOptions.model_fields}
    )

    task: Literal["language-model"] = Field(description="What the model is to learn.")
    model: LanguageModelOptions = LanguageModelOptions()
    train: LanguageTrainOptions
    generate: GenerateOptions = GenerateOptions()
