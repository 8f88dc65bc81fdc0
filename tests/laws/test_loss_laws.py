"""The loss: known by hand, equal to its definition however it is computed, and blind to padding."""

import math
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from plainformer import devices
from plainformer.equations.loss import LossSums, cross_entropy
from plainformer.kernels.linear_cross_entropy import linear_cross_entropy
from plainformer.kernels.xla import chunked_cross_entropy

TOKENS, D_MODEL, VOCAB, ROWS = 11, 6, 13, 16
# Losses are of order 3 and sums of order 30; a term is some ten float32 roundings of 6e-8 each.
CLOSE: Any = {"rtol": 2e-6, "atol": 2e-6}


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three chunks for 11 tokens, the last of them not full, wherever they are."""
    monkeypatch.setattr(chunked_cross_entropy, "CHUNK", 4)
    monkeypatch.setattr(chunked_cross_entropy, "FINE", 4)
    monkeypatch.setattr(chunked_cross_entropy, "MOST_LOGITS", 1)


def some_tokens(rows: int = VOCAB, d_model: int = D_MODEL) -> dict[str, jax.Array]:
    """Hidden states, a projection, targets, and which tokens are real: 7 of 11."""
    random = np.random.default_rng(rows)
    valid = np.ones(TOKENS, bool)
    valid[[2, 3, 7, 10]] = False
    return {
        "hidden": jnp.asarray(random.normal(size=(TOKENS, d_model)), jnp.float32),
        "weight": jnp.asarray(random.normal(size=(d_model, rows)), jnp.float32),
        "targets": jnp.asarray(random.integers(0, VOCAB, TOKENS), jnp.int32),
        "valid": jnp.asarray(valid),
    }


def defined(hidden: jax.Array, weight: jax.Array, targets: jax.Array, valid: jax.Array, smoothing: float) -> LossSums:
    """`cross_entropy` of the logits, those of padding rows at -inf."""
    real = jnp.broadcast_to(jnp.arange(weight.shape[1]) < VOCAB, (len(hidden), weight.shape[1]))
    logits = jnp.where(real, hidden @ weight, -jnp.inf)
    return cross_entropy(logits, targets, valid, smoothing=smoothing, vocab=VOCAB)


def fused(
    hidden: jax.Array,
    weight: jax.Array,
    targets: jax.Array,
    valid: jax.Array,
    smoothing: float,
    has_padding: bool = False,
) -> LossSums:
    answer: Any = {"smoothing": smoothing, "vocab": VOCAB, "has_padding": has_padding}
    return linear_cross_entropy(hidden, weight, targets, valid, **answer)


def taken_apart(
    hidden: Any, weight: Any, targets: Any, smoothing: float, bias: Any = 0.0
) -> tuple[np.ndarray, np.ndarray]:
    """p and q of the definition, (tokens, rows), in float64; nothing of them on rows that pad the vocabulary.

    Gradients are (p - q) Wᵀ, Hᵀ (p - q) and the column sums of p - q.
    """
    logits = np.asarray(hidden, np.float64) @ np.asarray(weight, np.float64) + np.asarray(bias, np.float64)
    logits[:, VOCAB:] = -np.inf
    p = np.exp(logits - logits.max(axis=1, keepdims=True))
    q = np.zeros_like(p)
    q[:, :VOCAB] = smoothing / VOCAB
    q[np.arange(len(q)), np.asarray(targets)] += 1.0 - smoothing
    return p / p.sum(axis=1, keepdims=True), q


BY_BOTH = pytest.mark.parametrize(
    ("rows", "d_model"), [(VOCAB, D_MODEL), (ROWS, 32)], ids=["by products", "by a CPU kernel"]
)
WAYS = {"definition": defined, "fused": fused, "padding passed over": partial(fused, has_padding=True)}


# Probabilities 1/8, 2/8 and 5/8, target 1, ε = 0.3: each token has 0.1 of the target distribution, and the target 0.8.
BY_HAND = 0.8 * math.log(4) + 0.1 * math.log(8) + 0.1 * math.log(8 / 5)


@pytest.mark.parametrize("padding", [0, 2])
def test_the_loss_of_three_tokens_is_known_by_hand(padding: int) -> None:
    """One token of width 1: the weights are the logits, and their gradient is p - q. Rounding: 1e-6."""
    logits = jnp.log(jnp.asarray([[1.0, 2.0, 5.0]], jnp.float32))
    weight = jnp.pad(logits, ((0, 0), (0, padding)), constant_values=9.0)  # padding rows would win
    hidden, targets, valid = jnp.ones((1, 1)), jnp.asarray([1]), jnp.asarray([True])

    def loss(weight: jax.Array) -> tuple[jax.Array, LossSums]:
        sums = linear_cross_entropy(hidden, weight, targets, valid, smoothing=0.3, vocab=3)
        return sums.loss, sums

    gradient, sums = jax.jit(jax.grad(loss, has_aux=True))(weight)
    for found in (sums, cross_entropy(logits, targets, valid, smoothing=0.3)):
        np.testing.assert_allclose(found, (BY_HAND, math.log(4), 0.0, 1.0), rtol=1e-6)
    expected = [1 / 8 - 0.1, 2 / 8 - 0.8, 5 / 8 - 0.1, *[0.0] * padding]
    np.testing.assert_allclose(gradient[0], expected, rtol=1e-6)


def test_the_best_token_is_correct_and_a_tie_counts() -> None:
    logits = jnp.asarray([[1.0, 3.0, 2.0], [1.0, 3.0, 2.0], [4.0, 4.0, 0.0], [0.0, 5.0, 0.0]])
    sums = cross_entropy(logits, jnp.asarray([1, 2, 0, 1]), jnp.asarray([True, True, True, False]))
    assert (float(sums.correct), float(sums.tokens)) == (2.0, 3.0)


@pytest.mark.parametrize("has_padding", [False, True], ids=["all visited", "padding passed over"])
@pytest.mark.parametrize("rows", [VOCAB, VOCAB + 5], ids=["all real", "padding rows"])
def test_a_bias_is_one_more_feature_that_is_always_one(rows: int, has_padding: bool) -> None:
    """In the loss, and in every gradient; that of a padding row is zero."""
    tokens = some_tokens(rows)
    bias = jnp.asarray(np.random.default_rng(3).normal(size=rows), jnp.float32)
    answer: Any = {"targets": tokens["targets"], "valid": tokens["valid"], "smoothing": 0.3, "vocab": VOCAB}
    answer["has_padding"] = has_padding

    def with_bias(hidden: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return linear_cross_entropy(hidden, weight, bias=bias, **answer).loss

    def with_feature(hidden: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        wider = jnp.pad(hidden, ((0, 0), (0, 1)), constant_values=1.0), jnp.concatenate([weight, bias[None, :]])
        return linear_cross_entropy(*wider, **answer).loss

    both = [
        jax.jit(jax.value_and_grad(way, argnums=(0, 1, 2)))(tokens["hidden"], tokens["weight"], bias)
        for way in (with_bias, with_feature)
    ]
    jax.tree.map(lambda ours, wanted: np.testing.assert_allclose(ours, wanted, **CLOSE), *both)
    assert not np.asarray(both[0][1][2][VOCAB:]).any()


@pytest.mark.parametrize("way", WAYS)
def test_label_smoothing_at_zero_is_cross_entropy(way: str) -> None:
    """Optax's."""
    tokens = some_tokens()
    sums, smoothed = (jax.jit(partial(WAYS[way], smoothing=smoothing))(**tokens) for smoothing in (0.0, 0.2))
    each = optax.softmax_cross_entropy_with_integer_labels(tokens["hidden"] @ tokens["weight"], tokens["targets"])
    np.testing.assert_allclose(sums.loss, each[tokens["valid"]].sum(), **CLOSE)
    assert float(sums.loss) == float(sums.nll)
    assert float(smoothed.loss) != float(sums.nll)


@pytest.mark.parametrize("way", WAYS)
def test_smoothing_leaves_the_reported_nll_alone(way: str) -> None:
    tokens = some_tokens()
    plain, smoothed = (jax.jit(partial(WAYS[way], smoothing=smoothing))(**tokens) for smoothing in (0.0, 0.4))
    assert float(smoothed.nll) == float(plain.nll)


@pytest.mark.parametrize("d_model", [D_MODEL, 32])
@pytest.mark.parametrize(
    ("rows", "smoothing", "chunk"),
    [(VOCAB, 0.0, 512), (VOCAB, 0.3, 4), (ROWS, 0.3, 4), (ROWS, 0.3, 1)],
    ids=["no smoothing, one chunk", "whole vocabulary", "padded vocabulary", "one token a chunk"],
)
def test_the_fused_loss_equals_its_definition(
    rows: int, smoothing: float, chunk: int, d_model: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums, and the gradients by the hidden states and the projection; scaled, as a mean would scale them.

    Rows of whole vectors, those with padding here, have their exponentials by a CPU kernel; where hidden states are
    whole vectors, it makes the gradient of the projection.
    """
    monkeypatch.setattr(chunked_cross_entropy, "CHUNK", chunk)
    monkeypatch.setattr(chunked_cross_entropy, "FINE", chunk)
    tokens = some_tokens(rows, d_model)
    found = {}
    for way, function in WAYS.items():

        def loss(hidden: jax.Array, weight: jax.Array, function: Any = function) -> tuple[jax.Array, LossSums]:
            sums = function(hidden, weight, tokens["targets"], tokens["valid"], smoothing)
            return 0.7 * sums.loss, sums

        gradient, given = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True)), (tokens["hidden"], tokens["weight"])
        gradients, sums = gradient(*given)
        found[way] = (*sums, *gradients)
        assert float(sums.tokens) == 7.0
        text = str(jax.make_jaxpr(gradient)(*given))
        assert ("plainformer_exponentials" in text) == (rows == ROWS and way != "definition")
        assert ("plainformer_linear_gradient" in text) == (d_model == 32 and way != "definition")
    for way in ("fused", "padding passed over"):
        for one, other in zip(found[way], found["definition"], strict=True):
            np.testing.assert_allclose(one, other, **CLOSE)
        d_hidden, d_weight = (np.asarray(gradient) for gradient in found[way][4:])
        assert (np.abs(d_hidden[np.asarray(tokens["valid"])]).max(axis=1) > 1e-3).all()
        assert (d_hidden[~np.asarray(tokens["valid"])] == 0.0).all()
        assert (d_weight[:, VOCAB:] == 0.0).all()


@pytest.mark.parametrize(("most", "chunks"), [(1, 3), (1000, 1)])
@pytest.mark.parametrize("smoothing", [0.0, 0.3])
@pytest.mark.parametrize("rows", [VOCAB, ROWS])
def test_an_accelerators_loss_equals_its_definition(
    rows: int, smoothing: float, most: int, chunks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which finds exponentials in one pass, and subtracts what is wanted from p: sums and gradients.

    Its chunks have so many logits, or `CHUNK` tokens, where those are more.
    """
    monkeypatch.setattr(devices, "platform", lambda: "other")
    monkeypatch.setattr(chunked_cross_entropy, "platform", lambda: "other")
    monkeypatch.setattr(chunked_cross_entropy, "on_one_cpu", lambda x: False)
    monkeypatch.setattr(chunked_cross_entropy, "MOST_LOGITS", most)
    tokens, found = some_tokens(rows), []
    hidden = jnp.where(tokens["valid"][:, None], tokens["hidden"], math.nan)  # but for the definition's gradients
    for function, states in ((fused, hidden), (defined, tokens["hidden"])):

        def loss(hidden: jax.Array, weight: jax.Array, function: Any = function) -> tuple[jax.Array, LossSums]:
            sums = function(hidden, weight, tokens["targets"], tokens["valid"], smoothing)
            return 0.7 * sums.loss, sums

        gradient, given = jax.jit(jax.grad(loss, argnums=(0, 1), has_aux=True)), (states, tokens["weight"])
        found.append(gradient(*given))
        if function is fused:
            text = str(jax.make_jaxpr(gradient)(*given))
            assert f"{chunks},{-(-TOKENS // chunks)},{D_MODEL}]" in text
            assert "reduce_max" not in text
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, **CLOSE), *found)


@BY_BOTH
@pytest.mark.parametrize("real", [0, 1, 4, 5, 8, 11])
def test_only_chunks_with_a_real_token_are_visited(
    real: int, rows: int, d_model: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many tokens are real, and wherever they stand: those that are left out are all padding."""
    tokens = some_tokens(rows, d_model)
    chosen = np.random.default_rng(real).permutation(TOKENS)[:real]
    valid = jnp.asarray(np.isin(np.arange(TOKENS), chosen))
    visits: list[int] = []
    terms = chunked_cross_entropy._chunk_terms

    def counted(*arguments: Any, **options: Any) -> Any:
        jax.debug.callback(lambda: visits.append(1))
        return terms(*arguments, **options)

    monkeypatch.setattr(chunked_cross_entropy, "_chunk_terms", counted)

    def loss(hidden: jax.Array, weight: jax.Array, way: str) -> jax.Array:
        return WAYS[way](hidden, weight, tokens["targets"], valid, 0.3).loss

    found = []
    for way, count in (("fused", 3), ("padding passed over", -(-real // 4))):
        visits.clear()
        gradient = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), static_argnums=2)
        found.append(gradient(tokens["hidden"], tokens["weight"], way))
        jax.effects_barrier()
        assert len(visits) == count
    jax.tree.map(lambda one, other: np.testing.assert_allclose(one, other, **CLOSE), *found)


@BY_BOTH
@pytest.mark.parametrize("way", WAYS)
def test_padding_does_not_count_whatever_stands_there(way: str, rows: int, d_model: int) -> None:
    """To the bit, in the sums and the gradient; NaN there leaves the sums alone too."""
    tokens = some_tokens(rows, d_model)
    hole = ~np.asarray(tokens["valid"])

    @jax.jit
    def gradient_and_sums(hidden: jax.Array, targets: jax.Array) -> tuple[jax.Array, LossSums]:
        def loss(weight: jax.Array) -> tuple[jax.Array, LossSums]:
            sums = WAYS[way](hidden, weight, targets, tokens["valid"], 0.1)
            return sums.loss, sums

        return jax.grad(loss, has_aux=True)(tokens["weight"])

    def with_garbage(value: float) -> jax.Array:
        return jnp.asarray(np.where(hole[:, None], np.float32(value), tokens["hidden"]))

    others = (np.asarray(tokens["targets"]) + 5) % VOCAB
    targets = jnp.asarray(np.where(hole, others, tokens["targets"]))
    gradient, sums = gradient_and_sums(tokens["hidden"], tokens["targets"])
    other_gradient, other_sums = gradient_and_sums(with_garbage(50.0), targets)
    assert other_sums == sums
    assert np.array_equal(other_gradient, gradient)
    # Where nobody asks for a gradient, which no CPU kernel is called for.
    alone = jax.jit(partial(WAYS[way], smoothing=0.1))
    garbage = tokens | {"hidden": with_garbage(math.nan), "targets": targets}
    assert alone(**garbage) == alone(**tokens)


@pytest.mark.parametrize("way", WAYS)
def test_the_sums_of_parts_add_up(way: str) -> None:
    """What makes microbatches possible: nothing in a sum hangs on what else is in the batch."""
    tokens = some_tokens()
    parts = [{name: x if name == "weight" else x[at] for name, x in tokens.items()} for at in (np.s_[:3], np.s_[3:])]
    whole, first, second = (jax.jit(partial(WAYS[way], smoothing=0.1))(**part) for part in (tokens, *parts))
    np.testing.assert_allclose(np.add(first, second), whole, **CLOSE)


def test_in_bfloat16_the_logits_keep_their_digits() -> None:
    """Products of bfloat16 numbers are exact in float32: the likelihood is that of the same numbers in float32.

    Rounded to bfloat16 afterwards, logits of order 5 would be off by 0.01 each.
    """
    tokens = some_tokens()
    rough: dict[str, Any] = tokens | {name: tokens[name].astype(jnp.bfloat16) for name in ("hidden", "weight")}
    same: dict[str, Any] = rough | {name: rough[name].astype(jnp.float32) for name in ("hidden", "weight")}
    found, expected = fused(**rough, smoothing=0.0), fused(**same, smoothing=0.0)
    assert found.nll.dtype == jnp.float32
    np.testing.assert_allclose(found.nll, expected.nll, rtol=1e-5)
    gradients = [
        jax.grad(lambda w, t=t: fused(**(t | {"weight": w}), smoothing=0.0).loss)(t["weight"]) for t in (rough, same)
    ]
    assert gradients[0].dtype == jnp.bfloat16
    # What is rounded are the gradients of the logits, once, and the result, once: 2 ** -8 each, of order 1.
    np.testing.assert_allclose(gradients[0].astype(jnp.float32), gradients[1], atol=0.02)


@pytest.mark.parametrize("has_padding", [False, True], ids=["all visited", "padding passed over"])
def test_in_bfloat16_all_three_gradients_are_those_of_float32(has_padding: bool) -> None:
    """With a bias, smoothing and rows that pad the vocabulary, to what is rounded: p - q, once, and the result, once.

    Each is off by 2 ** -8 of the number at most: the first, in a sum, by as much of the sizes of its terms. Half of
    both was measured; a hundredth more is for the rounding of what is off, and for sums in float32.
    """
    tokens = some_tokens(ROWS)
    bias = jnp.asarray(np.random.default_rng(3).normal(size=ROWS), jnp.bfloat16)
    rough = tokens["hidden"].astype(jnp.bfloat16), tokens["weight"].astype(jnp.bfloat16), bias
    same = tuple(one.astype(jnp.float32) for one in rough)
    answer: Any = {"targets": tokens["targets"], "valid": tokens["valid"], "smoothing": 0.3, "vocab": VOCAB}

    def loss(hidden: jax.Array, weight: jax.Array, bias: jax.Array) -> jax.Array:
        return linear_cross_entropy(hidden, weight, bias=bias, has_padding=has_padding, **answer).loss

    found, wanted = (jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(*given) for given in (rough, same))
    hidden, weight = (np.abs(np.asarray(one)) for one in same[:2])
    p, q = taken_apart(same[0], same[1], tokens["targets"], 0.3, bias=same[2])
    terms = np.abs(p - q) * np.asarray(tokens["valid"])[:, None]
    for one, other, size in zip(found, wanted, (terms @ weight.T, hidden.T @ terms, terms.sum(axis=0)), strict=True):
        assert one.dtype == jnp.bfloat16
        off = np.abs(np.asarray(one.astype(jnp.float32)) - np.asarray(other))
        assert (off <= 1.01 * 2**-8 * (size + np.abs(other))).all()


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_padding", [False, True], ids=["all visited", "padding passed over"])
@BY_BOTH
def test_the_gradient_of_a_nearly_certain_token_is_off_by_roundings_alone(
    rows: int, d_model: int, has_padding: bool, smoothing: float
) -> None:
    """Words are unit vectors, and hidden states so long in the direction of theirs that it has 0.999 of the softmax.

    What cancels, p and q, is of order 1 and known to 6e-8: so are gradients, relative to the largest sum of p + q times
    what they are multiplied with. One such rounding was measured, four are allowed; what is left is over a thousand.
    """
    tokens = some_tokens(rows, d_model)
    weight = np.asarray(tokens["weight"]) / np.linalg.norm(tokens["weight"], axis=0)
    others = np.sort(weight.T @ weight, axis=1)[:, -2]
    targets, real = np.asarray(tokens["targets"]), np.asarray(tokens["valid"])[:, None]
    hidden = (weight[:, targets] * 9.0 / (1.0 - others[targets])).T
    p, q = (one * real for one in taken_apart(hidden, weight, targets, smoothing))
    surest = p[np.arange(TOKENS), targets][real[:, 0]]
    assert surest.min() > 0.999
    assert surest.max() < 1 - 1e-5, "something is left"

    def loss(hidden: jax.Array, weight: jax.Array) -> jax.Array:
        return fused(hidden, weight, tokens["targets"], tokens["valid"], smoothing, has_padding).loss

    d_hidden, d_weight = jax.jit(jax.grad(loss, argnums=(0, 1)))(hidden, weight)
    for found, exact, terms in (
        (d_hidden, (p - q) @ weight.T, (p + q) @ np.abs(weight.T)),
        (d_weight, hidden.T @ (p - q), np.abs(hidden.T) @ (p + q)),
    ):
        near = 4 * 6e-8 * terms.max()
        assert np.abs(exact).max() > 100 * near, "a gradient, not noise"
        np.testing.assert_allclose(found, exact, rtol=0, atol=near)
