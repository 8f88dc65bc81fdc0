"""A model folder, or a run, as the object that uses its model."""

import warnings
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, TypeVar, get_args

from plainformer.decode.mask_filler import MaskFiller
from plainformer.decode.text_classifier import TextClassifier
from plainformer.decode.text_generator import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.devices import default_device
from plainformer.errors import InputError, shown
from plainformer.folder import Model, ModelFolder, load_folder
from plainformer.given import callables, place
from plainformer.kernels.cpu import build
from plainformer.locate import find_model
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.transformer import Transformer
from plainformer.quantize.linear import INT8, Precision

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
            in float32 all the same. The model is loaded as it is; its parts are swapped for rounded ones when it first
            decodes, and both are kept. For int8 and w8a8 other processes compile CPU kernels, the first time.
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
