"""An encoder without a head: what it can do, what it is refused for, and what it becomes by training."""

import json
import shutil

import numpy as np
import pytest


@pytest.fixture
def bare(models, tmp_path):
    """The small masked language model, said to have no head."""
    folder = shutil.copytree(models["masked"], tmp_path / "bare", ignore=shutil.ignore_patterns("SHA256SUMS"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"head": False}))
    return folder


def test_it_fills_no_gaps_and_says_what_it_can_do(cli, bare, tmp_path):
    what = "this is an encoder without a head, which can say nothing of hidden tokens"
    fix = "use its vectors (embed), or train a classifier or a masked language model from it (train, --from MODEL)"
    assert cli("fill", bare, "the m<mask>n").error(2) == f"{bare}: {what}; {fix}"
    (tmp_path / "text").write_text("the moon and the sun\n" * 9)
    assert cli("evaluate", bare, "--text", tmp_path / "text").error(2) == f"{bare}: {what}; {fix}"
    error = cli("classify", bare, "the moon").error(2)
    assert error == f"{bare}: this model is for plainformer embed, not for classify"


def test_its_vectors_are_those_of_the_encoder(cli, models, bare):
    found, wanted = (cli("embed", model, "the moon", "a cat").written() for model in (bare, models["masked"]))
    assert found == wanted


def test_trained_on_it_has_a_head(cli, tuning, bare, tmp_path):
    (tmp_path / "text").write_text("the moon and the sun\n" * 40)
    recipe = tmp_path / "recipe.toml"
    recipe.write_text(tuning("masked-language-model", tmp_path / "text", bare))
    cli("train", recipe, "--run", tmp_path / "run").written()
    assert json.loads((tmp_path / "run" / "last" / "config.json").read_text())["head"] is True
    assert cli("fill", tmp_path / "run", "the m<mask>n").written()


def test_vectors_as_their_settings_have_them(cli, models, bare):
    """Of length 1, of the first five tokens; what is cut is counted, once, on stderr."""
    settings = {"embed": {"pooling": ["first", "mean"], "unit": True, "max_tokens": 5}}
    (bare / "generation_config.json").write_text(json.dumps(settings))
    texts = ["the m", "the man", "the moon", "a"]
    outcome = cli("embed", bare, *texts)
    said = "2 texts are longer than the 5 tokens that are read (first: argument 2): kept are the first 5 tokens"
    assert (outcome.code, outcome.err) == (0, f"{said}; see --truncate\n")
    found = np.array([json.loads(line)["vector"] for line in outcome.out.splitlines()])
    assert found.shape == (4, 24)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1.0, rtol=1e-6)
    np.testing.assert_allclose(found[0], found[1], rtol=0, atol=1e-6)
    np.testing.assert_allclose(found[0], found[2], rtol=0, atol=1e-6)
