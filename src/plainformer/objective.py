"""LOGITS -> LOSS: cross-entropy with label smoothing (section 5.4; Szegedy et al. 2016, section 7)."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.nn.precision import at_least_float32, multiply, upcast
from plainformer.shapes import Array, Bool, Float, Hidden, Ids, Int, PRNGKeyArray, Scalar, Valid

CHUNK = 512  # tokens whose logits exist at once, at most, in `fused_cross_entropy`


class LossSums(NamedTuple):
    """Sums over real target tokens, in nats. Divide by `tokens` (of the whole global batch) for the means.

    loss: the smoothed cross-entropy that training minimises.
    nll: the plain negative log-likelihood of the target, the figure to compare.
    correct: tokens to which no other token is preferred.
    """

    loss: Scalar
    nll: Scalar
    correct: Scalar
    tokens: Scalar


def cross_entropy(
    logits: Float[Array, "tokens vocab"],
    targets: Int[Array, " tokens"],
    valid: Bool[Array, " tokens"],
    *,
    smoothing: float = 0.0,
    vocab: int | None = None,
) -> LossSums:
    """The definition: -Σ_v q(v) log p(v), with q = (1 - ε) on the target plus ε/V on each of the V real tokens.

    Args:
        smoothing: ε; at 0 the loss is the negative log-likelihood.
        vocab: V, the number of real tokens; columns from there on are padding and hold -inf.
    """
    vocab = vocab or logits.shape[-1]
    log_p = jax.nn.log_softmax(upcast(logits), axis=-1)[:, :vocab]
    nll = -jnp.take_along_axis(log_p, targets[:, None], axis=-1)[:, 0]
    loss = (1.0 - smoothing) * nll - smoothing * log_p.mean(axis=-1)
    correct = -nll >= log_p.max(axis=-1)
    terms = (loss, nll, correct.astype(loss.dtype), jnp.ones_like(loss))
    return LossSums(*(jnp.where(valid, term, 0.0).sum() for term in terms))


def fused_cross_entropy(
    hidden: Float[Array, "tokens d_model"],
    weight: Float[Array, "d_model rows"],
    targets: Int[Array, " tokens"],
    valid: Bool[Array, " tokens"],
    *,
    smoothing: float = 0.0,
    vocab: int | None = None,
    bias: Float[Array, " rows"] | None = None,
) -> LossSums:
    """The fast twin: `cross_entropy(hidden @ weight + bias, …)` without ever holding all logits.

    Logits of a chunk of tokens are made, used and forgotten while they are in cache; the gradient is computed in the
    same visit, when the softmax is at hand, so that the backward pass only scales it. Gradients flow from `loss` alone.
    """
    vocab = vocab or weight.shape[1]
    sums: tuple[Scalar, ...] = _fused(smoothing, vocab, hidden, weight, bias, targets, valid)
    return LossSums(*sums)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1))
def _fused(smoothing, vocab, hidden, weight, bias, targets, valid) -> Any:
    sums, _ = jax.lax.scan(
        lambda sums, chunk: (_add(sums, _chunk_terms(smoothing, vocab, weight, bias, *chunk)[0]), None),
        _zeros(),
        _chunks(hidden, targets, valid),
    )
    return sums


def _fused_forward(smoothing, vocab, hidden, weight, bias, targets, valid):
    def visit(carry, chunk):
        sums, d_table, d_bias = carry
        terms, (logits, log_total) = _chunk_terms(smoothing, vocab, weight, bias, *chunk)
        h, target, real = chunk
        at = jnp.arange(logits.shape[1])[None, :]
        probability = jnp.exp(logits - log_total[:, None])
        wanted = jnp.where(at == target[:, None], 1.0 - smoothing, 0.0) + jnp.where(at < vocab, smoothing / vocab, 0.0)
        d_logits = jnp.where(real[:, None], probability - wanted, 0.0).astype(h.dtype)
        d_bias = None if d_bias is None else d_bias + d_logits.astype(d_bias.dtype).sum(axis=0)
        return (_add(sums, terms), d_table + multiply(d_logits.T, h), d_bias), d_logits @ table

    # One row per token, as in an embedding: the products then read and write it row by row.
    table = weight.T
    no_bias = None if bias is None else jnp.zeros(bias.shape, at_least_float32(bias))
    carry = _zeros(), jnp.zeros(table.shape, at_least_float32(table)), no_bias
    (sums, d_table, d_bias), d_hidden = jax.lax.scan(visit, carry, _chunks(hidden, targets, valid))
    d_bias = None if bias is None or d_bias is None else d_bias.astype(bias.dtype)
    return sums, (d_hidden.reshape(-1, hidden.shape[1])[: len(hidden)], d_table.T.astype(weight.dtype), d_bias)


def _fused_backward(smoothing, vocab, saved, d_sums):
    d_loss = d_sums[0]
    return *(None if d is None else d * d_loss.astype(d.dtype) for d in saved), None, None


_fused.defvjp(_fused_forward, _fused_backward)


def _chunk_terms(smoothing, vocab, weight, bias, hidden, targets, valid):
    """The four sums of one chunk, with its logits and their log-sum-exp."""
    logits = multiply(hidden, weight)
    if bias is not None:
        logits = logits + upcast(bias)[None, :]
    if vocab < weight.shape[1]:
        logits = jnp.where((jnp.arange(weight.shape[1]) < vocab)[None, :], logits, -jnp.inf)
    peak = logits.max(axis=-1)
    log_total = peak + jnp.log(jnp.exp(logits - peak[:, None]).sum(axis=-1))
    target_logit = jnp.take_along_axis(logits, targets[:, None], axis=-1)[:, 0]
    # The mean logit needs no pass over the logits: it is the product with the mean column.
    real = (jnp.arange(weight.shape[1]) < vocab).astype(weight.dtype)
    mean_column = multiply(weight, (real / vocab)[:, None]).astype(hidden.dtype)
    mean_logit = multiply(hidden, mean_column)[:, 0]
    if bias is not None:
        mean_logit = mean_logit + upcast(bias[:vocab]).mean()
    nll = log_total - target_logit
    loss = (1.0 - smoothing) * nll + smoothing * (log_total - mean_logit)
    terms = (loss, nll, (target_logit >= peak).astype(loss.dtype), jnp.ones_like(loss))
    return tuple(jnp.where(valid, term, 0.0).sum() for term in terms), (logits, log_total)


def _chunks(hidden, targets, valid):
    """The token axis cut into chunks of one size, the last one filled up with tokens that do not count."""
    count = -(-len(hidden) // CHUNK)
    size = -(-len(hidden) // count)
    fill = count * size - len(hidden)
    padded = (
        jnp.pad(hidden, ((0, fill), (0, 0))),
        jnp.pad(targets, (0, fill)),
        jnp.pad(valid, (0, fill)),
    )
    return tuple(x.reshape(count, size, *x.shape[1:]) for x in padded)


def _zeros():
    return (jnp.zeros(()),) * 4


def _add(sums, terms):
    return tuple(a + b for a, b in zip(sums, terms, strict=True))


def _over_tokens(
    hidden: Hidden,
    model: Any,
    wanted: Ids,
    valid: Valid,
    smoothing: float,
    vocab: int,
    bias: Float[Array, " rows"] | None = None,
) -> LossSums:
    """The loss of all positions of a batch, as one axis of tokens."""
    tokens, targets, real = hidden.reshape(-1, hidden.shape[-1]), wanted.reshape(-1), valid.reshape(-1)
    return fused_cross_entropy(tokens, model.output_weight, targets, real, smoothing=smoothing, vocab=vocab, bias=bias)


class TranslationObjective(NamedTuple):
    """The loss of an encoder-decoder on a batch of pairs: every target token predicted from those before it."""

    smoothing: float

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Transformer`, `batch` a `data.loader.Batch`; without a key, dropout is off."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        memory = model.encode(batch.source, batch.source_valid, key=encoder_key)
        hidden = model.decode(batch.target_in, memory, batch.source_valid, key=decoder_key)
        answer = batch.target_out, batch.target_valid, self.smoothing, model.config.target_vocab
        return _over_tokens(hidden, model, *answer, model.output_bias)


class LanguageObjective(NamedTuple):
    """The loss of a language model on a batch of blocks: every token predicted from those before it."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.LanguageModel`, `batch` a `data.block.Blocks`; without a key, dropout is off."""
        hidden = model.decode(batch.ids, key=key)
        return _over_tokens(hidden, model, batch.following, batch.valid, self.smoothing, model.config.vocab)


class MaskedObjective(NamedTuple):
    """The loss of a masked language model on a batch of texts: the hidden tokens said from all that is seen."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.MaskedLanguageModel`, `batch` a `data.masking.MaskedBatch`; dropout with a key."""
        hidden = model.encoder.encode(batch.ids, batch.valid, key=key)
        # Logits are computed at the places alone, a seventh of them all.
        chosen = jnp.take_along_axis(hidden, batch.places[:, :, None], axis=1)
        answer = batch.targets, batch.counted, self.smoothing, model.config.vocab
        return _over_tokens(model.transformed(chosen), model, *answer, model.output_bias)


class ClassificationObjective(NamedTuple):
    """The loss of a classifier on a batch of labelled texts. Where others count tokens, it counts texts."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Classifier`, `batch` a `data.labelled_loader.LabelledBatch`; dropout with a key."""
        logits = model(batch.ids, batch.valid, key=key)
        return cross_entropy(logits, batch.labels, batch.counted, smoothing=self.smoothing)
