"""What the oracle computes with: weights as nested dictionaries of float64 arrays.

Every matrix is (d_in, d_out) and multiplies from the right: x W + b.
An entry marked "may be absent" means what the line says when it is not there.

    linear         weight (d_in, d_out); bias (d_out,), may be absent: none is added
    norm           scale (d_model,);     bias (d_model,), may be absent: none is added
    head           query linear(d_model, d_k); key linear(d_model, d_k); value linear(d_model, d_v)
    attention      heads [head, ...] in the order they are concatenated; output linear(heads * d_v, d_model)
    feed_forward   plain: inner linear(d_model, d_ff), outer linear(d_ff, d_model)
                   gated: gate and up, both linear(d_model, d_ff), and down linear(d_ff, d_model)
    encoder layer  attention, attention_norm, feed_forward, feed_forward_norm
    decoder layer  self_attention, self_attention_norm, cross_attention, cross_attention_norm,
                   feed_forward, feed_forward_norm
    transformer    target_embedding (target_vocab, d_model)
                   source_embedding (source_vocab, d_model), may be absent: the target's table is shared
                   source_position, target_position (max_len, d_model): only for learned positions
                   encoder [encoder layer, ...]; decoder [decoder layer, ...]
                   encoder_norm, decoder_norm: the final norms of the pre-norm stacks; may be absent: none is applied
                   output linear(d_model, target_vocab), may be absent: the target embedding, transposed
    language model embedding (vocab, d_model); position (context, d_model): only for learned positions
                   layers [encoder layer, ...]; norm: the final norm of a pre-norm stack; may be absent
                   output linear(d_model, vocab), may be absent: the embedding, transposed
                   Heads that share a key and a value each hold their own copy of its weights.
    masked language model   as the language model
    classifier     as the language model, but for the output: linear(d_model, labels), never absent
"""

from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ids = NDArray[np.integer]
Mask = NDArray[np.bool_]


class Linear(TypedDict):
    weight: Floats
    bias: NotRequired[Floats]


class Norm(TypedDict):
    scale: Floats
    bias: NotRequired[Floats]


class Head(TypedDict):
    query: Linear
    key: Linear
    value: Linear


class Attention(TypedDict):
    heads: list[Head]
    output: Linear


class PlainFeedForward(TypedDict):
    inner: Linear
    outer: Linear


class GatedFeedForward(TypedDict):
    gate: Linear
    up: Linear
    down: Linear


FeedForward = PlainFeedForward | GatedFeedForward


class EncoderLayer(TypedDict):
    attention: Attention
    attention_norm: Norm
    feed_forward: FeedForward
    feed_forward_norm: Norm


class DecoderLayer(TypedDict):
    self_attention: Attention
    self_attention_norm: Norm
    cross_attention: Attention
    cross_attention_norm: Norm
    feed_forward: FeedForward
    feed_forward_norm: Norm


class Weights(TypedDict):
    target_embedding: Floats
    source_embedding: NotRequired[Floats]
    source_position: NotRequired[Floats]
    target_position: NotRequired[Floats]
    encoder: list[EncoderLayer]
    decoder: list[DecoderLayer]
    encoder_norm: NotRequired[Norm]
    decoder_norm: NotRequired[Norm]
    output: NotRequired[Linear]


class LanguageWeights(TypedDict):
    embedding: Floats
    position: NotRequired[Floats]
    layers: list[EncoderLayer]
    norm: NotRequired[Norm]
    output: NotRequired[Linear]
