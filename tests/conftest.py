"""What all tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def shared_data() -> Path:
    """The real corpora, beside the repository and no part of it: where they are not, the test is skipped."""
    folder = Path(__file__).parents[1].parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the real corpora are not here ({folder})")
    return folder
