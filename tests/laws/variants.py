"""Configurations that together take every option of their class; all sizes within one are distinct."""

from dataclasses import replace

from plainformer.equations.rope_scaling import RopeScaling
from plainformer.models import EncoderConfig, LanguageModelConfig, TransformerConfig

# max_len is more than any test's sequence, and only learned positions are bound by it.
PAPER = TransformerConfig(
    source_vocab=19, target_vocab=19, d_model=12, d_ff=23, heads=2, encoder_layers=1, decoder_layers=2,
    max_len=14, tie="three-way", pad_vocab_to=8,
)  # fmt: skip
APART = replace(PAPER, source_vocab=17, tie="none", decoder_layers=1, pad_vocab_to=1)

VARIANTS = {
    "the paper": PAPER,
    "pre-norm, learned positions": replace(
        APART, norm_position="pre", position="learned", activation="gelu_tanh", tie="target-output",
        bias_in="attention",
    ),
    "pre-norm rms, gated silu without bias": replace(
        PAPER, norm="rms", norm_position="pre", sinusoidal_order="half", activation="silu", gated=True, bias=False,
        d_k=4, d_v=9, decoder_layers=1, pad_vocab_to=1,
    ),
    "post-norm rms, gelu, nothing tied": replace(
        APART, norm="rms", sinusoidal_order="half", activation="gelu", heads=3, pad_vocab_to=8, bias_in="feed_forward",
        norm_eps=1e-3,
    ),
    "source tied to target, gated relu": replace(
        PAPER, position="learned", gated=True, tie="source-target", d_k=5, d_v=3, decoder_layers=1,
    ),
    "odd d_model, unscaled embeddings": replace(
        APART, norm_position="pre", d_model=11, d_k=3, d_v=4, scale_embeddings=False, encoder_layers=2,
    ),
    "d_k above d_v, gated gelu without bias": replace(
        APART, sinusoidal_order="half", activation="gelu_tanh", gated=True, bias=False, heads=3, d_k=9, d_v=4,
        tie="target-output", pad_vocab_to=8,
    ),
    "one head, learned positions": replace(
        PAPER, norm="rms", norm_position="pre", position="learned", activation="silu", heads=1, d_k=13, d_v=8,
        tie="source-target", decoder_layers=1, pad_vocab_to=1,
    ),
    "alibi, pre-norm rms, three heads, biases of queries, keys and values": replace(
        APART, position="alibi", norm="rms", norm_position="pre", activation="gelu", heads=3, decoder_layers=2,
        bias_in="query_key_value",
    ),
    "marian: sines before cosines, silu, a bias of every logit, started from zero": replace(
        PAPER, sinusoidal_order="half", activation="silu", output_bias=True, decoder_start="zero", decoder_layers=1,
    ),
}  # fmt: skip

GPT = LanguageModelConfig(vocab=19, d_model=12, d_ff=23, heads=2, layers=2, context=14, pad_vocab_to=8)
ALONE = replace(GPT, vocab=17, layers=1, tie=False, pad_vocab_to=1)

LANGUAGE_VARIANTS = {
    "gpt": GPT,
    "the paper's decoder": replace(
        GPT, norm_position="post", position="sinusoidal", activation="relu", scale_embeddings=True, norm_eps=1e-3,
    ),
    "rotary, grouped, gated silu without bias": replace(
        GPT, position="rotary", norm="rms", activation="silu", gated=True, bias=False, heads=4, kv_heads=2, d_k=6,
        d_v=5, pad_vocab_to=1,
    ),
    "odd d_model, one key and value for all, sines before cosines": replace(
        ALONE, position="sinusoidal", sinusoidal_order="half", activation="gelu", d_model=11, heads=3, kv_heads=1,
        d_k=3, d_v=4, bias_in="feed_forward",
    ),
    "post-norm rms, rotary in the plane, one head": replace(
        ALONE, position="rotary", rope_theta=7.0, norm="rms", norm_position="post", heads=1, d_k=2, d_v=9,
        pad_vocab_to=8, bias_in="attention",
    ),
    "alibi, grouped, gated": replace(
        GPT, position="alibi", gated=True, activation="silu", heads=4, kv_heads=2, d_k=5, d_v=6, pad_vocab_to=1,
    ),
    "alibi, post-norm, three heads, biases of queries, keys and values": replace(
        ALONE, position="alibi", norm_position="post", heads=3, bias_in="query_key_value",
    ),
    "rotary slowed down for a longer context": replace(
        GPT, position="rotary", rope_theta=50.0, d_k=10, rope_scaling=RopeScaling(8.0, 1.0, 4.0, 9), layers=1,
    ),
}  # fmt: skip

BERT = EncoderConfig(vocab=19, d_model=12, d_ff=23, heads=2, layers=2, context=14, pad_vocab_to=8)
SMALL = replace(BERT, vocab=17, layers=1, tie=False, pad_vocab_to=1)

ENCODER_VARIANTS = {
    "bert": BERT,
    "the paper's encoder": replace(
        SMALL, position="sinusoidal", activation="relu", scale_embeddings=True, tie=True, d_k=4, d_v=9,
        bias_in="attention", norm_eps=1e-3,
    ),
    "rotary, pre-norm rms, grouped, gated silu without bias": replace(
        BERT, position="rotary", norm="rms", norm_position="pre", activation="silu", gated=True, bias=False, heads=4,
        kv_heads=2, d_k=6, d_v=5, pad_vocab_to=1, rope_scaling=RopeScaling(8.0, 1.0, 4.0, 9),
    ),
    "pre-norm, odd d_model, one key and value for all, sines before cosines": replace(
        SMALL, norm_position="pre", position="sinusoidal", sinusoidal_order="half", activation="gelu_tanh", d_model=11,
        heads=3, kv_heads=1, d_k=3, d_v=4, pad_vocab_to=8, bias_in="feed_forward",
    ),
    "alibi, three heads, biases of queries, keys and values": replace(
        SMALL, position="alibi", heads=3, pooling="first", bias_in="query_key_value",
    ),
    "bert's checkpoints: types, norm of the embeddings, transform, output bias, first token": replace(
        BERT, token_types=3, embedding_norm=True, mlm_transform=True, output_bias=True, pooling="first",
        add_cls_sep=True,
    ),
}  # fmt: skip
