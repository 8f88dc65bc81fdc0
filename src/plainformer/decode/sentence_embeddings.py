"""Sentence vectors: the mean of an encoder's hidden states over a text, or what an encoder's makers meant instead."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.batch import group_by_length, pad_rows, shaped
from plainformer.decode.texts import HowRead, check_not_blank, encode_texts
from plainformer.errors import InputError, WorkError, shown
from plainformer.files.json_object import is_of_type
from plainformer.given import strings
from plainformer.models.config import EncoderConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel, TextEncoder
from plainformer.nn.pooling import POOLS, pooled
from plainformer.programs.compiled import Program, compiled
from plainformer.shapes import Array, Float, Ids, Valid
from plainformer.tokenizer import Tokenizer

BATCH_TOKENS = 4096  # positions computed at once, padding included: what bounds memory


@dataclass(frozen=True)
class VectorSettings:
    """How the vector of a text is made: `embed` in an encoder's `generation_config.json`.

    Attributes:
        pooling: of which the vector consists, one behind the other, by the names of `nn.pooling.POOLS`.
        unit: it gets the length 1.
        max_tokens: the most tokens of a text that are read, the longer ones truncated; 0 is all that the model reads.
        lowercase: texts are read in lower case.
        prompt: what is put before every text.

    Raises:
        InputError: a value will not do.
    """

    pooling: tuple[str, ...] = ("mean",)
    unit: bool = False
    max_tokens: int = 0
    lowercase: bool = False
    prompt: str = ""

    @classmethod
    def of(cls, generation: Mapping[str, Any], path: Path | None = None) -> "VectorSettings":
        """Those of a model folder, whose settings of use these are, in the file `path`."""
        where = None if path is None else str(path)
        given = generation.get("embed", {})
        if not isinstance(given, dict):
            raise InputError("embed must be an object of settings", where=where, fix="correct it, or leave it out")
        if strange := sorted(set(given) - set(cls.__dataclass_fields__)):
            what = f"embed has no setting {shown(strange[0])}"
            raise InputError(what, where=where, fix=f"there are {', '.join(cls.__dataclass_fields__)}")
        for name, value in given.items():
            usual = getattr(cls(), name)
            if name == "pooling":
                right = isinstance(value, list) and bool(value) and all(one in POOLS for one in map(str, value))
            else:
                right = is_of_type(value, type(usual)) and (name != "max_tokens" or value >= 0)
            if not right:
                fix = f"give a list of {', '.join(POOLS)}" if name == "pooling" else "correct it"
                raise InputError(f"embed: {name} is {shown(value)}", where=where, fix=fix)
        return cls(**{**given, **({"pooling": tuple(given["pooling"])} if "pooling" in given else {})})

    def max_text_tokens(self, config: EncoderConfig) -> int:
        """The most tokens of a text that are read."""
        return min(self.max_tokens or config.max_text_tokens, config.max_text_tokens)

    def width(self, config: EncoderConfig) -> int:
        """Numbers of a vector."""
        return len(self.pooling) * config.d_model


MEAN = VectorSettings()


class Vectors(eqx.Module):
    """An encoder with what makes one vector of its hidden states."""

    encoder: TextEncoder
    pooling: tuple[str, ...] = eqx.field(static=True)
    unit: bool = eqx.field(static=True)


def embed_texts(
    model: MaskedLanguageModel | Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    settings: VectorSettings,
    how: HowRead,
) -> NDArray[np.float32]:
    """The vector of each text, (texts, width). Raises what `MaskFiller.embed` and `TextClassifier.embed` do."""
    config = model.config
    rows = encoded(tokenizer, texts, config, settings, how)
    vectors = Vectors(model.encoder, settings.pooling, settings.unit)
    return by_length(_vectors, vectors, rows, config, settings.width(config))


def encoded(
    tokenizer: Tokenizer, texts: Sequence[str], config: EncoderConfig, settings: VectorSettings, how: HowRead
) -> list[list[int]]:
    """The ids of each text as the settings have it read; those that are longer than they allow are truncated."""
    texts = strings(texts)
    check_not_blank(texts, how.get("where"))  # before there is a prompt
    texts = [settings.prompt + text for text in texts] if settings.prompt else texts
    texts = [text.lower() for text in texts] if settings.lowercase else texts
    return encode_texts(
        tokenizer, texts, context=settings.max_text_tokens(config), add_cls_sep=config.add_cls_sep, **how
    )


def by_length(
    compute: Program, model: eqx.Module, rows: Sequence[Sequence[int]], config: EncoderConfig, width: int
) -> NDArray[np.float32]:
    """`compute(model, ids, valid)` of all rows (texts, width), rows of like length together.

    Raises:
        WorkError: as `check_finite`.
    """
    found = np.zeros((len(rows), width), np.float32)
    batches = group_by_length([(len(row),) for row in rows], BATCH_TOKENS, config)
    for shape in {(batch.size, *batch.lengths) for batch in batches}:
        compute.ahead(model, shaped(*shape), shaped(*shape, dtype=np.bool_))
    for batch in batches:
        ids, valid = pad_rows([rows[member] for member in batch.members], batch.size, batch.lengths[0], 0)
        found[batch.members] = np.asarray(compute(model, ids, valid))[: len(batch.members)]
    check_finite(found)
    return found


def check_finite(numbers: NDArray[np.floating]) -> None:
    """Raise WorkError where a model gave numbers that are not finite: nothing can be read from them."""
    if not np.isfinite(numbers).all():
        raise WorkError("the model gives numbers that are not finite", fix="check that its weights are finite")


@compiled
def _vectors(vectors: Vectors, ids: Ids, valid: Valid) -> Float[Array, "batch width"]:
    return pooled(vectors.encoder.encode(ids, valid), valid, vectors.pooling, unit=vectors.unit)
