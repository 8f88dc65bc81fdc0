"""Translations of many callers in one batch, who come, go and leave when they like: each is the one made alone."""

import asyncio
from typing import Any

import numpy as np
import pytest
from served import WORDS

from plainformer.decode.parallel_search import searches_at_once
from plainformer.decode.translator import Translation, Translator
from plainformer.errors import InputError
from plainformer.quantize.linear import Precision
from plainformer.serve import DeadlinePassed, Engine, Limits, Overloaded, serving

CLOSE: Any = {"rtol": 1e-5, "atol": 2e-5}  # sums of a dozen numbers of size 10, in another order


def texts_of(draw: np.random.Generator, count: int, longest: int = 17) -> list[str]:
    return [" ".join(draw.choice(WORDS.split(), draw.integers(0, longest))) for _ in range(count)]


def equal(found: list[Translation], expected: list[Translation]) -> None:
    assert [(one.text, one.finished) for one in found] == [(one.text, one.finished) for one in expected]
    for name in ("score", "logprob"):
        numbers, others = ([getattr(one, name) for one in several] for several in (found, expected))
        np.testing.assert_allclose(numbers, others, **CLOSE)


@pytest.mark.parametrize(("weights", "d_model"), [("float32", 12), ("w8a8", 16)])
def test_many_at_random_moments_are_each_as_alone(
    serve: Any, make_translator: Any, weights: Precision, d_model: int
) -> None:
    """Short and long ones, who move on to more slots, of two widths and two kinds of settings, and some who leave.

    In w8a8 to the last bit: a last bit is a level of the next rounding, and soon another output.
    """
    translator: Translator = make_translator(weights, d_model)
    draw = np.random.default_rng(2)
    texts = [*texts_of(draw, 40), *texts_of(draw, 2, 45)]
    settings: list[dict[str, Any]] = [{}, {"beam_size": 2, "n_best": 1, "alpha": 1.0, "length_penalty": "average"}]
    changes = [settings[int(kind)] for kind in draw.random(len(texts)) < 0.2]
    moments, leaves = draw.random(len(texts)) * 0.5, draw.random(len(texts)) < 0.2

    async def one(engine: Engine, index: int) -> list[Translation] | None:
        await asyncio.sleep(moments[index])
        call = engine.translate_n_best([texts[index]], client=str(index % 5), **changes[index])
        if not leaves[index]:
            return (await call)[0]
        task = asyncio.create_task(call)
        await asyncio.sleep(moments[index] / 20)
        task.cancel()
        await asyncio.wait([task])
        return None

    async def all_of_them(engine: Engine) -> list[Any]:
        found = await asyncio.gather(*[one(engine, index) for index in range(len(texts))])
        counts = engine.counts
        assert (counts.waiting, counts.running) == (0, 0)
        assert counts.done + counts.cancelled >= sum(bool(text) for text in texts) - leaves.sum()
        return found

    found = serve(translator, all_of_them)
    for index, one_found in enumerate(found):
        if one_found is not None:
            (alone,) = translator.translate_n_best([texts[index]], **changes[index])
            equal(one_found, alone)
            assert weights != "w8a8" or one_found == alone
    assert sum(one is not None for one in found) > 25
    assert len({one[0].text for one in found if one}) > 7


def test_a_sentence_alone_makes_four_steps_a_turn(serve: Any, translator: Translator) -> None:
    """An output that does not end by itself takes as many steps as its bound. Beside others a turn is one step, so that
    who comes or leaves is kept waiting for no more."""
    margin = 30
    endless = {"max_margin": margin, "suppress_tokens": [translator.target_tokenizer.eos_id], "no_repeat_ngram": 0}

    async def turns_of(engine: Engine, texts: list[str]) -> int:
        before = engine.counts.turns
        assert await engine.translate(texts, **endless) == translator.translate(texts, **endless)
        return engine.counts.turns - before

    async def work(engine: Engine) -> None:
        assert margin / 4 <= await turns_of(engine, ["ba cb"]) < margin / 2
        assert await turns_of(engine, ["ba cb"] * 4) >= margin  # two for each thread, at least

    serve(translator, work)


def test_blank_texts_and_wrong_ones(serve: Any, translator: Translator) -> None:
    async def work(engine: Engine) -> None:
        assert await engine.translate(["", " ba", "\n"]) == ["", *translator.translate([" ba"]), ""]
        assert await engine.translate([]) == []
        with pytest.raises(InputError, match="text 2: the line has 3 tokens, and at most 2"):
            await engine.translate(["ba", "ba cb dc"], max_source_tokens=2)
        with pytest.raises(InputError, match="unknown setting beams"):
            await engine.translate(["ba"], beams=3)
        with pytest.raises(InputError, match="beam_size is 5; give 1 to 4"):
            await engine.translate(["ba"], beam_size=5)

    serve(translator, work, beam_size=4)


def test_who_leaves_makes_room_within_one_turn(serve: Any, translator: Translator) -> None:
    """All places are taken by outputs that take long; they are cancelled, and the next one is not kept waiting."""
    long = {"max_margin": 2000, "suppress_tokens": [translator.target_tokenizer.eos_id], "no_repeat_ngram": 0}
    threads = searches_at_once()  # one where there is one core
    places = 2 * threads

    async def work(engine: Engine) -> None:
        tasks = [asyncio.create_task(engine.translate(["ba cb"], **long)) for _ in range(12)]
        while engine.counts.running < places or engine.counts.turns < 3:
            await asyncio.sleep(0.001)
        assert engine.counts.waiting == 12 - places
        for task in tasks:
            task.cancel()
        turns = engine.counts.turns
        while engine.counts.running:
            await asyncio.sleep(0)
        assert engine.counts.turns - turns <= threads  # one of each, which was under way
        assert engine.counts.cancelled == 12
        assert await engine.translate(["cb"]) == translator.translate(["cb"])

    serve(translator, work)


def test_a_deadline_is_kept_and_frees_its_place(serve: Any, translator: Translator) -> None:
    long = {"max_margin": 2000, "suppress_tokens": [translator.target_tokenizer.eos_id], "no_repeat_ngram": 0}

    async def work(engine: Engine) -> None:
        with pytest.raises(DeadlinePassed, match=r"there was no answer within 0\.05 seconds"):
            await engine.translate(["ba cb"], deadline=0.05, **long)
        while engine.counts.running:
            await asyncio.sleep(0)
        assert engine.counts.cancelled == 1

    serve(translator, work)


def test_what_there_is_no_room_for_is_refused_at_once_and_the_rest_is_answered(
    serve: Any, translator: Translator
) -> None:
    texts = texts_of(np.random.default_rng(1), 60, 4)
    texts = [text or "ba" for text in texts]

    async def work(engine: Engine) -> tuple[list[Any], int]:
        answers = await asyncio.gather(*[engine.translate([text]) for text in texts], return_exceptions=True)
        refused = [answer for answer in answers if isinstance(answer, Exception)]
        assert all(isinstance(one, Overloaded) and one.retry_after >= 1.0 for one in refused)
        with pytest.raises(Overloaded):
            await engine.translate(texts)  # all or none
        assert engine.counts.refused == len(refused) + len(texts)
        again = await engine.translate(texts[:3])
        return [*answers, *again], len(refused)

    found, refused = serve(translator, work, waiting=5)
    assert 0 < refused < 60
    for text, answer in zip([*texts, *texts[:3]], found, strict=True):
        assert isinstance(answer, Exception) or answer in (
            translator.translate([text]),
            translator.translate([text])[0],
        )


def test_the_engine_finishes_what_runs_and_refuses_what_comes(translator: Translator) -> None:
    async def work() -> None:
        async with serving(translator, Limits(hypotheses=6)) as engine:
            task = asyncio.create_task(engine.translate(["ba cb dc"]))
            while not engine.counts.running:
                await asyncio.sleep(0)
            assert await engine.drain()
            assert await task == translator.translate(["ba cb dc"])
            with pytest.raises(Exception, match="the engine has stopped"):
                await engine.translate(["ba"])

    asyncio.run(work())
