"""LOGITS -> LOSS: cross-entropy with label smoothing (section 5.4; Szegedy et al. 2016, section 7)."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.machine import default_device, devices_of, on_one_processor
from plainformer.nn import foreign, fused_exponentials
from plainformer.nn.foreign_call import VECTOR
from plainformer.nn.fused_linear import add_products
from plainformer.nn.precision import at_least_float32, multiply, upcast
from plainformer.shapes import Array, Bool, Float, Hidden, Ids, Int, Packed, PRNGKeyArray, Scalar, Valid

CHUNK = 512  # tokens whose logits exist at once, at most, in `fused_cross_entropy`
FINE = 256  # the same where chunks of padding alone are passed over: the smaller, the less of it is left
MOST_LOGITS = 2**28  # on an accelerator: logits of a chunk, on each device, where that is more than CHUNK tokens


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
    has_padding: bool = False,
) -> LossSums:
    """The fast twin: `cross_entropy(hidden @ weight + bias, …)` without ever holding all logits.

    Logits of a chunk of tokens are made, used and forgotten while they are in cache; the gradient is computed in the
    same visit, when the softmax is at hand, so that the backward pass only scales it. Gradients flow from `loss` alone,
    and once: who wants second derivatives takes the definition.

    Args:
        has_padding: whether many tokens are not `valid`, so that it pays to move them behind the others, and to leave
            out the chunks that have no other.
    """
    vocab = vocab or weight.shape[1]
    # An accelerator would ask its host after every chunk whether there is another; many devices would exchange tokens.
    passes_over = has_padding and on_one_processor(hidden)
    if vocab < weight.shape[1] and on_one_processor(hidden):
        # Rows that are no words are cut off once, but for those of the last vector.
        rows = -(-vocab // VECTOR) * VECTOR
        weight, bias = weight[:, :rows], None if bias is None else bias[:rows]
    sums: tuple[Scalar, ...] = _fused(smoothing, vocab, passes_over, hidden, weight, bias, targets, valid)
    return LossSums(*sums)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _fused(smoothing, vocab, passes_over, hidden, weight, bias, targets, valid) -> Any:
    words = _words(smoothing, vocab, weight, bias)
    chunks = _chunks(passes_over, len(words.table), hidden, targets, valid)

    def visit(index, sums):
        return _add(sums, _chunk_terms(words, *chunks.at(index))[0])

    return jax.lax.fori_loop(0, chunks.visited, visit, _zeros())


def _fused_forward(smoothing, vocab, passes_over, hidden, weight, bias, targets, valid):
    hidden = jnp.where(valid[:, None], hidden, 0.0)  # whatever stands there, a factor of zero is to take it away
    words = _words(smoothing, vocab, weight, bias)
    chunks = _chunks(passes_over, len(words.table), hidden, targets, valid)
    # In products that round what they multiply, those of 16 bits and an accelerator's of 32, what is and what is wanted
    # would not cancel where both are nearly 1.
    subtracts_apart = hidden.dtype == at_least_float32(hidden) and _is_processor()

    def visit(index, carry):
        sums, d_hidden, d_table, d_bias = carry
        h, target, real = chunks.at(index)
        terms, found, logits = _chunk_terms(words, h, target, real, keeps=subtracts_apart)
        exponentials, total, peak, _ = found
        if subtracts_apart:
            share = jnp.where(real, 1.0 / total, 0.0)[:, None]
            d_h = multiply(exponentials, words.table) * share
            d_table = add_products(d_table, exponentials, h * share)
            d_bias = None if d_bias is None else d_bias + (exponentials * share).sum(axis=0)
        else:
            # From the logits once more: the exponentials would be written for it, and read, and are as large.
            p = jnp.exp(logits - (peak + jnp.log(total))[:, None])
            d_logits = jnp.where(real[:, None], p - words.wanted(target), 0.0).astype(h.dtype)
            d_h = d_logits @ words.table
            d_table = add_products(d_table, d_logits, h)
            d_bias = None if d_bias is None else d_bias + d_logits.astype(d_bias.dtype).sum(axis=0)
        return _add(sums, terms), jax.lax.dynamic_update_index_in_dim(d_hidden, d_h, index, 0), d_table, d_bias

    if subtracts_apart:
        by_wanted, *start = words.by_the_wanted(hidden, targets, valid)
    else:
        by_wanted, start = 0.0, words.zeros()
    carry = _zeros(), jnp.zeros_like(chunks.hidden), *start
    sums, d_hidden, d_table, d_bias = jax.lax.fori_loop(0, chunks.visited, visit, carry)
    d_bias = None if bias is None or d_bias is None else d_bias.astype(bias.dtype)
    return sums, (chunks.in_order(d_hidden) + by_wanted, d_table.T.astype(weight.dtype), d_bias)


def _fused_backward(smoothing, vocab, passes_over, saved, d_sums):
    d_loss = d_sums[0]
    return *(None if d is None else d * d_loss.astype(d.dtype) for d in saved), None, None


_fused.defvjp(_fused_forward, _fused_backward)


class _Words(NamedTuple):
    """What can be said, and what is wanted: a row for each word, as in an embedding, so that products read them so.

    share: ε/V for real words, 0 for those that pad the table. mean: what a logit is on average, as a product with a
    hidden state and a number; it saves a pass over all logits.
    """

    table: Float[Array, "rows d_model"]
    bias: Float[Array, " rows"] | None
    share: Float[Array, " rows"]
    mean: tuple[Float[Array, " d_model"], Any]
    smoothing: float
    vocab: int

    def wanted(self, targets):
        """q of each target, (tokens, rows)."""
        at = jnp.arange(len(self.table))
        return jnp.where(at[None, :] == targets[:, None], 1.0 - self.smoothing, 0.0) + self.share[None, :]

    def zeros(self):
        """A gradient of the table and of the bias."""
        bias = None if self.bias is None else jnp.zeros(len(self.table), at_least_float32(self.bias))
        return jnp.zeros(self.table.shape, at_least_float32(self.table)), bias

    def by_the_wanted(self, hidden, targets, valid):
        """-q W, -qᵀ H and -Σ q, which are gradients of H, W and the bias: rows of both, and no pass over all logits.

        W is the table; H, the hidden states, are zero where a token is not valid.
        """
        confidence, real = 1.0 - self.smoothing, valid.astype(hidden.dtype)
        d_table, d_bias = self.zeros()
        d_hidden = -confidence * self.table[targets]
        if self.smoothing:  # first, so that all rows are written but once
            d_hidden -= self.smoothing * self.mean[0][None, :]
            d_table = -self.share[:, None] * hidden.sum(axis=0)[None, :]
            d_bias = None if d_bias is None else -self.share * real.sum()
        d_table = d_table.at[targets].add(-confidence * hidden)
        if d_bias is not None:
            d_bias = d_bias.at[targets].add(-confidence * real)
        return d_hidden * real[:, None], d_table, d_bias


def _words(smoothing, vocab, weight, bias) -> _Words:
    table = weight.T
    is_real = (jnp.arange(len(table)) < vocab).astype(at_least_float32(table))
    mean = multiply((is_real / vocab).astype(table.dtype)[None, :], table)[0]
    mean_bias = 0.0 if bias is None else upcast(bias[:vocab]).mean()
    return _Words(table, bias, smoothing / vocab * is_real, (mean, mean_bias), smoothing, vocab)


def _chunk_terms(words: _Words, hidden, targets, valid, *, keeps: bool = False):
    """The four sums of one chunk, its `Exponentials`, and its logits.

    keeps: whether the exponentials are wanted. Machine code then leaves them where the logits were.
    """
    logits = jnp.einsum("td,vd->tv", hidden, words.table, preferred_element_type=at_least_float32(hidden))
    if words.bias is not None:
        logits = logits + upcast(words.bias)[None, :]
    if words.vocab < len(words.table):
        logits = logits.at[:, words.vocab :].set(-jnp.inf)
    if keeps and fused_exponentials.suits(hidden, logits) and foreign.serve_layers():
        found = fused_exponentials.fused_exponentials(logits, targets)
    elif _is_processor():
        found = fused_exponentials.exponentials_of(logits, targets, keeps=keeps)
    else:
        found = fused_exponentials.exponentials_in_one_visit(logits, targets)
    _, total, peak, target_logit = found
    log_total = peak + jnp.log(total)
    mean_column, mean_bias = words.mean
    mean_logit = multiply(hidden, mean_column.astype(hidden.dtype)[:, None])[:, 0] + mean_bias
    nll = log_total - target_logit
    loss = (1.0 - words.smoothing) * nll + words.smoothing * (log_total - mean_logit)
    terms = (loss, nll, (target_logit >= peak).astype(loss.dtype), jnp.ones_like(loss))
    return tuple(jnp.where(valid, term, 0.0).sum() for term in terms), found, logits


class _Chunks(NamedTuple):
    """The token axis cut into chunks of one size, the last one filled up with tokens that do not count.

    visited: how many of them have to be, from the first on.
    place: where each token is, all chunks in a row; None where that is where it was.
    """

    hidden: Float[Array, "chunks size d_model"]
    targets: Int[Array, "chunks size"]
    valid: Bool[Array, "chunks size"]
    visited: Int[Array, ""] | int
    place: Int[Array, " tokens"] | None
    tokens: int

    def at(self, index):
        """Hidden states, targets, and which are real, of one chunk."""
        return tuple(jax.lax.dynamic_index_in_dim(x, index, keepdims=False) for x in self[:3])

    def in_order(self, of_chunks: Float[Array, "chunks size d_model"]) -> Float[Array, "tokens d_model"]:
        """What was computed for every token of the chunks, as the tokens were."""
        flat = of_chunks.reshape(-1, of_chunks.shape[-1])
        return flat[: self.tokens] if self.place is None else flat[self.place]


def _is_processor() -> bool:
    return default_device().platform == "cpu"


def _chunks(passes_over, rows, hidden, targets, valid) -> _Chunks:
    """rows: of the table, a logit for each."""
    tokens, place, visited = len(hidden), None, None
    most = FINE if passes_over else CHUNK
    if not _is_processor():
        most = max(CHUNK, devices_of(hidden) * (MOST_LOGITS // rows))
    count = -(-tokens // most)
    size = -(-tokens // count)
    if passes_over:  # the real tokens first, each kind in its order
        real = jnp.cumsum(valid, dtype=jnp.int32)
        place = jnp.where(valid, real, real[-1] + jnp.cumsum(~valid, dtype=jnp.int32)) - 1
        order = jnp.zeros_like(place).at[place].set(jnp.arange(tokens, dtype=jnp.int32), unique_indices=True)
        hidden, targets, valid = hidden[order], targets[order], valid[order]
        visited = (real[-1] + size - 1) // size
    fill = count * size - tokens
    filled = jnp.pad(hidden, ((0, fill), (0, 0))), jnp.pad(targets, (0, fill)), jnp.pad(valid, (0, fill))
    hidden, targets, valid = (x.reshape(count, size, *x.shape[1:]) for x in filled)
    return _Chunks(hidden, targets, valid, count if visited is None else visited, place, tokens)


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
    *,
    has_padding: bool = False,
) -> LossSums:
    """The loss of all positions of a batch, as one axis of tokens."""
    tokens, targets, real = hidden.reshape(-1, hidden.shape[-1]), wanted.reshape(-1), valid.reshape(-1)
    options: Any = {"smoothing": smoothing, "vocab": vocab, "bias": bias, "has_padding": has_padding}
    return fused_cross_entropy(tokens, model.output_weight, targets, real, **options)


class TranslationObjective(NamedTuple):
    """The loss of an encoder-decoder on a batch of pairs: every target token predicted from those before it."""

    smoothing: float

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Transformer`, `batch` a `data.loader.Batch`; without a key, dropout is off."""
        encoder_key, decoder_key = (None, None) if key is None else jax.random.split(key)
        packed = None if batch.source_text is None else Packed(batch.source_text, batch.target_text)
        memory = model.encode(batch.source, batch.source_valid, packed=packed, key=encoder_key)
        hidden = model.decode(batch.target_in, memory, batch.source_valid, packed=packed, key=decoder_key)
        answer = batch.target_out, batch.target_valid, self.smoothing, model.config.target_vocab
        return _over_tokens(hidden, model, *answer, model.output_bias, has_padding=packed is None)


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
        return _over_tokens(model.transformed(chosen), model, *answer, model.output_bias, has_padding=True)


class ClassificationObjective(NamedTuple):
    """The loss of a classifier on a batch of labelled texts. Where others count tokens, it counts texts."""

    smoothing: float = 0.0

    def __call__(self, model: Any, batch: Any, key: PRNGKeyArray | None) -> LossSums:
        """`model` is a `models.Classifier`, `batch` a `data.labelled_loader.LabelledBatch`; dropout with a key."""
        logits = model(batch.ids, batch.valid, key=key)
        return cross_entropy(logits, batch.labels, batch.counted, smoothing=self.smoothing)
