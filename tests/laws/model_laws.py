"""The laws of the models, each a function that raises AssertionError where its law is broken.

`test_model_laws` and `test_language_model_laws` hold every variant to them; `encoder_laws` has those that are an
encoder's alone; `test_deliberate_bugs` shows that they catch what they are there for.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from plainformer.equations.masks import Tokens
from plainformer.folder import KINDS, AnyConfig, abstract_model, model_type_of, named_parameters
from plainformer.models import DecoderState, LanguageModelConfig, Transformer, TransformerConfig
from plainformer.nn.position import Position, ScoreBias

BATCH, SOURCE, LONGER, TARGET, ROOM = 3, 7, 11, 5, 9
LENGTHS = (7, 4, 2)  # of the three sources
# Which tokens occur where, so that the table of an embedding shows by its gradient what it is used for.
SOURCE_TOKENS, TARGET_TOKENS, PAD = range(8), range(8, 15), 16
# Logits and memory are of order 1, and a path through the model is some hundred roundings of 6e-8, which come out
# otherwise where the same sum is cut up otherwise. Measured: 1e-6 at most.
CLOSE: Any = {"rtol": 1e-5, "atol": 5e-6}


class Sample(NamedTuple):
    """A batch: three sources, padded with `PAD`, and what their targets read, no token twice."""

    source: jax.Array  # (batch, source)
    valid: jax.Array  # (batch, source)
    target: jax.Array  # (batch, target)

    def alone(self, row: int) -> "Sample":
        """One sentence by itself, its source padded further, with another token."""
        source, valid, target = (part[row : row + 1] for part in self)
        wider = ((0, 0), (0, LONGER - SOURCE))
        return Sample(jnp.pad(source, wider, constant_values=2), jnp.pad(valid, wider), target)


def make_sample() -> Sample:
    random = np.random.default_rng(7)
    valid = np.arange(SOURCE)[None, :] < np.array(LENGTHS)[:, None]
    source = np.where(valid, random.choice(SOURCE_TOKENS, (BATCH, SOURCE)), PAD)
    target = [random.choice(TARGET_TOKENS, TARGET, replace=False) for _ in range(BATCH)]
    return Sample(jnp.asarray(source, jnp.int32), jnp.asarray(valid), jnp.asarray(target, jnp.int32))


class Text(NamedTuple):
    """What a language model reads: no token twice in a row."""

    target: jax.Array  # (batch, target)

    def alone(self, row: int) -> "Text":
        return Text(self.target[row : row + 1])


class Weighed(eqx.Module):
    """Positions, or a score bias, times a number: at 0 there are none."""

    base: Position | ScoreBias
    amount: jax.Array

    def __call__(self, *positions: Any) -> jax.Array:
        return self.base(*positions) * self.amount


def with_weighed_positions(model: Any, amount: jax.Array) -> Any:
    """The model, its positions times a number (1, 1, 1), whether they are added or bias scores."""

    def of(part: Any) -> Any:
        if isinstance(part, ScoreBias):
            return Weighed(part, amount[None])
        return Weighed(part, amount) if isinstance(part, Position) else part

    return jax.tree.map(of, model, is_leaf=lambda part: isinstance(part, ScoreBias | Position))


class Subject:
    """A model and its compiled verbs. Every subject compiles anew, and so follows what a test has patched.

    Compiling is what takes long, so the laws share few programs, each of one shape.
    """

    model: Any
    sample: Any  # a Sample or a Text
    vocab: int  # real tokens that are predicted
    target_table: str  # the name of the embedding that reads `sample.target`

    def __init__(self, config: AnyConfig) -> None:
        random = np.random.default_rng(5)
        self.model = draw_model(config, random)
        # What a test looks at: some mixture of logits, another one at each place and for each token.
        self.mixture = random.normal(size=(BATCH, TARGET, self.vocab)).astype(np.float32)

        def mixed(model: Any, sample: Any, mixture: jax.Array) -> tuple[jax.Array, jax.Array]:
            logits = model(*sample)
            return (logits[:, :, : self.vocab] * mixture).sum(), logits

        self.forward = eqx.filter_jit(lambda model, sample: model(*sample))
        self._differentiate = eqx.filter_jit(eqx.filter_grad(mixed, has_aux=True))

    def logits(self, sample: Any) -> NDArray[np.float32]:
        """Of the real tokens: (batch, target, vocab)."""
        return self.all_logits(sample)[:, :, : self.vocab]

    def all_logits(self, sample: Any, model: Any = None) -> NDArray[np.float32]:
        """With those of the padding of the vocabulary; of another model of this shape, if one is given."""
        model = self.model if model is None else model
        if len(sample.target) == 1:
            return np.asarray(self.forward(model, sample))
        return np.asarray(self._differentiate(model, sample, jnp.asarray(self.mixture))[1])

    def gradients(self, sample: Any, mixture: NDArray[np.float32] | None = None) -> dict[str, NDArray[np.float32]]:
        """Of the mixture of logits, by the name of the parameter."""
        mixture = self.mixture if mixture is None else mixture
        found, _ = self._differentiate(self.model, sample, jnp.asarray(mixture))
        return {name: np.asarray(leaf) for name, leaf in named_parameters(found).items()}


class TranslatorSubject(Subject):
    """An encoder-decoder."""

    def __init__(self, config: TransformerConfig) -> None:
        self.config, self.sample, self.vocab = config, make_sample(), config.target_vocab
        shared = config.tie in ("three-way", "source-target")
        self.target_table = "source_embedding.table" if shared else "target_embedding.table"
        super().__init__(config)

        def encode(model: Transformer, source: jax.Array, valid: jax.Array, amount: jax.Array) -> jax.Array:
            return with_weighed_positions(model, amount).encode(source, valid)

        self.encode = eqx.filter_jit(encode)
        self.start = eqx.filter_jit(lambda model, memory, valid: model.start(memory, valid, ROOM))
        self.extend = eqx.filter_jit(lambda model, ids, state: model.extend(ids, state))

    def memory(self, source: jax.Array, valid: jax.Array, *, positions: float = 1.0) -> jax.Array:
        return self.encode(self.model, source, valid, jnp.full((1, 1, 1), positions))


class LanguageSubject(Subject):
    """A language model, which reads what the translator's targets read."""

    def __init__(self, config: LanguageModelConfig) -> None:
        self.config, self.sample, self.vocab = config, Text(make_sample().target), config.vocab
        self.target_table = "embedding.table"
        super().__init__(config)
        self.extend = eqx.filter_jit(lambda model, ids, state: model.extend(ids, state))


def draw_model(config: AnyConfig, random: np.random.Generator) -> Any:
    """Every parameter random: scales at 1 and biases at 0 would let a mistake pass unseen. Nothing is compiled."""

    def draw(leaf: jax.ShapeDtypeStruct) -> jax.Array:
        if leaf.ndim == 1:  # a bias or a norm's scale
            return jnp.asarray(random.normal(0.5, 0.5, leaf.shape), leaf.dtype)
        return jnp.asarray(random.normal(size=leaf.shape) / np.sqrt(leaf.shape[0]), leaf.dtype)

    return jax.tree.map(draw, abstract_model(config))


# ---------------------------------------------------------------------------------------------------------------------
# What may be seen
# ---------------------------------------------------------------------------------------------------------------------


def check_the_future_does_not_change_the_past(subject: Subject) -> None:
    """To the bit: what is hidden enters every sum as an exact zero."""
    sample = subject.sample
    before = subject.logits(sample)
    for at in range(1, TARGET):
        other = sample.target.at[:, at:].set((sample.target[:, at:] + 3) % PAD)
        after = subject.logits(sample._replace(target=other))
        assert np.array_equal(after[:, :at], before[:, :at]), f"target token {at} changed an earlier logit"
        assert (after[:, at] != before[:, at]).any(axis=-1).all(), f"target token {at} does not reach its own logits"


def check_the_past_gets_no_gradient_from_the_future(subject: Subject) -> None:
    """The gradient of the logits at t by the embedding of target token u is 0 where u > t, and is not where u <= t.

    Row v of a table holds nothing but the gradient by the one place where token v stands, if the mixture leaves out the
    logits of target tokens, which a tied table gives too.
    """
    table = subject.target_table
    tokens = np.asarray(subject.sample.target[0])
    size = np.zeros((TARGET, TARGET))  # (logits at, token at)
    for at in range(TARGET):
        mixture = np.zeros_like(subject.mixture)
        mixture[0, at] = subject.mixture[0, at]
        mixture[:, :, TARGET_TOKENS] = 0.0
        size[at] = np.abs(subject.gradients(subject.sample, mixture)[table][tokens]).max(axis=1)
    assert (size[np.triu_indices(TARGET, 1)] == 0.0).all(), f"a later target token has a gradient:\n{size}"
    reached = np.tril(np.ones((TARGET, TARGET), bool))
    if getattr(subject.model.config, "decoder_start", "token") == "zero":  # the first token is not looked up
        reached[:, 0] = False
        assert (size[:, 0] == 0.0).all(), f"a start from zero has a gradient:\n{size}"
    # Noise is some 1e-7.
    assert (size[reached] > 1e-4).all(), f"an earlier target token has no gradient:\n{size}"


def check_padding_does_not_change_real_positions(subject: TranslatorSubject) -> None:
    """Neither what stands there (to the bit), nor how much of it there is."""
    sample = subject.sample
    before = subject.logits(sample)
    garbage = jnp.where(sample.valid, sample.source, (sample.source + 3 + jnp.arange(SOURCE)[None, :]) % PAD)
    after = subject.logits(sample._replace(source=garbage))
    assert np.array_equal(after, before), "what stands in the padding changed the logits"
    for row in range(BATCH):
        longer = subject.logits(sample.alone(row))[0]
        np.testing.assert_allclose(longer, before[row], **CLOSE, err_msg="the length of the padding changed the logits")
    fewer = subject.logits(sample._replace(valid=sample.valid.at[:, 1].set(False)))
    assert (np.abs(fewer - before).max(axis=(1, 2)) > 1e-3).all(), "a real source token does not reach the logits"


def check_the_batch_does_not_change_a_sentence(subject: Subject) -> None:
    sample = subject.sample
    before = subject.logits(sample)
    turned = subject.logits(sample._make(jnp.roll(part, 1, axis=0) for part in sample))
    assert np.array_equal(np.roll(turned, -1, axis=0), before), "the place in the batch changed a sentence"
    others = sample._make(part.at[1:].set(part[:1]) for part in sample)
    assert np.array_equal(subject.logits(others)[0], before[0]), "the rest of the batch changed a sentence"
    for row in range(BATCH):
        alone = subject.logits(sample.alone(row))[0]
        np.testing.assert_allclose(alone, before[row], **CLOSE, err_msg="a sentence is another one when alone")


def check_packed_texts_are_as_they_would_be_alone(subject: TranslatorSubject) -> None:
    """The first two pairs in one row, the third in another: their logits, and the gradient of their mixture."""
    sample, (first, second, third) = subject.sample, LENGTHS
    texts = jnp.array([[1] * first + [2] * second, [1] * third + [0] * (first + second - third)], jnp.int32)
    target_texts = jnp.array([[1] * TARGET + [2] * TARGET, [1] * TARGET + [0] * TARGET], jnp.int32)
    side, other = Tokens(texts > 0, texts), Tokens(None, target_texts)
    source, target = jnp.full(texts.shape, PAD, jnp.int32), jnp.full(target_texts.shape, PAD, jnp.int32)
    for row, start, pair in ((0, 0, 0), (0, 1, 1), (1, 0, 2)):
        source = source.at[row, start * first : start * first + LENGTHS[pair]].set(sample.source[pair, : LENGTHS[pair]])
        target = target.at[row, start * TARGET : (start + 1) * TARGET].set(sample.target[pair])

    def mixed(model: Transformer) -> tuple[jax.Array, jax.Array]:
        memory = model.encode(source, side)
        logits = model.project(model.decode(target, memory, side, other))
        of_pairs = logits.reshape(2 * 2, TARGET, -1)[:BATCH]
        return (of_pairs[:, :, : subject.vocab] * subject.mixture).sum(), of_pairs[:, :, : subject.vocab]

    gradients, logits = eqx.filter_jit(eqx.filter_grad(mixed, has_aux=True))(subject.model)
    np.testing.assert_allclose(
        logits, subject.logits(sample), **CLOSE, err_msg="another text of the row changed a text"
    )
    by_name = subject.gradients(sample)
    for name, found in named_parameters(gradients).items():
        # A gradient is a sum over all places; that of a key's bias is one of roundings alone.
        size = max(float(np.abs(by_name[name]).max()), 1.0)
        off = np.abs(np.asarray(found) - by_name[name]).max()
        assert off < 1e-5 * size, f"packed, {name} has another gradient, by {off:.1e} of {size:.1e}"


def check_a_source_of_nothing_is_harmless(subject: TranslatorSubject) -> None:
    """Where every source position is padding, attention gives zeros: nothing is read, nothing is NaN."""
    empty = subject.sample._replace(valid=subject.sample.valid.at[1].set(False))
    logits = subject.logits(empty)
    assert np.isfinite(logits).all(), "a source without tokens gives logits that are not finite"
    other = empty._replace(source=empty.source.at[1].set((empty.source[1] + 5) % PAD))
    assert np.array_equal(subject.logits(other), logits), "a source without tokens was read"
    assert np.array_equal(logits[[0, 2]], subject.logits(subject.sample)[[0, 2]]), "it changed the rest of the batch"
    bad = [name for name, gradient in subject.gradients(empty).items() if not np.isfinite(gradient).all()]
    assert not bad, f"a source without tokens gives gradients that are not finite: {bad}"


def check_without_positions_the_encoder_is_permutation_equivariant(subject: TranslatorSubject) -> None:
    """A permuted source gives the permuted memory."""
    order = np.array([3, 0, 6, 2, 5, 1, 4])
    source, valid, _ = subject.sample
    memory = np.asarray(subject.memory(source, valid, positions=0.0))
    permuted = np.asarray(subject.memory(source[:, order], valid[:, order], positions=0.0))
    assert np.abs(memory[:, order] - memory).max() > 0.1, "the positions do not differ, and nothing is shown"
    np.testing.assert_allclose(permuted, memory[:, order], **CLOSE, err_msg="the order of the source shows")


# ---------------------------------------------------------------------------------------------------------------------
# What is computed
# ---------------------------------------------------------------------------------------------------------------------


def check_cached_steps_equal_the_full_forward(subject: TranslatorSubject) -> None:
    """One token at a time, in a cache with room to spare."""
    model, (source, valid, target) = subject.model, subject.sample
    expected = subject.all_logits(subject.sample)
    state: DecoderState = subject.start(model, subject.memory(source, valid), valid)
    for at in range(TARGET):
        logits, state = subject.extend(model, target[:, at : at + 1], state)
        np.testing.assert_allclose(logits[:, 0], expected[:, at], **CLOSE, err_msg=f"the cached step {at} differs")
    assert state.length.tolist() == [TARGET] * BATCH


def check_cached_extension_equals_the_full_forward(subject: LanguageSubject) -> None:
    """All tokens at once, in pieces, and one at a time, in a cache with room to spare."""
    (ids,), expected = subject.sample, subject.all_logits(subject.sample)
    for pieces in ([TARGET], [2, 3], [1] * TARGET):
        state, at = subject.model.start(BATCH, ROOM), 0
        for piece in pieces:
            logits, state = subject.extend(subject.model, ids[:, at : at + piece], state)
            wanted = expected[:, at : at + piece]
            np.testing.assert_allclose(logits, wanted, **CLOSE, err_msg=f"the cached extend of {pieces} at {at}")
            at += piece
        assert state.length.tolist() == [TARGET] * BATCH


def check_every_projection_learns(subject: Subject) -> None:
    """Query, key and value of every head."""
    for name, gradient in projections(subject.gradients(subject.sample), subject.model.config).items():
        # Noise is some 1e-7; a projection that is not used has exactly 0.
        assert np.abs(gradient).max() > 1e-4, f"{name} gets no gradient"


def check_no_two_projections_start_alike(config: AnyConfig) -> None:
    """Query, key and value of every head and layer: another start makes them other projections."""
    model = KINDS[model_type_of(config)].model(config, key=jax.random.key(3))
    weights = {name: np.asarray(leaf) for name, leaf in named_parameters(model).items()}
    for (one, first), (other, second) in combinations(projections(weights, config).items(), 2):
        assert not np.array_equal(first, second), f"{one} and {other} start with the same weights"


def projections(weights: dict[str, NDArray[np.float32]], config: AnyConfig) -> dict[str, NDArray[np.float32]]:
    """The (d_model, d_k or d_v) part of every head's query, key and value, by name."""
    kv_heads = getattr(config, "kv_heads", 0) or config.heads
    return {
        f"{name}, head {head}": columns
        for name, whole in weights.items()
        if name.endswith(("query.weight", "key.weight", "value.weight"))
        for head, columns in enumerate(
            np.split(whole, config.heads if name.endswith("query.weight") else kv_heads, axis=1)
        )
    }


def check_a_tied_table_is_one(subject: TranslatorSubject) -> None:
    """By the rows that learn: those of source tokens by the source, of target tokens by the target, all by the output.

    Rows of padding, in the batch or in the table, never learn by being looked up.
    """
    config, sample = subject.config, subject.sample
    found = {name: gradient for name, gradient in subject.gradients(sample).items() if name in EMBEDDINGS}
    if "output.weight" in found:
        found["output.weight"] = found["output.weight"].T
    read = set(np.asarray(sample.source)[np.asarray(sample.valid)].tolist())
    said, all_tokens = set(np.asarray(sample.target).ravel().tolist()), set(range(config.target_vocab))
    expected: dict[str, set[int]] = {
        "three-way": {"source_embedding.table": all_tokens},
        "source-target": {"source_embedding.table": read | said, "output.weight": all_tokens},
        "target-output": {"source_embedding.table": read, "target_embedding.table": all_tokens},
        "none": {"source_embedding.table": read, "target_embedding.table": said, "output.weight": all_tokens},
    }[config.tie]
    learned = {name: set(np.flatnonzero(np.abs(table).max(axis=1)).tolist()) for name, table in found.items()}
    assert learned == expected, f"tied {config.tie}, the rows that learn are {learned}"
    vocabularies = {"source_embedding.table": config.source_vocab}
    for name, table in found.items():
        assert table.shape == (config.rows(vocabularies.get(name, config.target_vocab)), config.d_model), name


EMBEDDINGS = ("source_embedding.table", "target_embedding.table", "output.weight")


def check_padding_of_the_vocabulary_is_never_predicted(subject: Subject) -> None:
    logits = subject.all_logits(subject.sample)
    vocab = subject.vocab
    assert logits.shape == (BATCH, TARGET, subject.model.config.rows(vocab))
    assert np.isfinite(logits[:, :, :vocab]).all()
    assert np.isneginf(logits[:, :, vocab:]).all(), "a row of padding has a chance"


def check_the_orders_of_sines_and_cosines_are_one_function(subject: TranslatorSubject, order: Sequence[int]) -> None:
    """An interleaved model, its residual stream reordered by `order`, is a model with the half-and-half order."""
    assert subject.config.sinusoidal_order == "interleaved"
    half = replace(subject.config, sinusoidal_order="half")
    at = np.array(order)

    def reordered(name: str, leaf: jax.Array) -> jax.Array:
        if name.endswith((".table", "outer.weight", "attention.output.weight")):
            return leaf[:, at]  # writes to the stream
        if name.endswith((".weight", "attention.output.bias", "outer.bias")) or ".norm." in f".{name}":
            return leaf[at]  # reads from it, or has its width
        return leaf

    leaves = [reordered(name, leaf) for name, leaf in named_parameters(subject.model).items()]
    converted = jax.tree.unflatten(jax.tree.structure(abstract_model(half)), leaves)
    alone = subject.sample.alone(0)
    logits = subject.all_logits(alone, converted)[:, :, : half.target_vocab]
    np.testing.assert_allclose(logits, subject.logits(alone), **CLOSE, err_msg="the orders disagree")
