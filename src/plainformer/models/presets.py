"""Named shapes. Each is what differs from the paper's base model, so that a reader sees the difference alone."""

from typing import Any

PRESETS: dict[str, dict[str, Any]] = {
    # Table 3, row "base": 6+6 layers, d_model 512, d_ff 2048, 8 heads, dropout 0.1; 37,000 joint BPE tokens.
    "paper-base": {},
    # Table 3, row "big".
    "paper-big": {"d_model": 1024, "d_ff": 4096, "heads": 16, "dropout": 0.3},
    # Small enough for 30,000 sentences and a laptop (Wu et al. 2021 use this shape for Multi30k).
    "tiny": {"d_model": 128, "d_ff": 256, "heads": 4, "encoder_layers": 4, "decoder_layers": 4, "dropout": 0.3},
}
