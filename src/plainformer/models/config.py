"""The shape of a model, as data: what a model folder's `config.json` holds. No JAX is imported here."""

import math
from collections.abc import Sequence
from dataclasses import MISSING, asdict, dataclass, fields, replace
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from plainformer.equations.names import ActivationName, SinusoidalOrder
from plainformer.equations.rope_scaling import RopeScaling
from plainformer.errors import InputError, shown
from plainformer.files.json_object import is_of_type
from plainformer.renamed import CONFIG, config, old_fields, with_new_keys

# The variants by name, as recipes say them, too.
NormName = Literal["layer", "rms"]
NormPosition = Literal["post", "pre"]
TransformerPosition = Literal["sinusoidal", "learned", "alibi"]
StackPosition = Literal["learned", "sinusoidal", "rotary", "alibi"]
DecoderStart = Literal["token", "zero"]
AttentionBias = bool | Literal["query_key_value"]
Tie = Literal["three-way", "source-target", "target-output", "none"]
ConfigT = TypeVar("ConfigT", bound="Config")

MAY_BE_ZERO = ("d_k", "d_v", "kv_heads", "token_types")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What the three architectures have in common. The defaults are the paper's base model (Table 3).

    `d_k` and `d_v` of 0 mean d_model / heads. `pad_vocab_to` rounds the rows of the tables up; the extra ones are never
    predicted. `norm_eps` of 0 is the norm's usual: 1e-5 for LayerNorm, 1e-6 for RMSNorm. `bias_in` says which linear
    maps of a layer have biases, where there is `bias`; `query_key_value` is attention's without its output.
    """

    d_model: int = 512
    d_ff: int = 2048
    heads: int = 8
    d_k: int = 0
    d_v: int = 0
    norm: NormName = "layer"
    norm_position: NormPosition = "post"
    sinusoidal_order: SinusoidalOrder = "interleaved"
    activation: ActivationName = "relu"
    gated: bool = False
    bias: bool = True
    bias_in: Literal["all", "attention", "feed_forward", "query_key_value"] = "all"
    norm_eps: float = 0.0
    dropout: float = 0.1
    scale_embeddings: bool = True
    pad_vocab_to: int = 64

    def __post_init__(self) -> None:
        """Raises InputError where a value is of the wrong type, or the sizes do not fit together."""
        self._check_types()
        for field in fields(self):
            value = getattr(self, field.name)
            least = 0 if field.name in MAY_BE_ZERO or field.name.endswith("layers") else 1
            if type(value) is int and value < least:
                what = f"{field.name} is {value} and must be at least {least}"
                raise InputError(what, where=f"model.{field.name}")
        if not 0.0 <= self.norm_eps < 1.0:
            raise InputError(
                f"norm_eps is {self.norm_eps}", where="model.norm_eps", fix="give 0 (the usual) to below 1"
            )
        if not 0.0 <= self.dropout < 1.0:
            raise InputError(f"dropout is {self.dropout}", where="model.dropout", fix="give a rate from 0 to below 1")
        if self.d_model % self.heads and not (self.d_k and self.d_v):
            raise InputError(
                f"d_model {self.d_model} is not divisible by {self.heads} heads",
                where="model.heads",
                fix="choose a number of heads that divides d_model, or give d_k and d_v",
            )

    def _check_types(self) -> None:
        for name, wanted in get_type_hints(type(self)).items():
            value, choices = getattr(self, name), get_args(wanted)
            if wanted in (int, float, bool) and not is_of_type(value, wanted):
                what = f"{name} is {shown(value)} and must be of type {wanted.__name__}"
            elif get_origin(wanted) is Literal and value not in choices:
                what = f"{name} is {shown(value)} and must be one of {', '.join(choices)}"
            elif wanted == tuple[str, ...] and not (
                isinstance(value, tuple) and all(isinstance(one, str) for one in value)
            ):
                what = f"{name} is {shown(value)} and must be a tuple of str"
            else:
                continue
            raise InputError(what, where=f"model.{name}")

    @property
    def key_width(self) -> int:
        """d_k: width of one head's query and key."""
        return self.d_k or self.d_model // self.heads

    @property
    def value_width(self) -> int:
        """d_v: width of one head's value."""
        return self.d_v or self.d_model // self.heads

    @property
    def epsilon(self) -> float:
        """What the norms add to a variance, or a mean square."""
        return self.norm_eps or {"layer": 1e-5, "rms": 1e-6}[self.norm]

    @property
    def attention_bias(self) -> AttentionBias:
        """Which linear maps of attention have biases: all, none, or those of queries, keys and values alone."""
        if self.bias and self.bias_in == "query_key_value":
            return "query_key_value"
        return self.bias and self.bias_in != "feed_forward"

    @property
    def feed_forward_bias(self) -> bool:
        """Whether the linear maps of the feed-forward have biases."""
        return self.bias and self.bias_in in ("all", "feed_forward")

    def rows(self, vocab: int) -> int:
        """Rows of an embedding table for `vocab` tokens, padding included."""
        return -(-vocab // self.pad_vocab_to) * self.pad_vocab_to

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls: type[ConfigT], values: dict[str, Any], *, where: str = "config.json") -> ConfigT:
        """Raises InputError on an unknown or missing key, a value of the wrong type, or sizes that do not fit."""
        defaults = {field.name: field.default for field in fields(cls)}
        values = with_new_keys(values, {old: new for old, new in CONFIG.items() if new in defaults})
        if unknown := sorted(set(values) - set(defaults)):
            raise InputError(f"unknown model setting {', '.join(unknown)}", where=where)
        needed = {name for name, default in defaults.items() if default is MISSING}
        if missing := sorted(needed - set(values)):
            raise InputError(f"missing model setting {', '.join(missing)}", where=where)
        if isinstance(values.get("labels"), list):  # JSON knows no tuples
            values = values | {"labels": tuple(values["labels"])}
        if isinstance(values.get("rope_scaling"), dict):
            values = values | {"rope_scaling": RopeScaling.from_dict(values["rope_scaling"], where=where)}
        for name, wanted in get_type_hints(cls).items():
            if wanted == RopeScaling | None:
                if not isinstance(values.get(name), RopeScaling | None):
                    raise InputError(f"{name} is {shown(values[name])} and must be an object or null", where=where)
                continue
            if wanted == tuple[str, ...]:
                names = values.get(name, defaults[name])
                if not (isinstance(names, tuple) and all(isinstance(label, str) for label in names)):
                    raise InputError(f"{name} is {shown(names)} and must be a list of names", where=where)
                continue
            value, choices = values.get(name, defaults[name]), get_args(wanted)
            if not (value in choices if choices else is_of_type(value, wanted)):
                must = f"one of {', '.join(choices)}" if choices else f"of type {wanted.__name__}"
                raise InputError(f"{name} is {shown(value)} and must be {must}", where=where)
        try:
            return cls(**values)
        except InputError as error:
            raise InputError(error.what, where=where, fix=error.fix) from error


@dataclass(frozen=True)
class TransformerConfig(Config):
    """An encoder-decoder. The defaults are the paper's base model, but for the vocabularies.

    `max_len` bounds learned positions only; sinusoidal ones have no bound. `tie` says which of the source embedding,
    target embedding and output projection are one matrix (section 3.4: three-way).

    Two things are Marian's (Junczys-Dowmunt et al. 2018), and not the paper's: `output_bias`, a bias of every token's
    logit; and `decoder_start`: with `zero` the decoder's first input is its position alone, and no token's embedding.
    """

    source_vocab: int
    target_vocab: int
    encoder_layers: int = 6
    decoder_layers: int = 6
    position: TransformerPosition = "sinusoidal"
    max_len: int = 512
    tie: Tie = "three-way"
    output_bias: bool = False
    decoder_start: DecoderStart = "token"

    @property
    def vocabularies(self) -> tuple[int, int]:
        """Tokens of what is read and of what is written."""
        return self.source_vocab, self.target_vocab

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tie in ("three-way", "source-target") and self.source_vocab != self.target_vocab:
            raise InputError(
                f"the source has {self.source_vocab} tokens and the target {self.target_vocab}, so their embeddings "
                "cannot be one table",
                where="model.tie",
                fix="use a joint tokenizer, or tie = 'target-output' or 'none'",
            )


@dataclass(frozen=True, kw_only=True)
class SingleStackConfig(Config):
    """What a decoder alone and an encoder alone have in common: one stack of layers over one vocabulary.

    `context` is the longest sequence it is trained on and reads at once. `kv_heads` of 0 is as many as `heads`. `tie`:
    the embedding table is the output projection. `rope_theta` is the base of rotary angles, `rope_scaling` how they are
    slowed down for a context longer than the first training's.
    """

    vocab: int
    context: int
    layers: int = 12
    kv_heads: int = 0
    position: StackPosition = "learned"
    rope_theta: float = 10_000.0
    rope_scaling: RopeScaling | None = None
    tie: bool = True
    d_model: int = 768
    d_ff: int = 3072
    heads: int = 12
    scale_embeddings: bool = False

    @property
    def vocabularies(self) -> tuple[int, int]:
        """Tokens of what is read and of what is written: the same."""
        return self.vocab, self.vocab

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.kv_heads and self.heads % self.kv_heads:
            raise InputError(
                f"{self.heads} heads cannot share {self.kv_heads} keys and values evenly",
                where="model.kv_heads",
                fix="choose a divisor of heads",
            )
        if not 0.0 < self.rope_theta < math.inf:
            raise InputError(f"rope_theta is {self.rope_theta}", where="model.rope_theta", fix="give a positive number")
        if self.position == "rotary" and self.key_width % 2:
            raise InputError(
                f"rotary positions turn pairs of features, and d_k is {self.key_width}",
                where="model.position",
                fix="choose an even d_k",
            )


@old_fields(config)
@dataclass(frozen=True, kw_only=True)
class LanguageModelConfig(SingleStackConfig):
    """A decoder without memory. The defaults are those of the smallest GPT-2 (Radford et al. 2019)."""

    context: int = 1024
    norm_position: NormPosition = "pre"
    activation: ActivationName = "gelu_tanh"


@old_fields(config)
@dataclass(frozen=True, kw_only=True)
class EncoderConfig(SingleStackConfig):
    """An encoder without decoder. The defaults are those of the smaller BERT (Devlin et al. 2019).

    With `labels`, the names of the classes in the order of the outputs, it is a classifier; without, it is a masked
    language model.

    The rest is what BERT's own checkpoints have, and an encoder can do without: `token_types`, a table of so many rows
    added to the embeddings (which sentence of a pair a token is in; 0 is none); `embedding_norm`, a norm on their sum;
    `mlm_transform`, a layer before the masked language model's output projection; `output_bias`, a bias of every
    token's logit; `pooling`, the vector that a classifier goes by: the `mean` of the hidden states, or that of the
    `first` token through a layer of its own; `add_cls_sep`: a text is read between the tokenizer's bos and eos ([CLS]
    and [SEP]). Without a `head` the output projection was never trained: there are hidden states, and no
    masked token is predicted.
    """

    context: int = 512
    activation: ActivationName = "gelu"
    labels: tuple[str, ...] = ()
    token_types: int = 0
    embedding_norm: bool = False
    mlm_transform: bool = False
    output_bias: bool = False
    pooling: Literal["mean", "first"] = "mean"
    add_cls_sep: bool = False
    head: bool = True

    @property
    def max_text_tokens(self) -> int:
        """The most tokens of a text that it reads: its context, less the two that enclose a text."""
        return self.context - 2 * self.add_cls_sep

    def with_max_text_tokens(self, tokens: int) -> "EncoderConfig":
        """The same, to read texts of so many tokens."""
        return replace(self, context=tokens + 2 * self.add_cls_sep)

    def with_labels(self, labels: Sequence[str], **changes: Any) -> "EncoderConfig":
        """The classifier with this encoder, other settings changed as given."""
        return replace(self, labels=tuple(labels), **{"head": True, **changes})

    def __post_init__(self) -> None:
        super().__post_init__()
        if twice := sorted({label for label in self.labels if self.labels.count(label) > 1}):
            raise InputError(
                f"the label {shown(twice[0])} is named twice", where="model.labels", fix="name every label once"
            )
        if len(self.labels) == 1:
            what = f"{shown(self.labels[0])} is the only label, and there is nothing to tell apart"
            raise InputError(what, where="model.labels", fix="name at least two labels")
