"""Named shapes. Each is what differs from its class's defaults, so that a reader sees the difference alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from plainformer.models.config import EncoderConfig, LanguageModelConfig, TransformerConfig


@dataclass(frozen=True)
class Preset:
    """A shape without its vocabulary, which is the data's.

    config: the class of its configuration, and so the kind of model.
    values: what differs from that class's defaults.
    vocab: tokens to assume where parameters are counted and none are given.
    about: where it is from, what is not stated there, and what of it belongs to training rather than to the shape.
    millions: the parameters that the paper's Table 3 gives, rounded to a million; None where it gives none.
    """

    config: type[TransformerConfig] | type[LanguageModelConfig] | type[EncoderConfig]
    values: Mapping[str, Any]
    vocab: int
    about: str
    millions: int | None = None

    def make(self, vocab: int | None = None) -> TransformerConfig | LanguageModelConfig | EncoderConfig:
        """The configuration for `vocab` tokens, of source and target alike.

        Raises:
            InputError: there is no such vocabulary.
        """
        tokens = self.vocab if vocab is None else vocab
        names = ("source_vocab", "target_vocab") if self.config is TransformerConfig else ("vocab",)
        return self.config.from_dict(dict.fromkeys(names, tokens) | dict(self.values), where="preset")


# Section 5.1: "a shared source-target vocabulary of about 37000 tokens".
WMT14 = 37_000


def _row(label: str, values: Mapping[str, Any], millions: int | None = None) -> Preset:
    return Preset(TransformerConfig, values, WMT14, f"Table 3, {label}", millions)


PRESETS: dict[str, Preset] = {
    # Table 3 of the paper. A row's blanks are the base model's, and d_k = d_v = d_model / heads where nothing is said.
    "paper-base": _row("base; Noam with 4,000 steps of warmup, label smoothing 0.1, 100,000 steps", {}, 65),
    "paper-a-h1": _row("row (A): one head of 512", {"heads": 1}),
    "paper-a-h4": _row("row (A): four heads of 128", {"heads": 4}),
    "paper-a-h16": _row("row (A): sixteen heads of 32", {"heads": 16}),
    "paper-a-h32": _row("row (A): thirty-two heads of 16", {"heads": 32}),
    "paper-b-dk16": _row("row (B): narrow keys", {"d_k": 16}, 58),
    "paper-b-dk32": _row("row (B): narrow keys", {"d_k": 32}, 60),
    "paper-c-n2": _row("row (C): fewer layers", {"encoder_layers": 2, "decoder_layers": 2}, 36),
    "paper-c-n4": _row("row (C): fewer layers", {"encoder_layers": 4, "decoder_layers": 4}, 50),
    "paper-c-n8": _row("row (C): more layers", {"encoder_layers": 8, "decoder_layers": 8}, 80),
    "paper-c-d256": _row("row (C): a narrow stream", {"d_model": 256}, 28),
    "paper-c-d1024": _row("row (C): a wide stream", {"d_model": 1024}, 168),
    "paper-c-ff1024": _row("row (C): a narrow feed-forward", {"d_ff": 1024}, 53),
    "paper-c-ff4096": _row("row (C): a wide feed-forward", {"d_ff": 4096}, 90),
    "paper-d-dropout0.0": _row(
        "row (D): no dropout; the other rows (D) change label smoothing alone", {"dropout": 0.0}
    ),
    "paper-d-dropout0.2": _row("row (D): more dropout", {"dropout": 0.2}),
    "paper-e-learned": _row("row (E): learned positions, of which it does not say how many", {"position": "learned"}),
    "paper-big": _row(
        "big; 300,000 steps, the last 20 checkpoints averaged",
        {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
        213,
    ),
    "tiny": Preset(
        TransformerConfig,
        {"d_model": 128, "d_ff": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
        10_000,
        "Multi30k's 29,000 sentences on a laptop (Wu et al. 2021)",
    ),
    "gpt2": Preset(
        LanguageModelConfig, {}, 50_257, "the smallest GPT-2 (Radford et al. 2019), 124M; its own byte-level BPE"
    ),
    "llama-7b": Preset(
        LanguageModelConfig,
        {"d_model": 4096, "d_ff": 11_008, "heads": 32, "layers": 32, "context": 2048, "dropout": 0.0}
        | {"position": "rotary", "norm": "rms", "activation": "silu", "gated": True, "bias": False, "tie": False},
        32_000,
        "the smallest LLaMA (Touvron et al. 2023), for plans (plainformer plan llama-7b)",
    ),
    # The tutorials that this project grew from, as they were meant: docs/tutorials.md.
    "annotated": Preset(
        TransformerConfig, {}, WMT14, "a tutorial's encoder-decoder: the paper's, with absolute (sinusoidal) positions"
    ),
    "laid-out": Preset(
        TransformerConfig, {}, WMT14, "a tutorial's translator: the base model; Noam, label smoothing 0.1"
    ),
    "jab-encoder": Preset(
        EncoderConfig,
        {"d_model": 64, "d_ff": 256, "heads": 4, "layers": 2, "context": 10},
        1_000,
        "a tutorial's encoder: sequences of 10, batches of 32; layers, heads, d_ff and vocabulary are our choice",
    ),
    "gpt-scratch": Preset(
        LanguageModelConfig,
        {"d_model": 512, "d_ff": 2048, "heads": 16, "layers": 24, "context": 256, "activation": "relu"},
        1_000,
        "a tutorial's GPT: characters or BPE of 1,000, top-k sampling; d_ff is our choice",
    ),
    "learning": Preset(
        LanguageModelConfig,
        {"d_model": 4096, "d_ff": 16_384, "heads": 32, "position": "sinusoidal", "scale_embeddings": True},
        50_257,
        "a tutorial's decoder on GPT-2's BPE; layers, heads and d_ff are our choice",
    ),
}
