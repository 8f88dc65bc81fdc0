"""Patterns of names: what they match, and what is said where they match nothing."""

import pytest

from plainformer.errors import InputError
from plainformer.runs.finetune import matching

NAMES = [
    "embedding.table",
    *(
        f"layers.{layer}.{part}.weight"
        for layer in (0, 1, 2, 10)
        for part in ("self_attention.query", "feed_forward.inner")
    ),
    "norm.scale",
]


@pytest.mark.parametrize(
    ("patterns", "found"),
    [
        ((), []),
        (("*",), NAMES),
        (("embedding*", "norm.scale"), ["embedding.table", "norm.scale"]),
        (("layers.[0-1].*.query.weight",), [f"layers.{layer}.self_attention.query.weight" for layer in (0, 1)]),
        (("layers.1?.*",), NAMES[7:9]),
        # In the order of the names, each once.
        (("norm*", "*.scale", "emb*"), ["embedding.table", "norm.scale"]),
    ],
)
def test_patterns_match_as_a_shell_matches_files(patterns, found):
    assert matching(patterns, NAMES, where="tune.freeze") == found


@pytest.mark.parametrize(
    ("pattern", "near"),
    [
        ("embeding.*", "near it are embedding.*"),
        ("Norm.scale", "near it are norm.scale"),
        ("*.qury.weight", "near it are *.query.weight"),
        ("layer.10.*", "near it are layers.10.*"),
        ("§", "there is embedding.table, layers.0.self_attention.query.weight, "),
    ],
)
def test_a_pattern_that_matches_nothing_is_refused_with_what_is_near(pattern, near):
    with pytest.raises(InputError) as caught:
        matching(["*.scale", pattern], NAMES, where="tune.freeze")
    assert str(caught.value).startswith(f"tune.freeze: the pattern {pattern!r} matches nothing in this model; {near}")
