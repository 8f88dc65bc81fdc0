"""A model folder, or a run, as the object that uses its model."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from plainformer.adapter import ADAPTER_CONFIG
from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.text_classifier import TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.devices import default_device
from plainformer.errors import InputError, shown
from plainformer.folder import Model, ModelFolder, has_weights, load_folder, read_config
from plainformer.given import callables, place
from plainformer.interop.sentence import MODULES
from plainformer.kernels.cpu import build
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.quantize.linear import INT8, Precision
from plainformer.spelling import command, tells_the_shell

PLACES = ("average", "best", "last")
"""The model folders of a run; the first that is there is used."""

PLACES_OF_CLASSIFIER = ("best", "average", "last")
"""Those of a classifier's run, which is often past its best when it ends."""

VERBS: dict[type, str] = {
    Translator: "translate",
    TextGenerator: "generate",
    MaskFiller: "fill",
    TextClassifier: "classify",
}
"""What each kind is for: the verb of the command line, and of its class."""

USERS: dict[type[Model], Any] = {
    Transformer: Translator,
    LanguageModel: TextGenerator,
    MaskedLanguageModel: MaskFiller,
    Classifier: TextClassifier,
}
"""What uses each kind of model."""

User = TypeVar("User")


Said = Callable[[str], None]


def _warned(line: str) -> None:
    warnings.warn(line, stacklevel=3)


def load(
    folder: str | Path,
    *,
    weights: str = "float32",
    base: str | Path | None = None,
    say: Said | None = _warned,
) -> Any:
    """The model in `folder`, or that of a run (`find_model`): a `Translator`, a `TextGenerator`,
    a `MaskFiller` or a `TextClassifier`.

    Args:
        weights: float32, bfloat16, int8 or w8a8: what the weights of a translator or writer are rounded to for
            decoding, for w8a8 the inputs of their products as well (`quantize`). Scores of given texts are computed
            in float32 all the same. For int8 and w8a8 other processes compile CPU kernels, the first time.
        base: the model that an adapter belongs to, where it is not where the adapter says.
        say: told what a folder of another library says about decoding that has no counterpart here; a warning if not
            given, None where nothing is decoded.

    Raises:
        InputError: there is none, or it is damaged; no such weights, or a model that does not decode.
    """
    if weights not in get_args(Precision):
        named = weights if isinstance(weights, str) else shown(weights)
        raise InputError(f"there are no {named} weights", fix=f"choose {', '.join(get_args(Precision))}")
    if say is not None:
        callables(say=say)
    found = find_model(place(folder, "a model folder or a run"))
    if weights in INT8 and default_device().platform == "cpu":
        build.precompile(build.DECODING)
    content = load_folder(found, None if base is None else Path(base))
    user = USERS[type(content.model)].of(content)
    if say is not None and (left_out := content.generation_file.left_out):
        said = f"settings of decoding without a counterpart here, left out: {', '.join(left_out)}"
        say(f"{content.generation_file.path}: {said}")
    if weights == "float32":
        return user
    if not isinstance(user, Translator | TextGenerator):
        what = f"only what decodes can have {weights} weights"
        raise InputError(what, where=str(found), fix="leave them float32")
    return replace(user, weights=weights)


def settings_of(content: ModelFolder) -> dict[str, Any]:
    """All settings of decoding, those that the folder leaves to their defaults too; none for what does not decode.

    Raises:
        InputError: settings that will not do.
    """
    user = USERS[type(content.model)].of(content)
    if not isinstance(user, Translator | TextGenerator):
        return dict(content.generation)
    if user.unusable is not None:
        raise user.unusable
    return asdict(user.settings)


def load_as(
    folder: str | Path,
    wanted: type[User] | tuple[type[User], ...],
    verb: str | None = None,
    *,
    weights: str = "float32",
    base: str | Path | None = None,
    say: Said | None = _warned,
) -> User:
    """`load`, where only one kind will do, or one of some.

    Args:
        verb: what it is wanted for, where that is not what the (first) kind is made for.
        weights, say: as for `load`.

    Raises:
        InputError: as `load`, and for a model of another kind.
    """
    found = load(folder, weights=weights, base=base, say=say)
    if not isinstance(found, wanted):
        first = wanted[0] if isinstance(wanted, tuple) else wanted
        own = "embed" if isinstance(found, MaskFiller) and not found.model.config.head else VERBS[type(found)]
        what = f"this model is for plainformer {own}, not for {verb or VERBS[first]}"
        raise InputError(what, where=str(folder))
    return found


def find_model(folder: Path) -> Path:
    """The model folder that `folder` is or, as a run, holds: its average, else its best, else its last.

    A classifier's best comes before its average.

    Raises:
        InputError: a folder is there, and no model in it, or one that is damaged.
    """
    if any((folder / name).exists() for name in ("config.json", ADAPTER_CONFIG)) or not folder.is_dir():
        return folder
    if kept := [name for name in PLACES if has_weights(folder / name)]:
        config, _ = read_config(folder / kept[0])
        order = PLACES_OF_CLASSIFIER if getattr(config, "labels", ()) else PLACES
        return folder / min(kept, key=order.index)
    if (folder / "recipe.toml").exists():
        on = command("plainformer", "train", folder / "recipe.toml", "--run", folder, "--resume")
        arguments = f"plainformer.load_recipe({str(folder / 'recipe.toml')!r}), {str(folder)!r}, resume=True"
        on = on if tells_the_shell() else f"plainformer.run_recipe({arguments})"
        raise InputError("this run has left no model yet", where=str(folder), fix=f"let it end, or go on with {on}")
    if (folder / MODULES).exists():
        what = "the Transformer of this sentence encoder is in a folder of its own, where its pooling is not known"
        fix = f'move the files of that folder up to {MODULES}, and set its path there to ""'
        raise InputError(what, where=str(folder), fix=fix)
    inside = sorted(entry.name for entry in folder.iterdir() if _holds_model(entry))
    fix = f"it holds {', '.join(inside[:5])}: name one of them, as {folder / inside[0]}" if inside else "train one"
    raise InputError("this folder holds no model", where=str(folder), fix=fix)


def _holds_model(folder: Path) -> bool:
    return any(has_weights(folder / place) for place in (".", *PLACES))
