"""Every preset has the shape that its source states, and the parameters that a formula, written apart, gives it."""

import math
from typing import NamedTuple

import pytest

from plainformer.errors import InputError
from plainformer.inspect.count import count
from plainformer.models import EncoderConfig, LanguageModelConfig, Preset, TransformerConfig
from plainformer.models.presets import PRESETS


class Table3(NamedTuple):
    """A row of the paper's Table 3, its blanks filled in from the row "base"."""

    n: int
    d_model: int
    d_ff: int
    h: int
    d_k: int
    d_v: int
    dropout: float
    millions: int | None


TABLE_3 = {
    #                               N  d_model  d_ff   h  d_k  d_v  P_drop  params
    "paper-base":         Table3(   6,     512, 2048,  8,  64,  64,    0.1,     65),
    "paper-a-h1":         Table3(   6,     512, 2048,  1, 512, 512,    0.1,   None),
    "paper-a-h4":         Table3(   6,     512, 2048,  4, 128, 128,    0.1,   None),
    "paper-a-h16":        Table3(   6,     512, 2048, 16,  32,  32,    0.1,   None),
    "paper-a-h32":        Table3(   6,     512, 2048, 32,  16,  16,    0.1,   None),
    "paper-b-dk16":       Table3(   6,     512, 2048,  8,  16,  64,    0.1,     58),
    "paper-b-dk32":       Table3(   6,     512, 2048,  8,  32,  64,    0.1,     60),
    "paper-c-n2":         Table3(   2,     512, 2048,  8,  64,  64,    0.1,     36),
    "paper-c-n4":         Table3(   4,     512, 2048,  8,  64,  64,    0.1,     50),
    "paper-c-n8":         Table3(   8,     512, 2048,  8,  64,  64,    0.1,     80),
    "paper-c-d256":       Table3(   6,     256, 2048,  8,  32,  32,    0.1,     28),
    "paper-c-d1024":      Table3(   6,    1024, 2048,  8, 128, 128,    0.1,    168),
    "paper-c-ff1024":     Table3(   6,     512, 1024,  8,  64,  64,    0.1,     53),
    "paper-c-ff4096":     Table3(   6,     512, 4096,  8,  64,  64,    0.1,     90),
    "paper-d-dropout0.0": Table3(   6,     512, 2048,  8,  64,  64,    0.0,   None),
    "paper-d-dropout0.2": Table3(   6,     512, 2048,  8,  64,  64,    0.2,   None),
    "paper-e-learned":    Table3(   6,     512, 2048,  8,  64,  64,    0.1,   None),
    "paper-big":          Table3(   6,    1024, 4096, 16,  64,  64,    0.3,    213),
}  # fmt: skip
BASE = TABLE_3["paper-base"]


def shape_of(preset: Preset) -> Table3:
    config = preset.make()
    assert isinstance(config, TransformerConfig)
    assert config.encoder_layers == config.decoder_layers
    widths = config.d_model, config.d_ff, config.heads, config.key_width, config.value_width
    return Table3(config.encoder_layers, *widths, config.dropout, preset.millions)


@pytest.mark.parametrize("name", TABLE_3)
def test_a_preset_is_its_row_of_table_3(name: str) -> None:
    assert shape_of(PRESETS[name]) == TABLE_3[name]
    config = PRESETS[name].make()
    assert isinstance(config, TransformerConfig)
    assert config.position == ("learned" if name == "paper-e-learned" else "sinusoidal")
    # What all rows share: section 3.1's post-norm, 3.3's ReLU, 3.4's one scaled table, 5.1's vocabulary.
    shared = config.norm, config.norm_position, config.activation, config.tie, config.scale_embeddings
    assert shared == ("layer", "post", "relu", "three-way", True)
    assert (config.source_vocab, config.target_vocab) == (37_000, 37_000)


def test_every_row_of_table_3_that_changes_the_model_is_a_preset() -> None:
    """All but the two of (D) that change the loss, which are the base model."""
    assert {name for name in PRESETS if name.startswith("paper-")} == set(TABLE_3)


# ---------------------------------------------------------------------------------------------------------------------
# Parameters by hand
# ---------------------------------------------------------------------------------------------------------------------


def attention(d_model: int, heads: int, d_k: int, d_v: int) -> int:
    """Query, key, value and output, each a matrix and a bias."""
    into = 2 * (d_model * heads * d_k + heads * d_k) + d_model * heads * d_v + heads * d_v
    return into + heads * d_v * d_model + d_model


def feed_forward(d_model: int, d_ff: int) -> int:
    return d_model * d_ff + d_ff + d_ff * d_model + d_model


def norm(d_model: int) -> int:
    """Scale and bias."""
    return 2 * d_model


def encoder_decoder(rows: int, n: int, d_model: int, d_ff: int, h: int, d_k: int, d_v: int) -> int:
    """One table; one attention, one feed-forward and two norms a layer of the encoder, one more of its first and last
    in the decoder's."""
    look, think, level = attention(d_model, h, d_k, d_v), feed_forward(d_model, d_ff), norm(d_model)
    return rows * d_model + n * (look + think + 2 * level) + n * (2 * look + think + 3 * level)


def encoder(rows: int, positions: int, layers: int, d_model: int, d_ff: int, h: int) -> int:
    """Post-norm: a table of tokens and one of positions; layers of one attention, one feed-forward, two norms."""
    layer = attention(d_model, h, d_model // h, d_model // h) + feed_forward(d_model, d_ff) + 2 * norm(d_model)
    return (rows + positions) * d_model + layers * layer


def decoder(rows: int, positions: int, layers: int, d_model: int, d_ff: int, h: int) -> int:
    """Pre-norm: the same, and a last norm."""
    return encoder(rows, positions, layers, d_model, d_ff, h) + norm(d_model)


# 37,000 tokens are padded to 579 · 64 = 37,056 rows, 10,000 to 10,048, 1,000 to 1,024, GPT-2's to 786 · 64 = 50,304.
BY_HAND = (
    {name: encoder_decoder(37_056, *row[:6]) for name, row in TABLE_3.items()}
    | {
        "paper-e-learned": encoder_decoder(37_056, *BASE[:6]) + 512 * 512,  # 512 positions
        "tiny": encoder_decoder(10_048, 4, 128, 256, 4, 32, 32),
        "gpt2": decoder(50_304, 1024, 12, 768, 3072, 12),
        # Two tables; q, k, v and output, three maps of the gated feed-forward, two scales a layer; and a last one.
        "llama-7b": 2 * 32_000 * 4096 + 32 * (4 * 4096**2 + 3 * 4096 * 11_008 + 2 * 4096) + 4096,
        "annotated": encoder_decoder(37_056, *BASE[:6]),
        "laid-out": encoder_decoder(37_056, *BASE[:6]),
        "jab-encoder": encoder(1_024, 10, 2, 64, 256, 4),
        "gpt-scratch": decoder(1_024, 256, 24, 512, 2048, 16),
        "learning": decoder(50_304, 0, 12, 4096, 16_384, 32),
    }
)


@pytest.mark.parametrize("name", BY_HAND)
def test_a_preset_has_the_parameters_worked_out_by_hand(name: str) -> None:
    """Without allocating: `learning` would need 10 GB."""
    assert count(PRESETS[name].make()) == BY_HAND[name]


def test_the_formula_knows_the_sizes_that_are_known() -> None:
    """GPT-2's 124,439,808, with a row a token; the base model's, worked out in tests/cli/test_info.py; and LLaMA's."""
    assert decoder(50_257, 1024, 12, 768, 3072, 12) == 124_439_808
    assert BY_HAND["gpt2"] == 124_439_808 + 47 * 768
    assert BY_HAND["paper-base"] == 63_111_168
    assert BY_HAND["llama-7b"] == 6_738_415_616


def test_every_preset_is_worked_out_by_hand() -> None:
    assert set(PRESETS) == set(BY_HAND)


# ---------------------------------------------------------------------------------------------------------------------
# The shapes of the others
# ---------------------------------------------------------------------------------------------------------------------


def test_gpt2_is_the_smallest_of_its_paper() -> None:
    config = PRESETS["gpt2"].make()
    assert config == LanguageModelConfig(
        vocab=50_257, context=1024, layers=12, d_model=768, d_ff=3072, heads=12, norm_position="pre",
        position="learned", activation="gelu_tanh", tie=True, scale_embeddings=False, bias=True, dropout=0.1,
    )  # fmt: skip
    assert config.rows(50_257) == 50_304


def test_the_encoder_decoders_of_tutorials_are_the_papers() -> None:
    for name in ("annotated", "laid-out"):
        assert PRESETS[name].make() == PRESETS["paper-base"].make()


def test_jab_encoder_is_a_small_encoder_with_gelu() -> None:
    config = PRESETS["jab-encoder"].make()
    assert isinstance(config, EncoderConfig)
    assert (config.d_model, config.context, config.activation, config.labels) == (64, 10, "gelu", ())
    assert (config.layers, config.heads, config.key_width, config.d_ff) == (2, 4, 16, 256)


def test_gpt_scratch_is_a_deep_narrow_decoder_with_relu() -> None:
    config = PRESETS["gpt-scratch"].make()
    assert isinstance(config, LanguageModelConfig)
    assert (config.layers, config.d_model, config.heads, config.d_ff) == (24, 512, 16, 2048)
    assert (config.norm_position, config.position, config.activation) == ("pre", "learned", "relu")
    assert (config.context, config.vocab) == (256, 1_000)


def test_learning_is_a_wide_decoder_with_sinusoids() -> None:
    config = PRESETS["learning"].make()
    assert isinstance(config, LanguageModelConfig)
    assert (config.d_model, config.position, config.vocab) == (4096, "sinusoidal", 50_257)
    assert config.scale_embeddings  # beside sinusoids, which are of order 1 (section 3.4)


# ---------------------------------------------------------------------------------------------------------------------
# All of them
# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_says_what_differs_and_what_it_is(name: str) -> None:
    preset = PRESETS[name]
    made, plain = (preset.make().to_dict(), Preset(preset.config, {}, preset.vocab, "").make().to_dict())
    assert all(made[key] == value and plain[key] != value for key, value in preset.values.items())
    assert 10 < len(preset.about) <= 110
    assert "\n" not in preset.about


def test_another_vocabulary_is_the_only_thing_that_changes() -> None:
    for preset in PRESETS.values():
        made, other = preset.make().to_dict(), preset.make(97).to_dict()
        changed = {key for key in made if made[key] != other[key]}
        assert changed == ({"source_vocab", "target_vocab"} if preset.config is TransformerConfig else {"vocab"})
        assert {other[key] for key in changed} == {97}


def test_a_vocabulary_of_nothing_is_refused() -> None:
    with pytest.raises(InputError, match="source_vocab is 0"):
        PRESETS["tiny"].make(0)


def test_heads_share_the_width_evenly() -> None:
    for preset in PRESETS.values():
        config = preset.make()
        assert config.value_width * config.heads == config.d_model
        assert math.log2(config.key_width).is_integer()
