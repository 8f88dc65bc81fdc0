"""Who waits for whom: nobody for another's batch, prompt, programs, crowd or failure."""

import asyncio
import threading
from typing import Any

import pytest

from plainformer.decode import TextGenerator
from plainformer.decode.translator import Translator
from plainformer.errors import WorkError
from plainformer.serve import Engine, beam_stage, sampling_runner


def test_one_text_of_a_client_waits_for_no_crowd_of_another(serve: Any, translator: Translator) -> None:
    """The crowd holds all places; the one has the next that is free."""

    async def work(engine: Engine) -> None:
        crowd = [asyncio.create_task(engine.translate(["ba cb dc"], client="many")) for _ in range(50)]
        while not engine.counts.running:
            await asyncio.sleep(0)
        await engine.translate(["cb"], client="one")
        assert sum(task.done() for task in crowd) < 25
        await asyncio.gather(*crowd)

    serve(translator, work)


def test_settings_that_are_new_are_compiled_beside_the_work(
    serve: Any, translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, warm = threading.Event(), beam_stage.Bucket.warm

    def slow(bucket: beam_stage.Bucket) -> None:
        if bucket.how.settings.beam_size == 2:
            go_on.wait(30)
        warm(bucket)

    monkeypatch.setattr(beam_stage.Bucket, "warm", slow)

    async def work(engine: Engine) -> None:
        new = asyncio.create_task(engine.translate(["ba cb"], beam_size=2))
        assert await engine.translate(["ba", "dc"]) == translator.translate(["ba", "dc"])
        assert not new.done()
        go_on.set()
        assert await new == translator.translate(["ba cb"], beam_size=2)

    serve(translator, work)


def test_a_prompt_is_read_beside_the_texts_that_are_drawn(
    serve: Any, writer: TextGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on, read = threading.Event(), sampling_runner.Writing.read

    def slow(writing: sampling_runner.Writing) -> Any:
        if writing.drawing.settings.seed == 7:
            go_on.wait(30)
        return read(writing)

    monkeypatch.setattr(sampling_runner.Writing, "read", slow)

    async def work(engine: Engine) -> None:
        chunks = engine.stream("a man", max_tokens=40, suppress_tokens=[writer.tokenizer.eos_id])
        first = await anext(chunks)
        late = asyncio.create_task(engine.generate(["the "], seed=7))
        rest = [chunk async for chunk in chunks]
        assert sum(chunk.tokens for chunk in [first, *rest]) == 40
        assert not late.done()
        go_on.set()
        assert await late == writer.generate(["the "], seed=7)

    serve(writer, work)


def test_after_a_failure_the_next_is_answered(
    serve: Any, writer: TextGenerator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work(engine: Engine) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(sampling_runner._Pool, "draw", lambda pool: 1 / 0)
            with pytest.raises(WorkError, match=r"computing failed \(division by zero\)"):
                await engine.generate(["the "])
        assert await engine.generate(["the "]) == writer.generate(["the "])

    serve(writer, work)
