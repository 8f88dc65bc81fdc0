"""Small folders in their layout, written by ours: no other library is needed."""

from pathlib import Path

import jax
import pytest
from checkpoints import GPT, LETTERS

from plainformer.interop.export import Export, export_model
from plainformer.models import LanguageModel


@pytest.fixture(scope="session")
def gpt() -> LanguageModel:
    return LanguageModel(GPT, key=jax.random.key(0))


@pytest.fixture
def folder(gpt: LanguageModel, tmp_path: Path) -> Path:
    """A GPT-2 folder."""
    export_model(Export(gpt, LETTERS, LETTERS), tmp_path / "checkpoint")
    return tmp_path / "checkpoint"
