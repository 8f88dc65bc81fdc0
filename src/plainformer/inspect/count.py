"""What a model is made of: every part, its shape, its parameters, and how it departs from the paper."""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields

from plainformer.folder import AnyConfig, abstract_model
from plainformer.models.config import LanguageModelConfig, SingleStackConfig, TransformerConfig
from plainformer.models.parameters import named_shapes


@dataclass(frozen=True)
class Part:
    """One parameter array: its path in the model, its shape, how many numbers that is."""

    name: str
    shape: tuple[int, ...]

    @property
    def parameters(self) -> int:
        return math.prod(self.shape)


def parts(config: AnyConfig) -> list[Part]:
    """Every parameter array of the model that `config` describes, without making it. A tied table stands once."""
    return [Part(name, shape) for name, shape in named_shapes(abstract_model(config)).items()]


def count(config: AnyConfig) -> int:
    """The parameters of the model that `config` describes."""
    return sum(part.parameters for part in parts(config))


def grouped(found: list[Part]) -> Iterator[tuple[str, list[Part], int]]:
    """Parts with equal layers folded: `encoder.layers.0-5.…` once, and how many times it occurs."""
    groups: dict[tuple[str, tuple[int, ...]], list[Part]] = {}
    for part in found:
        pieces = part.name.split(".")
        name = ".".join("*" if at and pieces[at - 1] == "layers" else piece for at, piece in enumerate(pieces))
        groups.setdefault((name, part.shape), []).append(part)
    for (name, _), members in groups.items():
        folded = name.replace("layers.*", f"layers.0-{len(members) - 1}")
        yield folded if len(members) > 1 else members[0].name, members, len(members)


def departures(config: AnyConfig) -> list[str]:
    """Where a model departs from the paper's base model (Table 3), one line each; empty if nowhere."""
    paper = asdict(TransformerConfig(1, 1))
    lines = []
    if isinstance(config, SingleStackConfig):
        paper |= {"layers": paper["encoder_layers"], "tie": True}
        decoder = isinstance(config, LanguageModelConfig)
        lines.append("a decoder alone, with no memory to look at" if decoder else "an encoder alone")
        if config.kv_heads not in (0, config.heads):
            lines.append(f"{config.heads} heads share {config.kv_heads} keys and values; the paper's have their own")
    values = {field.name: getattr(config, field.name) for field in fields(config)}
    lines += [
        f"{name} is {value}; the paper's base model has {paper[name]}"
        for name, value in values.items()
        if name in paper and name not in _NOT_COMPARED and value != paper[name]
    ]
    for name, width in (("d_k", config.key_width), ("d_v", config.value_width)):
        if width * config.heads != config.d_model:
            lines.append(f"{name} is {width}; the paper has d_model / heads = {config.d_model / config.heads:g}")
    return lines


_NOT_COMPARED = {"source_vocab", "target_vocab", "max_len", "pad_vocab_to", "d_k", "d_v", "norm_eps"}
