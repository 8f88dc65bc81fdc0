"""The optimizer and the learning rates that a recipe states."""

import optax

from plainformer.recipe import Recipe
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import Schedule, make_schedule


def schedule_of(recipe: Recipe, d_model: int) -> Schedule:
    """The learning rate of each step that a recipe states."""
    return make_schedule(**recipe.schedule.model_dump(), d_model=d_model, steps=recipe.train.steps)


def optimizer_of(recipe: Recipe, schedule: Schedule) -> optax.GradientTransformation:
    """The optimizer that a recipe states."""
    return make_optimizer(schedule, **recipe.optimizer.model_dump())
