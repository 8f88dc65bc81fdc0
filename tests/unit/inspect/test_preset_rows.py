"""The rows of `plainformer info --presets`, and the vocabulary that explains the paper's counts."""

import pytest

from plainformer.inspect.presets import VARIATIONS, fit_vocabulary, preset_row
from plainformer.models.presets import PRESETS


def test_a_row_shows_the_shape_and_the_count() -> None:
    row = preset_row("paper-b-dk16")
    assert row[:9] == ("paper-b-dk16", "encoder-decoder", "6+6", 512, 2048, 8, 16, 64, 37_000)
    assert (row.parameters, row.millions) == (56_019_456, 58)
    assert row.departure == pytest.approx(-0.034147, abs=1e-6)
    assert preset_row("gpt2")[1:3] == ("decoder", "12")
    assert preset_row("gpt2").departure is None


def test_a_row_of_an_encoder_shows_the_encoder_alone() -> None:
    """By hand: 1,024 rows and 10 positions of 64; twice an attention, a feed-forward and two norms; the table is also
    the output projection."""
    row = preset_row("jab-encoder")
    assert row[:9] == ("jab-encoder", "encoder", "2", 64, 256, 4, 16, 16, 1_000)
    layer = 4 * (64 * 64 + 64) + (64 * 256 + 256 + 256 * 64 + 64) + 2 * (2 * 64)
    assert row.parameters == (1_024 + 10) * 64 + 2 * layer == 166_144
    assert row.departure is None


def test_a_row_takes_another_vocabulary() -> None:
    """40,953 tokens have 62 · 64 rows more than 37,000 have."""
    more, less = preset_row("paper-c-d256", 40_953), preset_row("paper-c-d256")
    assert more.vocab == 40_953
    assert more.parameters - less.parameters == (40_960 - 37_056) * 256


def test_the_rows_that_vary_the_base_model_are_the_papers() -> None:
    assert [PRESETS[name].millions for name in VARIATIONS] == [65, 58, 60, 36, 50, 80, 28, 168, 53, 90]


def test_one_row_is_fitted_exactly() -> None:
    """By hand: the base model's 44,138,496 other parameters leave 20,861,504 of 65 million to 512 columns."""
    assert fit_vocabulary(["paper-base"]) == (40_745, 39_769, 41_721)


def test_two_rows_are_fitted_by_least_squares() -> None:
    """By hand: rests of 44,138,496 and 17,362,944; (512 · 20,861,504 + 256 · 10,637,056) / (512² + 256²)."""
    fit = fit_vocabulary(["paper-base", "paper-c-d256"])
    assert fit.vocab == round((512 * 20_861_504 + 256 * 10_637_056) / (512**2 + 256**2)) == 40_906
    # From 27.5 to 28.5 million at 256 columns, from 64.5 to 65.5 at 512.
    assert (fit.least, fit.most) == (39_769, 41_721)


def test_one_vocabulary_explains_every_variation_of_the_base_model() -> None:
    fit = fit_vocabulary()
    assert fit == (40_953, 40_932, 41_160)
    for name in VARIATIONS:
        row = preset_row(name, fit.vocab)
        assert round(row.parameters / 1e6) == row.millions, name


def test_no_vocabulary_explains_big_and_the_others() -> None:
    fit = fit_vocabulary([*VARIATIONS, "paper-big"])
    assert fit.least > fit.most
