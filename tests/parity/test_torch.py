"""The stacks and the loss are PyTorch's, in values and in every gradient.

PyTorch computes in float64 and is the truth; ours computes in float32. Outputs and gradients are compared relative to
the largest entry of each array, because a gradient's small entries are differences of large ones.
"""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from plainformer import objective
from plainformer.equations.masks import causal_mask, padding_mask
from plainformer.models.config import TransformerConfig
from plainformer.models.transformer import Decoder, Encoder
from plainformer.nn.attention import MultiHeadAttention

torch = pytest.importorskip("torch", reason="PyTorch, the peer of these tests, is not installed")

TOLERANCE = 5e-6  # some hundred float32 roundings of 6e-8, which mostly cancel: measured, 6e-7
BATCH, SOURCE, TARGET, D_MODEL, D_FF, HEADS, ENCODER_LAYERS, DECODER_LAYERS = 4, 7, 5, 12, 23, 3, 2, 1

VALID = np.array([[True] * 7, [True] * 4 + [False] * 3, [False] + [True] * 6, [True] + [False] * 6])


def torch_transformer(norm_position: str, activation: str):
    """torch.nn.Transformer with random parameters.

    Left alone it puts a norm after both stacks even in post-norm, where the paper has none, so the stacks are given.
    """
    pre = norm_position == "pre"
    sizes = {"d_model": D_MODEL, "nhead": HEADS, "dim_feedforward": D_FF, "dropout": 0.0, "activation": activation}
    kind = {"batch_first": True, "norm_first": pre, "dtype": torch.float64}

    def final_norm():
        return torch.nn.LayerNorm(D_MODEL, dtype=torch.float64) if pre else None

    encoder = torch.nn.TransformerEncoder(
        torch.nn.TransformerEncoderLayer(**sizes, **kind), ENCODER_LAYERS, final_norm(), enable_nested_tensor=False
    )
    decoder = torch.nn.TransformerDecoder(
        torch.nn.TransformerDecoderLayer(**sizes, **kind), DECODER_LAYERS, final_norm()
    )
    transformer = torch.nn.Transformer(
        D_MODEL, HEADS, custom_encoder=encoder, custom_decoder=decoder, batch_first=True, dtype=torch.float64
    )
    generator = torch.Generator().manual_seed(0)
    for parameter in transformer.parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, 0.5, 0.5, generator=generator)
        else:
            torch.nn.init.normal_(parameter, 0.0, parameter.shape[1] ** -0.5, generator=generator)
    return transformer


# ---------------------------------------------------------------------------------------------------------------------
# PyTorch's parameters, or their gradients, put where ours stand
# ---------------------------------------------------------------------------------------------------------------------


def value(parameter) -> np.ndarray:
    return parameter.detach().numpy()


def gradient(parameter) -> np.ndarray:
    return parameter.grad.numpy()


def affine_from(ours, weight: np.ndarray, bias: np.ndarray):
    """A linear map, whose matrix PyTorch keeps as (d_out, d_in)."""
    return eqx.tree_at(lambda linear: (linear.weight, linear.bias), ours, (weight.T, bias))


def norm_from(ours, theirs, read: Callable):
    return eqx.tree_at(lambda norm: (norm.scale, norm.bias), ours, (read(theirs.weight), read(theirs.bias)))


def attention_from(ours: MultiHeadAttention, theirs, read: Callable) -> MultiHeadAttention:
    """PyTorch keeps the three input projections in one matrix, one below the other."""
    weights, biases = np.split(read(theirs.in_proj_weight), 3), np.split(read(theirs.in_proj_bias), 3)
    inputs = [
        affine_from(projection, weight, bias)
        for projection, weight, bias in zip((ours.query, ours.key, ours.value), weights, biases, strict=True)
    ]
    output = affine_from(ours.output, read(theirs.out_proj.weight), read(theirs.out_proj.bias))
    return eqx.tree_at(lambda a: (a.query, a.key, a.value, a.output), ours, (*inputs, output))


def layer_from(ours, theirs, read: Callable):
    """An encoder layer or a decoder layer: PyTorch numbers the norms in the order of the sublayers, as ours does."""
    norms = [theirs.norm1, theirs.norm2]
    if hasattr(theirs, "multihead_attn"):
        cross = attention_from(ours.cross_attention, theirs.multihead_attn, read)
        ours = eqx.tree_at(lambda layer: layer.cross_attention, ours, cross)
        norms.append(theirs.norm3)
    return eqx.tree_at(
        lambda layer: (
            layer.self_attention,
            layer.feed_forward.inner,
            layer.feed_forward.outer,
            *(residual.norm for residual in layer.residuals),
        ),
        ours,
        (
            attention_from(ours.self_attention, theirs.self_attn, read),
            affine_from(ours.feed_forward.inner, read(theirs.linear1.weight), read(theirs.linear1.bias)),
            affine_from(ours.feed_forward.outer, read(theirs.linear2.weight), read(theirs.linear2.bias)),
            *(norm_from(a.norm, b, read) for a, b in zip(ours.residuals, norms, strict=True)),
        ),
    )


def stack_from(ours, theirs, read: Callable):
    """An encoder or a decoder, with its final norm where it has one."""
    layers = [layer_from(a, b, read) for a, b in zip(ours.layers, theirs.layers, strict=True)]
    ours = eqx.tree_at(lambda stack: stack.layers, ours, tuple(layers))
    if theirs.norm is not None:
        ours = eqx.tree_at(lambda stack: stack.norm, ours, norm_from(ours.norm, theirs.norm, read))
    return ours


def as_float32(tree):
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), tree)


def largest_relative_difference(ours, theirs) -> float:
    """The largest difference of two arrays over their largest entry, or over 1 where all entries are smaller.

    The gradient of a key's bias is exactly zero (it moves all scores of a query alike), and has no scale of its own.
    """
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs)
    assert ours.shape == theirs.shape
    return np.abs(ours - theirs).max() / max(np.abs(theirs).max(), 1.0)


# ---------------------------------------------------------------------------------------------------------------------
# The comparisons
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("norm_position", ["post", "pre"])
def test_the_stacks_are_torch_nn_transformer_values_and_gradients(norm_position, activation):
    peer = torch_transformer(norm_position, activation)
    generator = np.random.default_rng(0)
    source, target, probe = (generator.normal(size=(BATCH, n, D_MODEL)) for n in (SOURCE, TARGET, TARGET))

    source_there, target_there = (torch.tensor(x, requires_grad=True) for x in (source, target))
    padding = torch.tensor(~VALID)  # PyTorch's masks say who may not be attended to
    hidden_there = peer(
        source_there,
        target_there,
        tgt_mask=torch.triu(torch.ones(TARGET, TARGET, dtype=torch.bool), diagonal=1),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    (hidden_there * torch.tensor(probe)).sum().backward()

    config = TransformerConfig(
        source_vocab=1, target_vocab=1, d_model=D_MODEL, d_ff=D_FF, heads=HEADS, encoder_layers=ENCODER_LAYERS,
        decoder_layers=DECODER_LAYERS, norm_position=norm_position, activation=activation, dropout=0.0,
    )  # fmt: skip
    encoder_key, decoder_key = jax.random.split(jax.random.key(0))
    stacks = Encoder(config, key=encoder_key), Decoder(config, key=decoder_key)

    def counterpart(read: Callable):
        return as_float32((stack_from(stacks[0], peer.encoder, read), stack_from(stacks[1], peer.decoder, read)))

    def probed(everything):
        (encoder, decoder), source, target = everything
        mask = padding_mask(jnp.asarray(VALID))
        hidden = decoder(target, causal_mask(TARGET), encoder(source, mask), mask)
        return (hidden * jnp.asarray(probe, jnp.float32)).sum(), hidden

    here = (counterpart(value), *as_float32((source, target)))
    (_, hidden), gradients = eqx.filter_jit(eqx.filter_value_and_grad(probed, has_aux=True))(here)
    there = (counterpart(gradient), source_there.grad.numpy(), target_there.grad.numpy())

    assert largest_relative_difference(hidden, hidden_there.detach().numpy()) <= TOLERANCE
    parameters = sum(parameter.numel() for parameter in peer.parameters())
    assert parameters == sum(leaf.size for leaf in jax.tree.leaves(gradients[0]))
    differences = jax.tree.map(largest_relative_difference, gradients, there)
    named, _ = jax.tree.flatten_with_path(differences)
    assert not {jax.tree_util.keystr(path): size for path, size in named if size > TOLERANCE}


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_fast_twin_are_torch_s_cross_entropy_values_and_gradients(smoothing):
    """PyTorch's mean is over the targets that are not `ignore_index`: ours over real tokens."""
    tokens, d_model, vocab, ignored = 19, 6, 11, 3
    generator = np.random.default_rng(0)
    hidden, weight = generator.normal(size=(tokens, d_model)), generator.normal(size=(d_model, vocab))
    targets = generator.integers(0, vocab, tokens)
    targets[[2, 7, 8]] = ignored

    hidden_there, weight_there = (torch.tensor(x, requires_grad=True) for x in (hidden, weight))
    loss_there = torch.nn.functional.cross_entropy(
        hidden_there @ weight_there, torch.tensor(targets), ignore_index=ignored, label_smoothing=smoothing
    )
    loss_there.backward()

    answer = jnp.asarray(targets, jnp.int32), jnp.asarray(targets != ignored)

    def plain(hidden, weight):
        sums = objective.cross_entropy(hidden @ weight, *answer, smoothing=smoothing)
        return sums.loss / sums.tokens

    def fused(hidden, weight):
        sums = objective.linear_cross_entropy(hidden, weight, *answer, smoothing=smoothing)
        return sums.loss / sums.tokens

    for loss in (plain, fused):
        ours, (d_hidden, d_weight) = jax.value_and_grad(loss, argnums=(0, 1))(*as_float32((hidden, weight)))
        assert float(ours) == pytest.approx(loss_there.item(), rel=1e-6)
        # Entries are of order 0.1; 1e-7 is some ten roundings of one.
        np.testing.assert_allclose(d_hidden, hidden_there.grad.numpy(), rtol=0, atol=1e-7)
        np.testing.assert_allclose(d_weight, weight_there.grad.numpy(), rtol=0, atol=1e-7)
