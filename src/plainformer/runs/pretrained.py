"""A model that training starts from, with its vocabulary: what fine-tuning takes over."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax

from plainformer.adapter import base_of, hash_of_model
from plainformer.decode.load import USERS, VERBS
from plainformer.errors import InputError
from plainformer.folder import AnyConfig, Model, ModelFolder, abstract_model, load_folder, read_config
from plainformer.given import or_near
from plainformer.locate import find_model
from plainformer.models.config import EncoderConfig
from plainformer.recipe.sections import ShapeOptions
from plainformer.shapes import PRNGKeyArray
from plainformer.spelling import option


@dataclass(frozen=True)
class Pretrained:
    """A model folder that was read, to be trained on.

    folder: where it is, absolute.
    content: the model and its tokenizers.
    sha256: `hash_of_model`, which a resumed run compares.
    dropout: another rate than the model had, or None for its own.
    """

    folder: Path
    content: ModelFolder
    sha256: str
    dropout: float | None = None

    @property
    def config(self) -> Any:
        """Of the model to be trained."""
        config = self.content.model.config
        given: dict[str, Any] = {} if self.dropout is None else {"dropout": self.dropout}
        given |= {"head": True} if isinstance(config, EncoderConfig) else {}
        return replace(config, **given)

    def check_is_not_in(self, run: Path) -> None:
        """Raises InputError where the model, or one that it is an adapter of, is in the folder of this run."""
        found = self.folder
        while not found.resolve().is_relative_to(run.resolve()):
            below = base_of(found)
            if below is None or below == found:
                return
            found = below
        what = f"the run here has the model that training starts from ({found}), and would be cleared away"
        raise InputError(what, where=str(run), fix="give the new run another folder")

    def model(self, config: AnyConfig, key: PRNGKeyArray) -> Model:
        """The model of the folder, with the settings of `config`; nothing is drawn with the key."""
        return jax.tree.unflatten(jax.tree.structure(abstract_model(config)), jax.tree.leaves(self.content.model))


def open_pretrained(options: ShapeOptions, wanted: type[Model]) -> Pretrained | None:
    """The model that a recipe's [model] starts from; None where it is a new one.

    Raises:
        InputError: there is no such model, it is damaged, it is replaced meanwhile, or it is not of the kind that is
            `wanted`.
    """
    if options.init_from is None:
        return None
    if not Path(options.init_from).exists():
        how = option("from", "MODEL", python="model.init_from")
        fix = or_near(
            Path(options.init_from), f"name a run, or a model folder, to start from ({how}), or train it first"
        )
        raise InputError("there is no such model folder", where=options.init_from, fix=fix)
    folder = find_model(Path(options.init_from)).absolute()
    read_config(folder)  # which says best what is wrong
    before, content = hash_of_model(folder), load_folder(folder)
    if before != hash_of_model(folder):
        raise InputError("this model was replaced while it was read", where=str(folder), fix="start again")
    if not isinstance(content.model, wanted):
        has, needs = (VERBS[USERS[kind]] for kind in (type(content.model), wanted))
        what = f"this model is for plainformer {has}, and this recipe starts from one for plainformer {needs}"
        raise InputError(what, where=str(folder), fix="name another model, or another recipe")
    return Pretrained(folder, content, before, options.dropout)


def check_room(places: int, max_tokens: int) -> None:
    """Raises InputError where a text of `max_tokens` is longer than the model that it starts from can read."""
    if places < max_tokens:
        what = f"the model that it starts from reads {places} tokens"
        raise InputError(what, where="data.max_tokens", fix="lower it to that, or leave it out")
