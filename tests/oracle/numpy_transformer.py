"""The Transformer of "Attention Is All You Need" in float64 NumPy, forward only: the answer the model must give.

Written from the paper alone, without the library's source, and as slowly and plainly as it can be: one sentence at a
time, one head at a time, one position at a time. It shares no code, no layout and no shortcut with what it judges.

How the weights lie is in `numpy_weights.py`; what they do not say is in `Setting`. Masks are boolean, True = may
attend.
"""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy_weights import (
    Attention,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    Floats,
    Ids,
    LanguageWeights,
    Linear,
    Mask,
    Norm,
    Weights,
)

Positions = Literal["interleaved", "halves", "learned", "none"]


@dataclass(frozen=True)
class Setting:
    """The choices that cannot be read off the weights; the defaults are the paper's."""

    order: Literal["post", "pre"] = "post"
    norm: Literal["layer", "rms"] = "layer"
    epsilon: float = 1e-5  # the paper gives none
    position: Positions = "interleaved"
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"
    scale_embedding: bool = True
    rotary_base: float | None = None  # None: queries and keys are not turned
    alibi: bool = False  # whether self-attention has linear biases


# Section 3.4 and 3.5: embeddings and positions


def sinusoid(length: int, d_model: int, order: Literal["interleaved", "halves"]) -> Floats:
    """§3.5: PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos of the same angle. (length, d_model)

    In the "halves" order all the sines come first, then all the cosines. An odd d_model has one more sine than cosine.
    """
    table = np.zeros((length, d_model))
    sines = math.ceil(d_model / 2)
    for position in range(length):
        for index in range(d_model):
            pair = index // 2
            angle = position / 10000 ** (2 * pair / d_model)
            is_sine = index % 2 == 0
            column = index
            if order == "halves":
                column = pair if is_sine else sines + pair
            table[position, column] = math.sin(angle) if is_sine else math.cos(angle)
    return table


def embed(ids: Ids, table: Floats, positions: Floats | None, setting: Setting) -> Floats:
    """§3.4 and §3.5: the token's row, times √d_model, plus the position's row. (seq,) -> (seq, d_model)"""
    d_model = table.shape[1]
    if setting.position == "interleaved" or setting.position == "halves":
        positions = sinusoid(len(ids), d_model, setting.position)
    rows = []
    for place, token in enumerate(ids):
        row = table[token]
        if setting.scale_embedding:
            row = row * math.sqrt(d_model)
        if setting.position != "none":
            assert positions is not None, "learned positions need a table among the weights"
            row = row + positions[place]
        rows.append(row)
    return np.array(rows)


# Section 3.2: attention


def linear(x: Floats, weights: Linear) -> Floats:
    """y = x W + b. (seq, d_in) -> (seq, d_out)"""
    y = x @ weights["weight"]
    if "bias" in weights:
        y = y + weights["bias"]
    return y


def softmax(scores: Floats) -> Floats:
    """exp(s_j) / Σ exp(s_k) of one row of scores. (n,) -> (n,)"""
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


def slopes(heads: int) -> list[float]:
    """Press et al. 2021, section 3: 2^a heads have slopes that begin with 2^(-8/2^a), each that times the one before.

    For other numbers the authors' code takes those of the largest 2^a that is less, and fills up with the first, third,
    fifth … of twice as many heads.
    """
    power = 1
    while 2 * power <= heads:
        power *= 2
    ours, twice = [2 ** (-8 / power)], [2 ** (-8 / (2 * power))]
    while len(ours) < power:
        ours.append(ours[-1] * ours[0])
    while len(twice) < 2 * power:
        twice.append(twice[-1] * twice[0])
    index = 0
    while len(ours) < heads:
        ours.append(twice[index])
        index += 2
    return ours


def attend(query: Floats, key: Floats, value: Floats, mask: Mask, slope: float = 0.0) -> Floats:
    """Equation 1: softmax(Q Kᵀ / √d_k) V, over the keys each query may attend to; zeros where there are none.

    query (q, d_k), key (k, d_k), value (k, d_v), mask (q, k) -> (q, d_v). Every place between a query and a key lowers
    their score by `slope`.
    """
    d_k = query.shape[1]
    result = np.zeros((len(query), value.shape[1]))
    for row in range(len(query)):
        allowed = [column for column in range(len(key)) if mask[row, column]]
        if not allowed:
            continue
        scores = np.array([query[row] @ key[column] / math.sqrt(d_k) - slope * abs(row - column) for column in allowed])
        for probability, column in zip(softmax(scores), allowed, strict=True):
            result[row] += probability * value[column]
    return result


def rotate(x: Floats, base: float) -> Floats:
    """Su et al. 2021, equation 13: the row at place m times e^(i m θ_j), with θ_j = base^(-2j/d_k). (seq, d_k)

    Complex number j has feature j as its real and feature j + d_k/2 as its imaginary part.
    """
    half = x.shape[1] // 2
    numbers = x[:, :half] + 1j * x[:, half:]
    for place in range(len(x)):
        for j in range(half):
            numbers[place, j] *= np.exp(1j * place * base ** (-2 * j / x.shape[1]))
    return np.concatenate([numbers.real, numbers.imag], axis=1)


def self_attention(x: Floats, mask: Mask, weights: Attention, setting: Setting) -> Floats:
    """Attention of a text to itself, with the positions that are not added to its embeddings. (seq, d_model)"""
    found = slopes(len(weights["heads"])) if setting.alibi else None
    return multi_head(x, x, mask, weights, setting.rotary_base, found)


def multi_head(
    x: Floats,
    memory: Floats,
    mask: Mask,
    weights: Attention,
    rotary_base: float | None = None,
    slopes: list[float] | None = None,
) -> Floats:
    """§3.2.2: Concat(head_1, ..., head_h) W^O. x (q, d_model) asks, memory (k, d_model) answers -> (q, d_model)"""
    heads = []
    for index, head in enumerate(weights["heads"]):
        query = linear(x, head["query"])
        key = linear(memory, head["key"])
        value = linear(memory, head["value"])
        if rotary_base is not None:
            query, key = rotate(query, rotary_base), rotate(key, rotary_base)
        heads.append(attend(query, key, value, mask, 0.0 if slopes is None else slopes[index]))
    return linear(np.concatenate(heads, axis=1), weights["output"])


# Section 3.3: the position-wise feed-forward network, and its descendants


def activate(x: Floats, name: Literal["relu", "gelu", "gelu_tanh", "silu"]) -> Floats:
    """ReLU (equation 2), GELU by the error function or by its tanh fit (Hendrycks and Gimpel 2016), SiLU x·σ(x)."""

    def one(v: float) -> float:
        if name == "relu":
            return max(0.0, v)
        if name == "gelu":
            return v * 0.5 * (1 + math.erf(v / math.sqrt(2)))
        if name == "gelu_tanh":
            return 0.5 * v * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        return v / (1 + math.exp(-v))

    return np.array([[one(float(v)) for v in row] for row in x])


def feed_forward(x: Floats, weights: FeedForward, setting: Setting) -> Floats:
    """Equation 2: act(x W_1 + b_1) W_2 + b_2; gated (Shazeer 2020): (act(x W_gate) * (x W_up)) W_down."""
    if "gate" in weights:
        gate = activate(linear(x, weights["gate"]), setting.activation)
        return linear(gate * linear(x, weights["up"]), weights["down"])
    return linear(activate(linear(x, weights["inner"]), setting.activation), weights["outer"])


# Section 3.1: the stacks


def normalise(x: Floats, weights: Norm, setting: Setting) -> Floats:
    """Row by row: LayerNorm (Ba 2016) (x - mean) / √(variance + ε), or RMSNorm (Zhang 2019) x / √(mean of x² + ε)."""
    rows = []
    for row in x:
        if setting.norm == "layer":
            row = row - row.mean()
        # Once the mean is gone the mean square is the variance (divided by n, not n - 1).
        row = row / math.sqrt((row**2).mean() + setting.epsilon) * weights["scale"]
        if "bias" in weights:
            row = row + weights["bias"]
        rows.append(row)
    return np.array(rows)


def encoder_layer(x: Floats, mask: Mask, weights: EncoderLayer, setting: Setting) -> Floats:
    """§3.1: self-attention, then feed-forward, each as Norm(x + Sublayer(x)) or, pre-norm, x + Sublayer(Norm(x))."""
    if setting.order == "post":
        y = self_attention(x, mask, weights["attention"], setting)
        x = normalise(x + y, weights["attention_norm"], setting)
        return normalise(x + feed_forward(x, weights["feed_forward"], setting), weights["feed_forward_norm"], setting)
    y = normalise(x, weights["attention_norm"], setting)
    x = x + self_attention(y, mask, weights["attention"], setting)
    y = normalise(x, weights["feed_forward_norm"], setting)
    return x + feed_forward(y, weights["feed_forward"], setting)


def decoder_layer(
    x: Floats, memory: Floats, self_mask: Mask, cross_mask: Mask, weights: DecoderLayer, setting: Setting
) -> Floats:
    """§3.1: as in the encoder, with attention over the encoder's output between. Pre-norm does not norm the memory."""
    if setting.order == "post":
        y = self_attention(x, self_mask, weights["self_attention"], setting)
        x = normalise(x + y, weights["self_attention_norm"], setting)
        y = multi_head(x, memory, cross_mask, weights["cross_attention"])
        x = normalise(x + y, weights["cross_attention_norm"], setting)
        y = feed_forward(x, weights["feed_forward"], setting)
        return normalise(x + y, weights["feed_forward_norm"], setting)
    y = normalise(x, weights["self_attention_norm"], setting)
    x = x + self_attention(y, self_mask, weights["self_attention"], setting)
    y = normalise(x, weights["cross_attention_norm"], setting)
    x = x + multi_head(y, memory, cross_mask, weights["cross_attention"])
    y = normalise(x, weights["feed_forward_norm"], setting)
    return x + feed_forward(y, weights["feed_forward"], setting)


def encode(source: Ids, source_valid: Mask, weights: Weights, setting: Setting) -> Floats:
    """One source sentence to its memory. source (s,), source_valid (s,) -> (s, d_model)"""
    table = weights.get("source_embedding", weights["target_embedding"])
    x = embed(source, table, weights.get("source_position"), setting)
    mask = np.array([source_valid for _ in source])  # every query sees every real token
    for layer in weights["encoder"]:
        x = encoder_layer(x, mask, layer, setting)
    if "encoder_norm" in weights:
        x = normalise(x, weights["encoder_norm"], setting)
    return x


def decode(memory: Floats, source_valid: Mask, target: Ids, weights: Weights, setting: Setting) -> Floats:
    """One target sentence, read from the left, to logits. memory (s, d_model), target (t,) -> (t, target_vocab)"""
    x = embed(target, weights["target_embedding"], weights.get("target_position"), setting)
    causal = np.array([[key <= query for key in range(len(target))] for query in range(len(target))])
    cross = np.array([source_valid for _ in target])
    for layer in weights["decoder"]:
        x = decoder_layer(x, memory, causal, cross, layer, setting)
    if "decoder_norm" in weights:
        x = normalise(x, weights["decoder_norm"], setting)
    if "output" in weights:
        return linear(x, weights["output"])
    return x @ weights["target_embedding"].T  # §3.4: the same matrix, without the √d_model


def transformer(source: Ids, source_valid: Mask, target: Ids, weights: Weights, setting: Setting) -> Floats:
    """The forward pass, sentence by sentence. source, source_valid (b, s), target (b, t) -> logits (b, t, vocab)"""
    logits = []
    for sentence, valid, prefix in zip(source, source_valid, target, strict=True):
        memory = encode(sentence, valid, weights, setting)
        logits.append(decode(memory, valid, prefix, weights, setting))
    return np.array(logits)


def language_model(ids: Ids, weights: LanguageWeights, setting: Setting) -> Floats:
    """The decoder without a memory (Radford et al. 2018): what comes after each token. ids (b, t) -> (b, t, vocab)"""
    logits = []
    for text in ids:
        x = embed(text, weights["embedding"], weights.get("position"), setting)
        causal = np.array([[key <= query for key in range(len(text))] for query in range(len(text))])
        for layer in weights["layers"]:
            x = encoder_layer(x, causal, layer, setting)
        if "norm" in weights:
            x = normalise(x, weights["norm"], setting)
        output = weights.get("output", {"weight": weights["embedding"].T})
        logits.append(linear(x, output))
    return np.array(logits)


def encoder(ids: Ids, valid: Mask, weights: LanguageWeights, setting: Setting) -> Floats:
    """The encoder alone (Devlin et al. 2019), one text, which sees its real tokens. ids, valid (t,) -> (t, d_model)"""
    x = embed(ids, weights["embedding"], weights.get("position"), setting)
    mask = np.array([valid for _ in ids])
    for layer in weights["layers"]:
        x = encoder_layer(x, mask, layer, setting)
    if "norm" in weights:
        x = normalise(x, weights["norm"], setting)
    return x


def masked_language_model(ids: Ids, valid: Mask, weights: LanguageWeights, setting: Setting) -> Floats:
    """Which token stands at each place, by all that is seen. ids, valid (b, t) -> logits (b, t, vocab)"""
    output = weights.get("output", {"weight": weights["embedding"].T})
    return np.array(
        [linear(encoder(text, real, weights, setting), output) for text, real in zip(ids, valid, strict=True)]
    )


def classifier(ids: Ids, valid: Mask, weights: LanguageWeights, setting: Setting) -> Floats:
    """The mean of a text's hidden states, projected; of no token it is zero. ids, valid (b, t) -> logits (b, labels)"""
    assert "output" in weights
    logits = []
    for text, real in zip(ids, valid, strict=True):
        states = encoder(text, real, weights, setting)
        total, count = np.zeros(states.shape[1]), 0
        for place in range(len(text)):
            if real[place]:
                total, count = total + states[place], count + 1
        mean = total / count if count else total
        logits.append(linear(mean[None], weights["output"])[0])
    return np.array(logits)
