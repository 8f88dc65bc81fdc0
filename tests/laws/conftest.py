"""One small random model per variant, compiled once for all the laws of the model."""

import pytest
from encoder_laws import EncoderSubject
from model_laws import LanguageSubject, TranslatorSubject
from variants import ENCODER_VARIANTS, LANGUAGE_VARIANTS, VARIANTS


@pytest.fixture(scope="module", params=list(VARIANTS))
def subject(request: pytest.FixtureRequest) -> TranslatorSubject:
    return TranslatorSubject(VARIANTS[request.param])


@pytest.fixture(scope="module", params=list(LANGUAGE_VARIANTS))
def writer(request: pytest.FixtureRequest) -> LanguageSubject:
    return LanguageSubject(LANGUAGE_VARIANTS[request.param])


@pytest.fixture(scope="module", params=list(ENCODER_VARIANTS))
def reader(request: pytest.FixtureRequest) -> EncoderSubject:
    return EncoderSubject(ENCODER_VARIANTS[request.param])
