"""The paired bootstrap: a better system is found to be one, an equal one is not, and the draws are sacreBLEU's."""

import random

import pytest

from plainformer.errors import InputError
from plainformer.evaluate import score_translations
from plainformer.evaluate.significance import paired_bootstrap

WORDS = ["ein", "hund", "läuft", "über", "die", "wiese", "und", "bellt", "katze", "haus"]
REFERENCES = [" ".join(random.Random(seed).choices(WORDS, k=9)) for seed in range(60)]


def worse(lines: list[str], every: int) -> list[str]:
    """With the last word gone in every so many sentences."""
    return [line.rpartition(" ")[0] if at % every == 0 else line for at, line in enumerate(lines)]


def test_a_better_system_has_a_small_p_value() -> None:
    found = paired_bootstrap(worse(REFERENCES, 2), REFERENCES, REFERENCES, samples=200)
    assert found.p_value < 0.05
    expected = 100.0 - score_translations(worse(REFERENCES, 2), REFERENCES).bleu
    assert found.difference == pytest.approx(expected)
    assert found.samples == 200
    assert "bs:200|seed:12345" in found.signature


def test_equal_systems_do_not_differ() -> None:
    same = worse(REFERENCES, 3)
    found = paired_bootstrap(same, same, REFERENCES, samples=200)
    assert found.difference == 0.0
    assert found.p_value == 1.0


def test_systems_that_err_as_often_do_not_differ() -> None:
    found = paired_bootstrap(worse(REFERENCES, 5), worse(REFERENCES[::-1], 5)[::-1], REFERENCES, samples=200)
    assert found.p_value > 0.05


def test_the_draws_are_the_same_each_time() -> None:
    pair = worse(REFERENCES, 5), worse(REFERENCES[::-1], 5)[::-1]
    assert paired_bootstrap(*pair, REFERENCES, samples=100) == paired_bootstrap(*pair, REFERENCES, samples=100)


@pytest.mark.parametrize("counts", [(2, 3, 3), (3, 2, 3), (3, 3, 2), (0, 0, 0)])
def test_what_is_not_paired_is_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(InputError, match="translations, and"):
        paired_bootstrap(*(["ein"] * count for count in counts))
