"""A model of ours beside the Hugging Face library's own, on the same random ids: do they compute the same?"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from plainformer.errors import InputError
from plainformer.extras import require
from plainformer.files.json_object import read_object
from plainformer.interop.export import family_for
from plainformer.interop.family import Family
from plainformer.models.config import EncoderConfig, TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.parameters import AnyConfig, Model
from plainformer.nn.trace import traced

LONGEST = 64  # tokens of a row, where the context has room for them
ROWS = 4


@dataclass(frozen=True)
class Comparison:
    """How far two models are apart.

    Attributes:
        architecture: the class of theirs.
        layers: the largest absolute difference of what each layer gives, in the order in which they are computed.
        what: what the models give in the end: logits or, without a head that gives some, hidden states.
        logits: the largest difference of that.
        largest: the largest absolute number of theirs, to see the differences beside.
    """

    architecture: str
    layers: dict[str, float]
    logits: float
    largest: float
    what: str = "logits"

    def first_departure(self, tolerance: float) -> str | None:
        """The first layer that differs by more than `tolerance`; the end comes last. None where nothing does."""
        every = {**self.layers, self.what: self.logits}
        return next((name for name, difference in every.items() if not difference <= tolerance), None)


def compare(model: Model, folder: Path, *, seed: int = 0) -> Comparison:
    """Run both on the same ids, drawn at random.

    Args:
        folder: what their library loads.

    Raises:
        InputError: their library is not installed or cannot load the folder, or the models are not of one kind.
    """
    family = family_for(model.config)
    model = family.prepared(model)
    config = model.config
    theirs, architecture = _load_theirs(folder)
    _check_kind(folder, family, config, architecture)
    inputs = _inputs_of(config, np.random.default_rng(seed))
    expected, has_logits, states = _run_theirs(theirs, family, {_NAMES[name]: one for name, one in inputs.items()})
    ours = model if has_logits else _states_of(model)
    found, seen = jax.jit(traced(ours))(*(jnp.asarray(one) for one in inputs.values()))
    layers = {name: _distance(seen[name], state) for name, state in states.items()}
    what, width = "logits" if has_logits else "hidden states", expected.shape[-1]
    if found.shape[-1] < width:
        raise InputError(f"theirs has {width} {what}, and ours {found.shape[-1]}", where=str(folder))
    largest = float(np.abs(expected).max())
    return Comparison(architecture, layers, _distance(found[..., :width], expected), largest, what)


def _check_kind(folder: Path, family: Family, config: AnyConfig, architecture: str) -> None:
    """Raises InputError where the folder's model, read here, would be of another class than ours."""
    own = family.architecture(config)
    values = read_object(folder / "config.json")
    if architecture != own and values.get("model_type") == family.model_type:
        architecture = family.architecture(family.config_from(values, str(folder / "config.json")))
    if architecture != own:
        what = f"the folder is of a {architecture}, and the model is equal to a {own}"
        raise InputError(what, where=str(folder), fix="name the folder that the model is from, or was exported to")


def _states_of(model: Model) -> Callable[..., Any]:
    """The model without its head: the hidden states that its logits are told from."""
    if isinstance(model, LanguageModel):
        return model.decode
    if isinstance(model, MaskedLanguageModel | Classifier):
        return model.encoder.encode

    def decoded(source: Any, valid: Any, target: Any, *, trace: Any) -> Any:
        return model.decode(target, model.encode(source, valid, trace=trace), valid, trace=trace)

    return decoded


_NAMES = {"source": "input_ids", "ids": "input_ids", "valid": "attention_mask", "target": "decoder_input_ids"}
"""Our arguments by their names there."""


def _inputs_of(config: AnyConfig, random: np.random.Generator) -> dict[str, np.ndarray]:
    """Arguments for a call of our model, in its order; nothing is padding."""
    if isinstance(config, TransformerConfig):
        length = min(LONGEST, config.max_len)
        source = random.integers(0, config.source_vocab, (ROWS, length))
        target = random.integers(0, config.target_vocab, (ROWS, max(1, length - 3)))
        return {"source": source, "valid": np.ones(source.shape, bool), "target": target}
    ids = random.integers(0, config.vocab, (ROWS, min(LONGEST, config.context)))
    return {"ids": ids} | ({"valid": np.ones(ids.shape, bool)} if isinstance(config, EncoderConfig) else {})


def _load_theirs(folder: Path) -> tuple[Any, str]:
    """Their model, and the name of its class."""
    require("torch", extra="huggingface")
    transformers = require("transformers", extra="huggingface")
    transformers.utils.logging.disable_progress_bar()
    try:
        settings = transformers.AutoConfig.from_pretrained(folder, local_files_only=True)
        architecture = (settings.architectures or ["?"])[0]
        found = getattr(transformers, architecture).from_pretrained(folder, local_files_only=True, dtype="float32")
    except Exception as failure:  # of a folder, of settings, of weights: the library has no common class
        first = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
        fix = "name a folder that the library has written, or one that was exported for it"
        raise InputError(f"transformers cannot load this ({first})", where=str(folder), fix=fix) from failure
    return found.eval(), architecture


def _run_theirs(
    theirs: Any, family: Family, inputs: dict[str, np.ndarray]
) -> tuple[np.ndarray, bool, dict[str, np.ndarray]]:
    """Their logits, or the hidden states of a model that gives none, and which of the two it is; and what their layers
    give, by the names of ours."""
    torch = require("torch", extra="huggingface")
    states: dict[str, np.ndarray] = {}

    def keep(name: str) -> Any:
        def hook(module: Any, arguments: Any, output: Any) -> None:
            states[name] = (output[0] if isinstance(output, tuple) else output).detach().numpy()

        return hook

    modules = dict(theirs.named_modules())
    if not hasattr(theirs, family.prefix.rstrip(".")):  # a model without a head has its base's names, and no prefix
        modules = {family.prefix + name: module for name, module in modules.items()}
    for pattern, ours in family.layers.items():
        for layer in range(len(modules)):
            module = modules.get(pattern.replace("{layer}", str(layer)))
            if module is None:
                break
            module.register_forward_hook(keep(ours.replace("{layer}", str(layer))))
    with torch.no_grad():
        said = theirs(**{name: torch.tensor(array).long() for name, array in inputs.items()})
    logits = next((said[name] for name in ("logits", "prediction_logits") if name in said), None)
    return (said.last_hidden_state if logits is None else logits).numpy(), logits is not None, states


def _distance(ours: Any, theirs: np.ndarray) -> float:
    """The largest absolute difference; NaN where something is."""
    if ours.shape != theirs.shape:
        raise InputError(
            f"ours has the shape {ours.shape}, and theirs {theirs.shape}", fix="compare models of one shape"
        )
    return float(np.abs(np.asarray(ours, np.float32) - theirs).max())
