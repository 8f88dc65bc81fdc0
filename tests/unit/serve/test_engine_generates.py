"""Texts of many callers drawn in one batch, each by its own settings: each is the one that is drawn alone."""

import asyncio
from contextlib import aclosing
from typing import Any

import numpy as np
import pytest

from plainformer.decode import TextGenerator
from plainformer.errors import InputError
from plainformer.serve import DeadlinePassed, Engine

PROMPTS = ["the ", "a man, a cat\nthe moon and the", "moon", "über 10 Nächte the sun a man " * 4, "a"]
WAYS: list[dict[str, Any]] = [
    {},
    {"temperature": 0.0, "stop": ["a", "the", "\ufffd"]},
    {"temperature": 0.7, "top_k": 5, "end_tokens": [97, 103, 110], "suppress_tokens": [101]},
    {"top_k": 90, "top_p": 0.8, "min_p": 0.02, "repetition_penalty": 1.3},
]


def test_many_at_random_moments_are_each_as_alone(serve: Any, writer: TextGenerator) -> None:
    """All ways of choosing side by side, of some that outgrow the context several times, and some who leave."""
    draw = np.random.default_rng(4)
    asked: list[tuple[str, dict[str, Any]]] = [
        (PROMPTS[index % 5], WAYS[index % 4] | {"seed": int(seed), "max_tokens": int(most)})
        for index, (seed, most) in enumerate(zip(draw.integers(99, size=45), draw.integers(1, 30, 45), strict=True))
    ]
    asked += [("the ", {"max_tokens": 150, "seed": 5}), (PROMPTS[3], {"max_tokens": 120, "seed": 6})]
    moments, leaves = draw.random(len(asked)) * 0.5, draw.random(len(asked)) < 0.2

    async def one(engine: Engine, index: int) -> list[list[str]] | None:
        await asyncio.sleep(moments[index])
        prompt, how = asked[index]
        if not leaves[index]:
            return await engine.generate([prompt], client=str(index % 4), **how)
        async with aclosing(engine.stream(prompt, **how)) as chunks:
            async for _ in chunks:
                return None
        return None

    async def all_of_them(engine: Engine) -> list[Any]:
        found = await asyncio.gather(*[one(engine, index) for index in range(len(asked))])
        assert await engine.drain()
        assert (engine.counts.waiting, engine.counts.running) == (0, 0)
        return found

    found = serve(writer, all_of_them, rows=16)
    for (prompt, how), texts in zip(asked, found, strict=True):
        assert texts is None or texts == writer.generate([prompt], **how)
    assert sum(texts is not None for texts in found) > 30
    assert len({texts[0][0] for texts in found if texts}) > 25


@pytest.mark.parametrize(
    "changes",
    [{"position": "rotary", "norm": "rms", "heads": 4, "kv_heads": 2, "d_k": 6, "d_v": 5}, {"position": "alibi"}],
    ids=["rotary", "alibi"],
)
def test_positions_of_every_kind_stand_where_they_would_alone(
    serve: Any, make_writer: Any, changes: dict[str, Any]
) -> None:
    """Of texts that come while others are under way, and outgrow the context."""
    writer: TextGenerator = make_writer(**changes, context=17, layers=1)
    long: dict[str, Any] = {"max_tokens": 40}

    async def work(engine: Engine) -> list[list[list[str]]]:
        first = asyncio.create_task(engine.generate(["the "], **long))
        while engine.counts.turns < 5:
            await asyncio.sleep(0.001)
        return [*await asyncio.gather(engine.generate(PROMPTS[:3], **long), first)]

    assert serve(writer, work) == [writer.generate(PROMPTS[:3], **long), writer.generate(["the "], **long)]


def test_samples_of_a_prompt_are_as_offline_and_come_in_chunks(serve: Any, writer: TextGenerator) -> None:
    async def work(engine: Engine) -> None:
        expected = writer.generate(["the ", "a"], samples=5, top_p=0.9)
        assert await engine.generate(["the ", "a"], samples=5, top_p=0.9) == expected
        said, tokens, finished = [""] * 3, [0] * 3, [[] for _ in range(3)]
        async for chunk in engine.stream("the ", samples=3, stop=["m"]):
            said[chunk.sample] += chunk.text
            tokens[chunk.sample] += chunk.tokens
            finished[chunk.sample].append(chunk.finished)
        offline = [*writer.stream_samples("the ", samples=3, stop=["m"])]
        for number in range(3):
            own = [chunk for chunk in offline if chunk.sample == number]
            assert said[number] == "".join(chunk.text for chunk in own)
            assert tokens[number] == sum(chunk.tokens for chunk in own)
            assert finished[number][-1] == own[-1].finished
            assert set(finished[number][:-1]) <= {None}

    serve(writer, work)


def test_what_will_not_do_is_said_at_once(serve: Any, writer: TextGenerator) -> None:
    async def work(engine: Engine) -> None:
        for wrong, said in [
            ({"top_p": 2.0}, "top_p is 2.0; give a share"),
            ({"max_tokens": 300}, "max_tokens is 300; give 1 to 200"),
            ({"samples": 0}, "0 samples were asked for"),
        ]:
            with pytest.raises(InputError, match=said):
                await engine.generate(["the"], **wrong)
        with pytest.raises(InputError, match="the prompt is empty"):
            await engine.generate(["the", ""])
        with pytest.raises(InputError, match="this model is for plainformer generate, not for translate"):
            await engine.translate(["the"])
        assert engine.counts.running == 0

    serve(writer, work, max_tokens=200)


def test_who_leaves_makes_room_within_one_step_and_a_deadline_is_kept(serve: Any, writer: TextGenerator) -> None:
    long: dict[str, Any] = {"max_tokens": 100_000, "suppress_tokens": [writer.tokenizer.eos_id]}

    async def work(engine: Engine) -> None:
        tasks = [asyncio.create_task(engine.generate(["the "], seed=seed, **long)) for seed in range(6)]
        while engine.counts.running < 4 or engine.counts.turns < 3:
            await asyncio.sleep(0.001)
        assert engine.counts.waiting == 2
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        turns = engine.counts.turns
        while engine.counts.running:
            await asyncio.sleep(0)
        assert engine.counts.turns - turns <= 1
        assert engine.counts.cancelled == 6
        with pytest.raises(DeadlinePassed):
            await engine.generate(["the "], deadline=0.05, **long)
        with pytest.raises(DeadlinePassed):
            async for _ in engine.stream("the ", deadline=0.05, **long):
                pass
        assert await engine.generate(["a"]) == writer.generate(["a"])

    serve(writer, work, rows=4)


def test_scores_are_as_alone(serve: Any, writer: TextGenerator) -> None:
    texts = ["the moon", "a man, a cat", "the sun and the moon"]

    async def work(engine: Engine) -> list[Any]:
        with pytest.raises(InputError, match="the text has one token"):
            await engine.score(["the moon", "a"])
        return await asyncio.gather(*[engine.score([text]) for text in texts])

    for text, (found,) in zip(texts, serve(writer, work), strict=True):
        (expected,) = writer.score([text])
        assert (found.tokens, found.scored_bytes) == (expected.tokens, expected.scored_bytes)
        np.testing.assert_allclose(found.logprobs, expected.logprobs, rtol=1e-5, atol=2e-5)
