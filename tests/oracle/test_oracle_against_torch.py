"""The oracle itself is checked: against PyTorch where it has the same mathematics, by hand where it has not.

Both sides compute in float64, so 1e-12 leaves room for sums taken in another order and for nothing else.
"""

import math

import numpy as np
import pytest
from numpy_training import cross_entropy, noam
from numpy_transformer import Setting, activate, attend, decoder_layer, encoder_layer, normalise, sinusoid
from numpy_weights import Attention, DecoderLayer, EncoderLayer, Floats, Linear, Norm

torch = pytest.importorskip("torch", reason="PyTorch, the peer of these tests, is not installed")

TOLERANCE = 1e-12
BATCH, SOURCE, TARGET, D_MODEL, D_FF, HEADS, VOCAB = 3, 5, 4, 6, 11, 2, 7


def random(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng((seed, *shape)).normal(size=shape)


def from_torch_linear(weight, bias) -> Linear:
    return {"weight": weight.detach().numpy().T, "bias": bias.detach().numpy()}


def from_torch_norm(norm) -> Norm:
    return {"scale": norm.weight.detach().numpy(), "bias": norm.bias.detach().numpy()}


def from_torch_attention(module) -> Attention:
    """PyTorch stacks the queries, keys and values of all heads in one (3 * d_model, d_model) matrix, heads in order."""
    query, key, value = (
        [
            from_torch_linear(weight, bias)
            for weight, bias in zip(weights.chunk(HEADS), biases.chunk(HEADS), strict=True)
        ]
        for weights, biases in zip(module.in_proj_weight.chunk(3), module.in_proj_bias.chunk(3), strict=True)
    )
    return {
        "heads": [{"query": q, "key": k, "value": v} for q, k, v in zip(query, key, value, strict=True)],
        "output": from_torch_linear(module.out_proj.weight, module.out_proj.bias),
    }


def torch_layer(kind: str, order: str, activation: str):
    """A layer in float64 with every parameter random: norms and biases at their initial 1 and 0 would hide mistakes."""
    layer = getattr(torch.nn, kind)(
        D_MODEL, HEADS, D_FF, 0.0, activation, batch_first=True, norm_first=order == "pre", dtype=torch.float64
    )
    generator = torch.Generator().manual_seed(len(kind))
    for parameter in layer.parameters():
        torch.nn.init.normal_(parameter, generator=generator)
    return layer


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("order", ["post", "pre"])
def test_an_encoder_layer_is_torch_s(order, activation):
    layer = torch_layer("TransformerEncoderLayer", order, activation)
    x = random(BATCH, SOURCE, D_MODEL)
    valid = np.array([[True] * 5, [True] * 3 + [False] * 2, [False, True, True, True, False]])
    theirs = layer(torch.tensor(x), src_key_padding_mask=torch.tensor(~valid)).detach().numpy()
    weights: EncoderLayer = {
        "attention": from_torch_attention(layer.self_attn),
        "attention_norm": from_torch_norm(layer.norm1),
        "feed_forward": {
            "inner": from_torch_linear(layer.linear1.weight, layer.linear1.bias),
            "outer": from_torch_linear(layer.linear2.weight, layer.linear2.bias),
        },
        "feed_forward_norm": from_torch_norm(layer.norm2),
    }
    setting = Setting(order=order, activation=activation)
    for row in range(BATCH):
        mask = np.array([valid[row]] * SOURCE)
        ours = encoder_layer(x[row], mask, weights, setting)
        np.testing.assert_allclose(ours, theirs[row], rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("order", ["post", "pre"])
def test_a_decoder_layer_is_torch_s(order):
    layer = torch_layer("TransformerDecoderLayer", order, "relu")
    x, memory = random(BATCH, TARGET, D_MODEL), random(BATCH, SOURCE, D_MODEL)
    valid = np.array([[True] * 5, [True] * 3 + [False] * 2, [False, True, True, True, False]])
    causal = np.tril(np.ones((TARGET, TARGET), bool))
    theirs = layer(
        torch.tensor(x),
        torch.tensor(memory),
        tgt_mask=torch.tensor(~causal),
        memory_key_padding_mask=torch.tensor(~valid),
    )
    weights: DecoderLayer = {
        "self_attention": from_torch_attention(layer.self_attn),
        "self_attention_norm": from_torch_norm(layer.norm1),
        "cross_attention": from_torch_attention(layer.multihead_attn),
        "cross_attention_norm": from_torch_norm(layer.norm2),
        "feed_forward": {
            "inner": from_torch_linear(layer.linear1.weight, layer.linear1.bias),
            "outer": from_torch_linear(layer.linear2.weight, layer.linear2.bias),
        },
        "feed_forward_norm": from_torch_norm(layer.norm3),
    }
    for row in range(BATCH):
        cross = np.array([valid[row]] * TARGET)
        ours = decoder_layer(
            x[row],
            memory[row],
            causal,
            cross,
            weights,
            Setting(order=order),
        )
        np.testing.assert_allclose(ours, theirs[row].detach().numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_attention_with_d_v_other_than_d_k_is_torch_s():
    query, key, value = random(4, 3), random(5, 3, seed=1), random(5, 7, seed=2)
    mask = np.random.default_rng(0).random((4, 5)) < 0.6
    mask[:, 2] = True
    theirs = torch.nn.functional.scaled_dot_product_attention(
        *(torch.tensor(x)[None] for x in (query, key, value)), attn_mask=torch.tensor(mask)
    )
    np.testing.assert_allclose(attend(query, key, value, mask), theirs[0].numpy(), rtol=TOLERANCE, atol=TOLERANCE)


def test_a_query_with_nothing_to_attend_to_is_zero():
    mask = np.array([[True, False, True], [False, False, False]])
    result = attend(random(2, 5), random(3, 5), random(3, 4), mask)
    assert (result[1] == 0).all()
    assert (result[0] != 0).all()


@pytest.mark.parametrize("name", ["relu", "gelu", "gelu_tanh", "silu"])
def test_an_activation_is_torch_s(name):
    x = 3 * random(7, 5)
    functional = torch.nn.functional
    theirs = {
        "relu": functional.relu,
        "gelu": functional.gelu,
        "gelu_tanh": lambda v: functional.gelu(v, approximate="tanh"),
        "silu": functional.silu,
    }[name](torch.tensor(x))
    np.testing.assert_allclose(activate(x, name), theirs.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("norm", ["layer", "rms"])
def test_a_norm_is_torch_s(norm):
    x, scale, bias = random(4, 5), random(5), random(5, seed=1)
    if norm == "layer":
        weights = Norm(scale=scale, bias=bias)
        theirs = torch.nn.functional.layer_norm(torch.tensor(x), [5], torch.tensor(scale), torch.tensor(bias), eps=1e-3)
    else:
        weights = Norm(scale=scale)
        theirs = torch.nn.functional.rms_norm(torch.tensor(x), [5], torch.tensor(scale), eps=1e-3)
    ours = normalise(x, weights, Setting(norm=norm, epsilon=1e-3))
    np.testing.assert_allclose(ours, theirs.numpy(), rtol=TOLERANCE, atol=TOLERANCE)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_cross_entropy_is_torch_s(smoothing):
    logits, target = random(BATCH, TARGET, VOCAB), np.random.default_rng(0).integers(0, VOCAB, (BATCH, TARGET))
    real = np.array([[True] * 4, [True, False, False, False], [True, True, True, False]])
    theirs = torch.nn.functional.cross_entropy(
        torch.tensor(logits).reshape(-1, VOCAB),
        torch.tensor(np.where(real, target, -100)).reshape(-1),
        label_smoothing=smoothing,
    )
    assert cross_entropy(logits, target, real, smoothing) == pytest.approx(float(theirs), abs=TOLERANCE)


def test_sinusoids_are_the_paper_s_numbers():
    """d_model 4 has wavelengths 2π and 2π * 100; d_model 5 has frequencies 1, 10000^-0.4, 10000^-0.8."""
    s, c = math.sin, math.cos
    np.testing.assert_allclose(
        sinusoid(4, 4, "interleaved")[3], [s(3), c(3), s(0.03), c(0.03)], rtol=TOLERANCE, atol=TOLERANCE
    )
    np.testing.assert_allclose(
        sinusoid(4, 4, "halves")[3], [s(3), s(0.03), c(3), c(0.03)], rtol=TOLERANCE, atol=TOLERANCE
    )
    slow, slowest = 2 * 10**-1.6, 2 * 10**-3.2
    np.testing.assert_allclose(
        sinusoid(3, 5, "interleaved")[2],
        [s(2), c(2), s(slow), c(slow), s(slowest)],
        rtol=TOLERANCE,
        atol=TOLERANCE,
    )
    np.testing.assert_allclose(
        sinusoid(3, 5, "halves")[2], [s(2), s(slow), s(slowest), c(2), c(slow)], rtol=TOLERANCE, atol=TOLERANCE
    )


def test_noam_rises_to_its_warmup_and_falls_by_the_root():
    """The paper's base model: d_model 512, warmup 4000, so the peak is 1 / √(512 * 4000) = 6.9877e-4."""
    assert noam(4000, 512, 4000) == pytest.approx(6.987712429686843e-4, rel=1e-12)
    assert noam(1, 512, 4000) == pytest.approx(noam(4000, 512, 4000) / 4000, rel=1e-12)
    assert noam(16000, 512, 4000, factor=2.0) == pytest.approx(noam(4000, 512, 4000), rel=1e-12)
