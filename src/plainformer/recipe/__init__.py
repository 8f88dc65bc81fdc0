"""A recipe: everything that decides a training run, as one typed object, read from TOML and written back whole.

Every setting stands with its meaning and its default in the file of its task; `sections.py` has what all tasks share.
"""

from plainformer.recipe.base import Recipe
from plainformer.recipe.classification import ClassificationRecipe
from plainformer.recipe.files import (
    TASKS,
    difference,
    dump_recipe,
    load_recipe,
    parse_recipe,
    resume_conflicts,
    save_recipe,
)
from plainformer.recipe.language import LanguageRecipe
from plainformer.recipe.masked import MaskedRecipe
from plainformer.recipe.translation import TranslationRecipe

__all__ = [
    "TASKS",
    "ClassificationRecipe",
    "LanguageRecipe",
    "MaskedRecipe",
    "Recipe",
    "TranslationRecipe",
    "difference",
    "dump_recipe",
    "load_recipe",
    "parse_recipe",
    "resume_conflicts",
    "save_recipe",
]
