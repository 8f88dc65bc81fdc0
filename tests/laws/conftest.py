"""One small random model per variant, compiled once for all the laws of the model."""

import pytest
from model_laws import LanguageSubject, TranslatorSubject
from variants import LANGUAGE_VARIANTS, VARIANTS


@pytest.fixture(scope="module", params=list(VARIANTS))
def subject(request: pytest.FixtureRequest) -> TranslatorSubject:
    return TranslatorSubject(VARIANTS[request.param])


@pytest.fixture(scope="module", params=list(LANGUAGE_VARIANTS))
def writer(request: pytest.FixtureRequest) -> LanguageSubject:
    return LanguageSubject(LANGUAGE_VARIANTS[request.param])
