"""One small random model per variant, compiled once for all the laws of the model."""

import pytest
from model_laws import Subject
from variants import VARIANTS


@pytest.fixture(scope="module", params=list(VARIANTS))
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject(VARIANTS[request.param])
