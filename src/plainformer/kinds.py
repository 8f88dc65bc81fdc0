"""The kinds of models, by the `model_type` of their `config.json`, and what the card of a folder says of each."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from plainformer.errors import some_of
from plainformer.files.toml import inline
from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel
from plainformer.models.language_model import LanguageModel
from plainformer.models.parameters import AnyConfig, Model, class_of
from plainformer.models.transformer import Transformer


class Kind(NamedTuple):
    """A kind of model that a folder may hold, and what its card says: what it is, and how it is used."""

    config: type[AnyConfig]
    model: Callable[..., Model]
    what: str
    use: str


KINDS: dict[str, Kind] = {
    "plainformer-transformer": Kind(
        TransformerConfig,
        Transformer,
        "An encoder-decoder Transformer with {encoder_layers}+{decoder_layers} layers",
        'translator = plainformer.load({folder})\ntranslator.translate(["…"])',
    ),
    "plainformer-language-model": Kind(
        LanguageModelConfig,
        LanguageModel,
        "A causal language model with {layers} layers, a context of {context} tokens",
        'writer = plainformer.load({folder})\nwriter.generate(["…"])',
    ),
    "plainformer-masked-language-model": Kind(
        EncoderConfig,
        MaskedLanguageModel,
        "A masked language model (an encoder) with {layers} layers, a context of {context} tokens",
        'reader = plainformer.load({folder})\nreader.fill(["… {mask} …"])',
    ),
    "plainformer-classifier": Kind(
        EncoderConfig,
        Classifier,
        "A classifier of texts ({labels}) with {layers} layers, a context of {context} tokens",
        'labeller = plainformer.load({folder})\nlabeller.classify(["…"])',
    ),
}
"""By the `model_type` of `config.json`."""

EMBED = 'encoder = plainformer.load({folder})\nencoder.embed(["…"])'


def model_type_of(config: AnyConfig) -> str:
    """The `model_type` of a configuration."""
    return next(name for name, kind in KINDS.items() if kind.model is class_of(config))


def model_card(config: AnyConfig, about: Mapping[str, Any], folder: str, mask: str | None) -> str:
    """The model card: what the model is, and how to use it.

    Args:
        about: facts, a line each.
        folder: what the folder is called.
        mask: how a gap is written.
    """
    kind = KINDS[model_type_of(config)]
    said = config.to_dict() | {"labels": some_of(getattr(config, "labels", ()))}
    if isinstance(config, EncoderConfig) and not config.head:
        kind = kind._replace(what=kind.what.replace("A masked language model (an encoder)", "An encoder"), use=EMBED)
    what, use = kind.what.format(**said), kind.use.format(folder=inline(folder), mask=mask or "<mask>")
    origin = "imported by" if "imported from" in about else "trained with"
    facts = "\n".join(f"- {name}: {value}" for name, value in about.items())
    return (
        f"# {about.get('name') or 'A model'}\n\n"
        f"{what}, d_model {config.d_model}, d_ff {config.d_ff}, {config.heads} heads, {origin} plainformer.\n\n"
        f"{facts}\n\n```python\nimport plainformer\n\n{use}\n```\n"
    )
