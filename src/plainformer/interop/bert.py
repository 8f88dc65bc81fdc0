"""BERT (Devlin et al. 2019): a post-norm encoder with token types and a norm of the embeddings, and two heads for it.

Its linear maps are PyTorch's: matrices (d_out, d_in). A checkpoint of its pretraining has a third head, which says
whether one sentence follows another; no part of ours does, and it is left out.
"""

from collections.abc import Mapping
from typing import Any

from plainformer.errors import shown
from plainformer.interop.differences import differing, grouped_heads, odd_widths
from plainformer.interop.family import Family, Row
from plainformer.interop.settings import ACTIVATION_NAMES, MOST_LABELS, MOST_LAYERS, Settings
from plainformer.models.config import Config, EncoderConfig
from plainformer.tokenizer import Tokenizer

CLASSIFIER = "BertForSequenceClassification"
WITH_HEAD = ("BertForMaskedLM", "BertForPreTraining")
WITHOUT_HEAD = "BertModel"
LENGTHS = (
    "max_tokens",
    "truncate",
)  # of a classifier: what it reads of a long text, which no checkpoint there says


def config_from(values: Mapping[str, Any], where: str) -> EncoderConfig:
    """As `Family.config_from`. The rate of dropout is that of the residuals; attention weights have none here."""
    read = Settings(values, where)
    read.require_plain()
    kind, d_model = _architecture(read, values), read.size("hidden_size", 768)
    read.require("is_decoder", False, "a BERT that reads from left to right is no encoder")
    read.require("add_cross_attention", False, "an encoder alone has no memory to look at")
    read.require("position_embedding_type", "absolute", "positions are a table that is added")
    wanted = {
        "vocab": read.size("vocab_size", 30_522),
        "context": read.size("max_position_embeddings", 512),
        "d_model": d_model,
        "d_ff": read.size("intermediate_size", 3072),
        "heads": read.heads("num_attention_heads", 12, d_model, "hidden_size"),
        "layers": read.size("num_hidden_layers", 12, least=0, most=MOST_LAYERS),
        "activation": read.activation("hidden_act", "gelu"),
        "norm_eps": read.epsilon("layer_norm_eps", 1e-12),
        "dropout": read.rate("hidden_dropout_prob", 0.1),
        "token_types": read.size("type_vocab_size", 2),
        "embedding_norm": True,
        "add_cls_sep": True,
        "pad_vocab_to": 1,
    }
    if kind == CLASSIFIER:
        wanted |= {"labels": _labels(read, values), "pooling": "first"}
    elif kind in WITH_HEAD:
        wanted |= {"mlm_transform": True, "output_bias": True, "tie": read.read("tie_word_embeddings", True)}
    else:
        wanted |= {"head": False}
    read.check()
    return EncoderConfig.from_dict(wanted, where=where)


def _architecture(read: Settings, values: Mapping[str, Any]) -> str:
    """The class of theirs that the checkpoint is of."""
    named = values.get("architectures") or [WITH_HEAD[0]]
    known = (*WITH_HEAD, CLASSIFIER, WITHOUT_HEAD)
    kind = named[0] if isinstance(named, list) else named
    if kind not in known:
        read.refuse(f"architectures is {shown(kind)}, and known are {', '.join(known)}")
    return kind


def _labels(read: Settings, values: Mapping[str, Any]) -> tuple[str, ...]:
    """The names of the classes, in the order of the outputs."""
    read.require("problem_type", "single_label_classification", "a classifier gives every text one label")
    named = values.get("id2label")
    if named is None:
        return tuple(f"LABEL_{number}" for number in range(read.size("num_labels", 2, least=2, most=MOST_LABELS)))
    if not isinstance(named, dict) or set(named) != {str(number) for number in range(len(named))}:
        read.refuse(f"id2label is {shown(named)} and must name the labels 0, 1, 2 …")
        return ()
    return tuple(str(named[str(number)]) for number in range(len(named)))


def differences(config: Config) -> list[str]:
    """As `Family.differences`."""
    if not isinstance(config, EncoderConfig):
        return ["it is no encoder"]
    theirs: dict[str, Any] = {
        "norm": "layer",
        "norm_position": "post",
        "position": "learned",
        "gated": False,
        "bias": True,
        "bias_in": "all",
        "scale_embeddings": False,
        "embedding_norm": True,
        "add_cls_sep": True,
    }
    if config.head:
        theirs |= {"pooling": "first"} if config.labels else {"mlm_transform": True, "output_bias": True}
    types = [] if config.token_types else ["it has no token types, and theirs has one or more"]
    return [*differing(config, theirs), *types, *odd_widths(config), *grouped_heads(config)]


def config_to(config: EncoderConfig) -> dict[str, Any]:
    """As `Family.config_to`."""
    labels = {str(number): label for number, label in enumerate(config.labels)}
    return {
        "architectures": [architecture(config)],
        "vocab_size": config.vocab,
        "max_position_embeddings": config.context,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_attention_heads": config.heads,
        "num_hidden_layers": config.layers,
        "hidden_act": ACTIVATION_NAMES[config.activation],
        "layer_norm_eps": config.epsilon,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": 0.0,
        "type_vocab_size": config.token_types,
        "tie_word_embeddings": config.tie,
        **({"id2label": labels, "label2id": {label: int(at) for at, label in labels.items()}} if labels else {}),
    }


def architecture(config: EncoderConfig) -> str:
    """As `Family.architecture`."""
    return CLASSIFIER if config.labels else WITH_HEAD[0] if config.head else WITHOUT_HEAD


def spelled(tokenizer: Tokenizer, config: EncoderConfig) -> Tokenizer:
    """As `Family.spelled`: [CLS] and [SEP] are around every text."""
    return tokenizer.framed(bos=True, eos=True)


def warning(config: EncoderConfig) -> dict[str, str]:
    """As `Family.warning`."""
    return {} if config.head else {"head": "there is none: it has vectors of texts (embed), and fills no gaps"}


def _is_classifier(config: EncoderConfig) -> bool:
    return bool(config.labels)


def _is_tied(config: EncoderConfig) -> bool:
    return not config.labels and config.tie


def _is_untied(config: EncoderConfig) -> bool:
    return not config.labels and not config.tie


def _linear(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(f"{theirs}.weight", (f"{ours}.weight",), "transposed"), Row(f"{theirs}.bias", (f"{ours}.bias",)))


def _norm(theirs: str, ours: str) -> tuple[Row, ...]:
    return (Row(f"{theirs}.weight", (f"{ours}.scale",)), Row(f"{theirs}.bias", (f"{ours}.bias",)))


THEIRS, OURS = "bert.encoder.layer.{layer}", "encoder.layers.{layer}"

TABLE = (
    Row("bert.embeddings.word_embeddings.weight", ("encoder.embedding.table",), vocab="vocab"),
    Row("bert.embeddings.position_embeddings.weight", ("encoder.position.table",)),
    Row("bert.embeddings.token_type_embeddings.weight", ("encoder.token_type.table",)),
    *_norm("bert.embeddings.LayerNorm", "encoder.embedding_norm"),
    *_linear(f"{THEIRS}.attention.self.query", f"{OURS}.self_attention.query"),
    *_linear(f"{THEIRS}.attention.self.key", f"{OURS}.self_attention.key"),
    *_linear(f"{THEIRS}.attention.self.value", f"{OURS}.self_attention.value"),
    *_linear(f"{THEIRS}.attention.output.dense", f"{OURS}.self_attention.output"),
    *_norm(f"{THEIRS}.attention.output.LayerNorm", f"{OURS}.residuals.0.norm"),
    *_linear(f"{THEIRS}.intermediate.dense", f"{OURS}.feed_forward.inner"),
    *_linear(f"{THEIRS}.output.dense", f"{OURS}.feed_forward.outer"),
    *_norm(f"{THEIRS}.output.LayerNorm", f"{OURS}.residuals.1.norm"),
    # The masked language model. An untied projection has a bias of its own, and the other one is not used.
    *_linear("cls.predictions.transform.dense", "transform.dense"),
    *_norm("cls.predictions.transform.LayerNorm", "transform.norm"),
    Row("cls.predictions.bias", ("output_bias",), vocab="vocab", when=_is_tied),
    Row("cls.predictions.decoder.bias", ("output_bias",), vocab="vocab", when=_is_untied),
    Row("cls.predictions.decoder.weight", ("output.weight",), "transposed", vocab="vocab", when=_is_untied),
    # The classifier.
    *_linear("bert.pooler.dense", "pooling.dense"),
    Row("classifier.weight", ("output.weight",), "transposed", when=_is_classifier),
    Row("classifier.bias", ("output.bias",), when=_is_classifier),
)

BERT = Family(
    model_type="bert",
    architecture=architecture,
    config_from=config_from,
    differences=differences,
    config_to=config_to,
    table=TABLE,
    prefix="bert.",
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    layers={"bert.encoder.layer.{layer}": "{layer}/output"},
    ignored=("bert.embeddings.position_ids", "bert.embeddings.token_type_ids", "cls.predictions.bias"),
    left_out={
        "cls.seq_relationship.*": "the head that says whether one sentence follows another",
        "bert.pooler.*": "the pooler, which only a classifier uses",
    },
    renamed={".gamma": ".weight", ".beta": ".bias"},
    spelled=spelled,
    warning=warning,
    generation_from=lambda values, where: {},
    generation_to=lambda values: {},
    generation_left_behind=lambda values: [f"{name} {shown(values[name])}" for name in LENGTHS if name in values],
)
