"""Vectors, labels and gaps of many callers, computed together: each is as alone."""

import asyncio
from typing import Any

import numpy as np
import pytest
from encoders import TOKENIZER, random_model

from plainformer.decode import MaskFiller, TextClassifier
from plainformer.errors import InputError
from plainformer.serve import Engine

TEXTS = ["I like pizza", "soup", "we like we like we like", "you", "pizza, soup", "I like", "soup, soup, you"]
CLOSE: Any = {"rtol": 1e-5, "atol": 2e-6}  # of probabilities and of vectors of size 1


def test_gaps_and_vectors_of_many_are_each_as_alone(serve: Any) -> None:
    filler, gaps = MaskFiller(random_model(), TOKENIZER), [f"{text} <mask>" for text in TEXTS]

    async def work(engine: Engine) -> tuple[list[Any], list[Any]]:
        """Gaps with two kinds of options and vectors, all at once, and one that cannot be read among them."""
        calls = [engine.fill([gap], top=2 + index % 2, client=str(index)) for index, gap in enumerate(gaps)]
        wrong = engine.fill(["no gap"], top=2)
        *found, failure = await asyncio.gather(*calls, wrong, return_exceptions=True)
        assert isinstance(failure, InputError)
        assert "the text has no gap" in str(failure)
        with pytest.raises(InputError, match="this model is for plainformer fill, not for classify"):
            await engine.classify(["soup"])
        vectors = await asyncio.gather(*[engine.embed([text]) for text in TEXTS])
        return found, vectors

    filled, vectors = serve(filler, work, together=4)
    for index, (gap, (found,)) in enumerate(zip(gaps, filled, strict=True)):
        (expected,) = filler.fill([gap], top=2 + index % 2)
        assert [[one.text for one in each] for each in found] == [[one.text for one in each] for each in expected]
        chances, others = ([one.probability for each in side for one in each] for side in (found, expected))
        np.testing.assert_allclose(chances, others, **CLOSE)
    for text, (vector,) in zip(TEXTS, vectors, strict=True):
        np.testing.assert_allclose(vector, filler.embed([text])[0], **CLOSE)


def test_labels_of_many_are_each_as_alone(serve: Any) -> None:
    labeller = TextClassifier(random_model(labels=("bad", "good", "neither")), TOKENIZER)

    async def work(engine: Engine) -> list[Any]:
        return await asyncio.gather(*[engine.classify([text, "you"]) for text in TEXTS])

    for text, found in zip(TEXTS, serve(labeller, work, together=3), strict=True):
        expected = [labeller.classify([one])[0] for one in (text, "you")]
        assert [one.label for one in found] == [one.label for one in expected]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose([*one.probabilities.values()], [*other.probabilities.values()], **CLOSE)
