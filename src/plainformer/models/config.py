"""The shape of a Transformer, as data: what a model folder's `config.json` holds. No JAX is imported here."""

from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, get_args, get_type_hints

from plainformer.errors import InputError

Tie = Literal["three-way", "source-target", "target-output", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """An encoder-decoder. The defaults are the paper's base model (Table 3), but for the vocabularies.

    `d_k` and `d_v` of 0 mean d_model / heads. `max_len` bounds learned positions only; sinusoidal ones have no bound.
    `tie` says which of the source embedding, target embedding and output projection are one matrix (section 3.4:
    three-way). `pad_vocab_to` rounds the rows of the tables up; the extra ones are never predicted.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8
    d_k: int = 0
    d_v: int = 0
    encoder_layers: int = 6
    decoder_layers: int = 6
    norm: Literal["layer", "rms"] = "layer"
    norm_position: Literal["post", "pre"] = "post"
    position: Literal["sinusoidal", "learned"] = "sinusoidal"
    sinusoidal_order: Literal["interleaved", "half"] = "interleaved"
    max_len: int = 512
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    gated: bool = False
    bias: bool = True
    dropout: float = 0.1
    scale_embeddings: bool = True
    tie: Tie = "three-way"
    pad_vocab_to: int = 64

    def __post_init__(self) -> None:
        """Raises InputError where the sizes do not fit together."""
        sizes = ("source_vocab", "target_vocab", "d_model", "d_ff", "heads", "max_len", "pad_vocab_to")
        least = dict.fromkeys(sizes, 1) | dict.fromkeys(("encoder_layers", "decoder_layers", "d_k", "d_v"), 0)
        for name, bound in least.items():
            if getattr(self, name) < bound:
                raise InputError(f"{name} is {getattr(self, name)} and must be at least {bound}", where=f"model.{name}")
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout is {self.dropout}", where="model.dropout", fix="give a rate from 0 to below 1")
        if self.d_model % self.heads and not (self.d_k and self.d_v):
            raise InputError(
                f"d_model {self.d_model} is not divisible by {self.heads} heads",
                where="model.heads",
                fix="choose a number of heads that divides d_model, or give d_k and d_v",
            )
        if self.tie in ("three-way", "source-target") and self.source_vocab != self.target_vocab:
            raise InputError(
                f"the source has {self.source_vocab} tokens and the target {self.target_vocab}, so their embeddings "
                "cannot be one table",
                where="model.tie",
                fix="use a joint tokenizer, or tie = 'target-output' or 'none'",
            )

    @property
    def key_width(self) -> int:
        """d_k: width of one head's query and key."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v: width of one head's value."""
        return self.d_v or self.d_model // self.heads

    def rows(self, vocab: int) -> int:
        """Rows of an embedding table for `vocab` tokens, padding included."""
        return -(-vocab // self.pad_vocab_to) * self.pad_vocab_to

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any], *, where: str = "config.json") -> "TransformerConfig":
        """Raises InputError on an unknown or missing key, a value of the wrong type, or sizes that do not fit."""
        known = {field.name for field in fields(cls)}
        if unknown := sorted(set(values) - known):
            raise InputError(f"unknown model setting {', '.join(unknown)}", where=where)
        if missing := sorted({"source_vocab", "target_vocab"} - set(values)):
            raise InputError(f"missing model setting {', '.join(missing)}", where=where)
        for name, wanted in get_type_hints(cls).items():
            value, choices = values.get(name, getattr(cls, name, None)), get_args(wanted)
            # JSON may write the float 1.0 as 1; True is an int only to Python.
            if not (value in choices if choices else type(value) is wanted or (wanted, type(value)) == (float, int)):
                must = f"one of {', '.join(choices)}" if choices else f"of type {wanted.__name__}"
                raise InputError(f"{name} is {value!r} and must be {must}", where=where)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from error
