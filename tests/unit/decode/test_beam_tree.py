"""The tree of a search: it finds what the search finds, every path sums to its score, and each node has its reason."""

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plainformer.decode import GenerationSettings, generate
from plainformer.decode.beam_tree import ROOT, beam_tree
from plainformer.decode.length_penalty import length_weights

SOURCES = [[5, 6, 0], [3], [8, 3, 11]]
SETTINGS: dict[str, dict[str, Any]] = {
    "the paper's": {"n_best": 2},
    "greedy": {"beam_size": 1},
    "short ones preferred": {"length_penalty": "average", "alpha": -0.5, "beam_size": 3},
    "full, to the end": {"beam": "full", "early_stopping": "never", "n_best": 3},
    "full, the first that end": {"beam": "full", "early_stopping": "first", "beam_size": 2},
    "full, with a guess": {"beam": "full", "early_stopping": "heuristic", "beam_size": 3, "alpha": 1.5},
    "constrained": {"no_repeat_ngram": 2, "repetition_penalty": 1.3, "min_tokens": 3, "forced_eos": True},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_tree_finds_what_the_search_finds(toys: SimpleNamespace, name: str) -> None:
    model, settings = toys.make(13), GenerationSettings(max_margin=4, **SETTINGS[name])
    found = generate(model, SOURCES, settings, **toys.ids)
    for source, expected in zip(SOURCES, found, strict=True):
        closed = [*source, toys.ids["eos"]]
        tree = beam_tree(model, closed, settings, settings.bound(len(closed)), **toys.ids)
        assert [(one.ids, one.finished) for one in tree.hypotheses] == [(one.ids, one.finished) for one in expected]
        np.testing.assert_allclose([one.score for one in tree.hypotheses], [one.score for one in expected], rtol=1e-5)
        check(tree, settings)


def test_a_long_tree_takes_a_new_shape_every_sixteen_steps(
    toys: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is compiled anew: bos and up to 15 tokens go into 16 places, up to 31 into 32."""
    module: Any = import_module("plainformer.decode.beam_tree")
    shapes, following = [], module._next

    def seen(model: Any, source: Any, target: Any, *more: Any) -> Any:
        shapes.append(target.shape)
        return following(model, source, target, *more)

    monkeypatch.setattr(module, "_next", seen)
    model, settings = toys.make(13), GenerationSettings(max_margin=14, min_tokens=17, beam_size=2)
    (expected,) = generate(model, SOURCES[:1], settings, **toys.ids)
    tree = beam_tree(model, [*SOURCES[0], toys.ids["eos"]], settings, settings.bound(4), **toys.ids)
    assert [one.ids for one in tree.hypotheses] == [one.ids for one in expected]
    assert len(shapes) > 16
    assert shapes == [(2, 16)] * 16 + [(2, 32)] * (len(shapes) - 16)
    check(tree, settings)


def check(tree: Any, settings: GenerationSettings) -> None:
    weights = length_weights(settings, tree.bound)
    for place, node in enumerate(tree.nodes):
        path = tree.path(place)
        assert node.number == place
        assert [one.step for one in path] == list(range(1, node.step + 1))
        # Added in float64 here and one by one in float32 there.
        np.testing.assert_allclose(sum(one.logprob for one in path), node.total, rtol=1e-6)
        np.testing.assert_allclose(node.total * weights[node.step], node.score, rtol=1e-6)
        assert node.why
        assert all(one.fate == "live" for one in path[:-1])
    assert all(node.fate in ("finished", "stopped", "pruned") for node in tree.nodes if not tree.children(node.number))
    assert sum(node.fate == "finished" for node in tree.nodes) <= settings.beam_size
    for step in range(1, max(node.step for node in tree.nodes) + 1):
        here = [node for node in tree.nodes if node.step == step]
        assert [node.rank for node in here] == sorted({node.rank for node in here})
        assert here[0].rank == 0
        assert sum(node.fate in ("live", "stopped") for node in here) <= settings.beam_size


def test_reasons_say_what_happened(toys: SimpleNamespace) -> None:
    """In a beam of two, what is left out was beaten, and what lived at the end could not win any more."""
    settings = GenerationSettings(max_margin=4, beam_size=2)
    tree = beam_tree(toys.make(13), [5, 6, toys.ids["eos"]], settings, 7, **toys.ids)
    first = tree.children(ROOT)
    assert [node.fate for node in first][2:] == ["pruned", "pruned"]
    gap = first[1].total - first[2].total
    assert first[2].why == f"the beam has room for 2, and the last of these is {gap:.3f} nats better"
    reasons = {node.why for node in tree.nodes if node.fate == "stopped"}
    assert all(reason.startswith("none that lives could score above ") for reason in reasons)
    assert len(beam_tree(toys.make(13), [5, 6, toys.ids["eos"]], settings, 7, **toys.ids, pruned=0).nodes) < len(
        tree.nodes
    )
