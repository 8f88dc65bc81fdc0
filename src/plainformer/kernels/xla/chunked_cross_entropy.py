"""Cross-entropy from hidden states, chunk by chunk of tokens, so that all logits never exist at once."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from plainformer.devices import devices_of, on_one_cpu, platform
from plainformer.equations.loss import LossSums
from plainformer.equations.precision import at_least_float32, multiply, upcast
from plainformer.kernels.cpu.ffi import VECTOR
from plainformer.kernels.linear import add_products
from plainformer.kernels.softmax_stats import softmax_stats
from plainformer.shapes import Array, Bool, Float, Int, Scalar

CHUNK = 512  # tokens whose logits exist at once, at most
FINE = 256  # the same where chunks of padding alone are left out: the smaller, the less of it is left
MOST_LOGITS = 2**28  # on an accelerator: logits of a chunk, on each device, where that is more than CHUNK tokens


def chunked_cross_entropy(
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
    """`cross_entropy(hidden @ weight + bias, …)` without ever holding all logits.

    Logits of a chunk of tokens are made, used and forgotten while they are in cache; the gradient is computed in the
    same visit, when the softmax is at hand, so that the backward pass only scales it. Gradients flow from `loss` alone,
    and once: who wants second derivatives takes the definition.

    Args:
        has_padding: whether many tokens are not `valid`, so that it pays to move them behind the others, and to leave
            out the chunks that have no other.
    """
    vocab = vocab or weight.shape[1]
    # An accelerator would ask its host after every chunk whether there is another; many devices would exchange tokens.
    skip_padding = has_padding and on_one_cpu(hidden)
    if vocab < weight.shape[1] and on_one_cpu(hidden):
        # Rows that are no words are cut off once, but for those of the last vector.
        rows = -(-vocab // VECTOR) * VECTOR
        weight, bias = weight[:, :rows], None if bias is None else bias[:rows]
    sums: tuple[Scalar, ...] = _fused(smoothing, vocab, skip_padding, hidden, weight, bias, targets, valid)
    return LossSums(*sums)


@partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _fused(smoothing, vocab, skip_padding, hidden, weight, bias, targets, valid) -> Any:
    vocabulary = _vocabulary(smoothing, vocab, weight, bias)
    chunks = _chunks(skip_padding, len(vocabulary.table), hidden, targets, valid)

    def visit(index, sums):
        return _add(sums, _chunk_terms(vocabulary, *chunks.at(index))[0])

    return jax.lax.fori_loop(0, chunks.visited, visit, _zeros())


def _fused_forward(smoothing, vocab, skip_padding, hidden, weight, bias, targets, valid):
    hidden = jnp.where(valid[:, None], hidden, 0.0)  # whatever stands there, a factor of zero is to take it away
    vocabulary = _vocabulary(smoothing, vocab, weight, bias)
    chunks = _chunks(skip_padding, len(vocabulary.table), hidden, targets, valid)
    # In products that round what they multiply, those of 16 bits and an accelerator's of 32, what is and what is wanted
    # would not cancel where both are nearly 1.
    separate_target_term = hidden.dtype == at_least_float32(hidden) and platform() == "cpu"

    def visit(index, carry):
        sums, d_hidden, d_table, d_bias = carry
        h, target, real = chunks.at(index)
        terms, found, logits = _chunk_terms(vocabulary, h, target, real, keeps=separate_target_term)
        exponentials, total, peak, _ = found
        if separate_target_term:
            share = jnp.where(real, 1.0 / total, 0.0)[:, None]
            d_h = multiply(exponentials, vocabulary.table) * share
            d_table = add_products(d_table, exponentials, h * share)
            d_bias = None if d_bias is None else d_bias + (exponentials * share).sum(axis=0)
        else:
            # From the logits once more: the exponentials would be written for it, and read, and are as large.
            p = jnp.exp(logits - (peak + jnp.log(total))[:, None])
            d_logits = jnp.where(real[:, None], p - vocabulary.target_distribution(target), 0.0).astype(h.dtype)
            d_h = d_logits @ vocabulary.table
            d_table = add_products(d_table, d_logits, h)
            d_bias = None if d_bias is None else d_bias + d_logits.astype(d_bias.dtype).sum(axis=0)
        return _add(sums, terms), jax.lax.dynamic_update_index_in_dim(d_hidden, d_h, index, 0), d_table, d_bias

    if separate_target_term:
        target_d_hidden, *start = vocabulary.target_term(hidden, targets, valid)
    else:
        target_d_hidden, start = 0.0, vocabulary.zeros()
    carry = _zeros(), jnp.zeros_like(chunks.hidden), *start
    sums, d_hidden, d_table, d_bias = jax.lax.fori_loop(0, chunks.visited, visit, carry)
    d_bias = None if bias is None or d_bias is None else d_bias.astype(bias.dtype)
    return sums, (chunks.in_order(d_hidden) + target_d_hidden, d_table.T.astype(weight.dtype), d_bias)


def _fused_backward(smoothing, vocab, skip_padding, saved, d_sums):
    d_loss = d_sums[0]
    return *(None if d is None else d * d_loss.astype(d.dtype) for d in saved), None, None


_fused.defvjp(_fused_forward, _fused_backward)


class _Vocabulary(NamedTuple):
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

    def target_distribution(self, targets):
        """q of each target, (tokens, rows)."""
        at = jnp.arange(len(self.table))
        return jnp.where(at[None, :] == targets[:, None], 1.0 - self.smoothing, 0.0) + self.share[None, :]

    def zeros(self):
        """A gradient of the table and of the bias."""
        bias = None if self.bias is None else jnp.zeros(len(self.table), at_least_float32(self.bias))
        return jnp.zeros(self.table.shape, at_least_float32(self.table)), bias

    def target_term(self, hidden, targets, valid):
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


def _vocabulary(smoothing, vocab, weight, bias) -> _Vocabulary:
    table = weight.T
    is_real = (jnp.arange(len(table)) < vocab).astype(at_least_float32(table))
    mean = multiply((is_real / vocab).astype(table.dtype)[None, :], table)[0]
    mean_bias = 0.0 if bias is None else upcast(bias[:vocab]).mean()
    return _Vocabulary(table, bias, smoothing / vocab * is_real, (mean, mean_bias), smoothing, vocab)


def _chunk_terms(vocabulary: _Vocabulary, hidden, targets, valid, *, keeps: bool = False):
    """The four sums of one chunk, its `SoftmaxStats`, and its logits.

    keeps: whether the exponentials are used. A CPU kernel then leaves them where the logits were.
    """
    logits = jnp.einsum("td,vd->tv", hidden, vocabulary.table, preferred_element_type=at_least_float32(hidden))
    if vocabulary.bias is not None:
        logits = logits + upcast(vocabulary.bias)[None, :]
    if vocabulary.vocab < len(vocabulary.table):
        logits = logits.at[:, vocabulary.vocab :].set(-jnp.inf)
    found = softmax_stats(logits, targets, keeps=keeps)
    _, total, peak, target_logit = found
    log_total = peak + jnp.log(total)
    mean_column, mean_bias = vocabulary.mean
    mean_logit = multiply(hidden, mean_column.astype(hidden.dtype)[:, None])[:, 0] + mean_bias
    nll = log_total - target_logit
    loss = (1.0 - vocabulary.smoothing) * nll + vocabulary.smoothing * (log_total - mean_logit)
    terms = (loss, nll, (target_logit >= peak).astype(loss.dtype), jnp.ones_like(loss))
    return tuple(jnp.where(valid, term, 0.0).sum() for term in terms), found, logits


class _Chunks(NamedTuple):
    """The token axis cut into chunks of one size, the last one filled up with tokens that do not count.

    visited: how many of them have to be, from the first on.
    place: where each token is, all chunks in a row; None where that is where it was.
    strided: whether a chunk has every so many-th token, and so tokens of every device, and not neighbours.
    """

    hidden: Float[Array, "chunks size d_model"]
    targets: Int[Array, "chunks size"]
    valid: Bool[Array, "chunks size"]
    visited: Int[Array, ""] | int
    place: Int[Array, " tokens"] | None
    tokens: int
    strided: bool

    def at(self, index):
        """Hidden states, targets, and which are real, of one chunk."""
        return tuple(jax.lax.dynamic_index_in_dim(x, index, keepdims=False) for x in self[:3])

    def in_order(self, of_chunks: Float[Array, "chunks size d_model"]) -> Float[Array, "tokens d_model"]:
        """What was computed for every token of the chunks, as the tokens were."""
        of_chunks = of_chunks.swapaxes(0, 1) if self.strided else of_chunks
        flat = of_chunks.reshape(-1, of_chunks.shape[-1])
        return flat[: self.tokens] if self.place is None else flat[self.place]


def _chunks(skip_padding, rows, hidden, targets, valid) -> _Chunks:
    """rows: of the table, a logit for each."""
    tokens, place, visited, devices = len(hidden), None, None, devices_of(hidden)
    most = FINE if skip_padding else CHUNK * devices
    if platform() != "cpu":
        most = max(CHUNK, devices * (MOST_LOGITS // rows))
    count = -(-tokens // most)
    # Neighbours are on one device: a chunk of them would be brought to all the others.
    strided = devices > 1
    if strided:
        count = next((more for more in range(count, 2 * count) if tokens % (more * devices) == 0), count)
    size = -(-tokens // count)
    if skip_padding:  # the real tokens first, each kind in its order
        real = jnp.cumsum(valid, dtype=jnp.int32)
        place = jnp.where(valid, real, real[-1] + jnp.cumsum(~valid, dtype=jnp.int32)) - 1
        order = jnp.zeros_like(place).at[place].set(jnp.arange(tokens, dtype=jnp.int32), unique_indices=True)
        hidden, targets, valid = hidden[order], targets[order], valid[order]
        visited = (real[-1] + size - 1) // size
    fill = count * size - tokens
    filled = jnp.pad(hidden, ((0, fill), (0, 0))), jnp.pad(targets, (0, fill)), jnp.pad(valid, (0, fill))

    def cut(x: Array) -> Array:
        if strided:
            return x.reshape(size, count, *x.shape[1:]).swapaxes(0, 1)
        return x.reshape(count, size, *x.shape[1:])

    hidden, targets, valid = map(cut, filled)
    return _Chunks(hidden, targets, valid, count if visited is None else visited, place, tokens, strided)


def _zeros():
    return (jnp.zeros(()),) * 4


def _add(sums, terms):
    return tuple(a + b for a, b in zip(sums, terms, strict=True))
