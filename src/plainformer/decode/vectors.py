"""Sentence vectors: the mean of an encoder's hidden states over a text."""

from collections.abc import Sequence

import equinox as eqx
import numpy as np
from numpy.typing import NDArray

from plainformer.decode.batch import group_by_length, pad_rows, shaped
from plainformer.decode.texts import encode_texts
from plainformer.errors import WorkError
from plainformer.models.config import EncoderConfig
from plainformer.models.encoder import Classifier, MaskedLanguageModel, TextEncoder
from plainformer.nn.pooling import mean_pool
from plainformer.programs.program import Program, program
from plainformer.shapes import Array, Float, Ids, Valid
from plainformer.text import Tokenizer

BATCH_TOKENS = 4096  # positions computed at once, padding included: what bounds memory


def embed_texts(
    model: MaskedLanguageModel | Classifier,
    tokenizer: Tokenizer,
    texts: Sequence[str],
    *,
    where: Sequence[str] | None,
    allow_unknown: bool,
) -> NDArray[np.float32]:
    """The vector of each text, (texts, d_model). Takes and raises what `Reader.embed` and `Labeller.embed` do."""
    config, encoder = model.config, model.encoder
    rows = encode_texts(
        tokenizer, texts, where=where, context=config.room, allow_unknown=allow_unknown, enclosed=config.enclosed
    )
    return by_length(_vectors, encoder, rows, config, config.d_model)


def by_length(
    compute: Program, model: eqx.Module, rows: Sequence[Sequence[int]], config: EncoderConfig, width: int
) -> NDArray[np.float32]:
    """`compute(model, ids, valid)` of all rows (texts, width), those of like length together.

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


@program
def _vectors(encoder: TextEncoder, ids: Ids, valid: Valid) -> Float[Array, "batch d_model"]:
    return mean_pool(encoder.encode(ids, valid), valid)
