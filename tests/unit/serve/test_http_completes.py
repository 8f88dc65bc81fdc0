"""OpenAI's API: its client works as it is, and gets what the models alone give."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from encoders import TOKENIZER, random_model

from plainformer.decode import MaskFiller, TextClassifier, TextGenerator
from plainformer.serve.app import Doors
from plainformer.serve.house import Bounds, house_of
from plainformer.serve.limits import Limits
from plainformer.serve.security import Keys
from running import ask, running

KEY = "secret"
CLOSE: Any = {"rtol": 1e-5, "atol": 2e-5}


@pytest.fixture(scope="module")
def filler() -> MaskFiller:
    return MaskFiller(random_model(), TOKENIZER)


@pytest.fixture(scope="module")
def labeller() -> TextClassifier:
    return TextClassifier(random_model(labels=("bad", "good", "neither")), TOKENIZER)


@pytest.fixture(scope="module")
def url(writer: TextGenerator, filler: MaskFiller, labeller: TextClassifier) -> Iterator[str]:
    models: Any = {"writer": (writer, None), "filler": (filler, None), "some/labeller": (labeller, None)}
    limits, bounds = Limits(max_tokens=60), Bounds(samples=12)
    house = house_of(models, limits=limits, bounds=bounds, needs_key=True)
    with running(house, Doors(Keys.of([KEY]))) as address:
        yield address


@pytest.fixture
def client(url: str) -> Any:
    openai = pytest.importorskip("openai", reason="the client of OpenAI is not installed")
    with openai.OpenAI(base_url=f"{url}/v1", api_key=KEY, max_retries=0) as found:
        yield found


def test_completions_are_what_the_model_writes(client: Any, writer: TextGenerator) -> None:
    found = client.completions.create(model="writer", prompt="the ", seed=4)
    assert found.choices[0].text == writer.generate(["the "], seed=4, max_tokens=16)[0][0]
    assert (found.object, found.model) == ("text_completion", "writer")
    how = {"temperature": 0.7, "top_p": 0.9, "seed": 7}
    prompts = ["the moon", "a man, a cat\n"]
    found = client.completions.create(
        model="writer", prompt=prompts, n=3, max_tokens=12, stop=["a", "the"], extra_body={"top_k": 50}, **how
    )
    expected = writer.generate(prompts, samples=3, stop=["a", "the"], max_tokens=12, top_k=50, **how)
    assert [one.text for one in found.choices] == [text for texts in expected for text in texts]
    assert [one.index for one in found.choices] == [0, 1, 2, 3, 4, 5]
    tokens = sum(len(writer.tokenizer.encode(prompt)) for prompt in prompts)
    assert (found.usage.prompt_tokens, found.usage.total_tokens) == (tokens, tokens + found.usage.completion_tokens)
    assert {one.finish_reason for one in found.choices} <= {"stop", "length"}
    long = client.completions.create(model="writer", prompt="the ", seed=4, max_tokens=3)
    assert (long.choices[0].finish_reason, long.usage.completion_tokens) == ("length", 3)


def test_without_a_seed_texts_differ_and_tokens_are_prompts_too(client: Any, writer: TextGenerator) -> None:
    texts = {client.completions.create(model="writer", prompt="the ").choices[0].text for _ in range(4)}
    assert len(texts) > 1
    ids = writer.tokenizer.encode("the moon")
    for prompt in (ids, [ids]):
        found = client.completions.create(model="writer", prompt=prompt, seed=1)
        assert found.choices[0].text == writer.generate(["the moon"], seed=1, max_tokens=16)[0][0]


def test_a_stream_is_the_same_text_in_parts(client: Any, writer: TextGenerator) -> None:
    said, ends, usage = ["", "", "", ""], [[], [], [], []], None
    how: Any = {"seed": 3, "max_tokens": 30}
    for part in client.completions.create(
        model="writer", prompt=["the ", "moon"], n=2, stream=True, stream_options={"include_usage": True}, **how
    ):
        for choice in part.choices:
            said[choice.index] += choice.text
            ends[choice.index].append(choice.finish_reason)
        usage = part.usage
    assert said == [text for texts in writer.generate(["the ", "moon"], samples=2, **how) for text in texts]
    assert all(reasons[-1] in ("stop", "length") and set(reasons[:-1]) <= {None} for reasons in ends)
    whole = client.completions.create(model="writer", prompt=["the ", "moon"], n=2, **how)
    assert usage == whole.usage


def test_what_is_echoed_and_how_probable_it_is(client: Any, writer: TextGenerator) -> None:
    """Log-probabilities are those of `score`, of the prompt too where it is echoed; max_tokens 0 scores a text."""
    text = "the moon and über"
    (score,) = writer.score([text])
    found = client.completions.create(model="writer", prompt=text, echo=True, max_tokens=0, logprobs=0).choices[0]
    assert found.text == text
    assert found.logprobs.token_logprobs[0] is None
    np.testing.assert_allclose(found.logprobs.token_logprobs[1:], score.logprobs, **CLOSE)
    assert "".join(found.logprobs.tokens[:2]) == text[: found.logprobs.text_offset[2]]
    for echo in (False, True):
        how: dict[str, Any] = {"seed": 2, "max_tokens": 9, "logprobs": 0, "echo": echo}
        whole = client.completions.create(model="writer", prompt="the ", **how).choices[0]
        written = writer.generate(["the "], seed=2, max_tokens=9)[0][0]
        assert whole.text == ("the " if echo else "") + written
        read = writer.tokenizer.encode("the ")
        drawn = [id for chunk in writer.stream_samples("the ", seed=2, max_tokens=9) for id in chunk.ids]
        (score,) = writer.score_ids([[*read, *drawn]])
        expected = [None, *score.logprobs][0 if echo else len(read) :]
        given = whole.logprobs.token_logprobs
        assert len(given) == len(expected)
        np.testing.assert_allclose(given[1:], expected[1:], **CLOSE)  # pyright: ignore[reportCallIssue, reportArgumentType]
        assert (given[0] is None) == echo
        parts = [*client.completions.create(model="writer", prompt="the ", stream=True, **how)]
        assert parts[-1].choices[0].logprobs.token_logprobs == pytest.approx(given, abs=1e-5)


def test_log_probabilities_are_of_the_tokens_that_were_drawn(client: Any, writer: TextGenerator) -> None:
    """Which are others than those of the text where it is encoded again; none is told of behind a stop string."""
    others = 0
    for seed in range(6):
        drawn = [id for chunk in writer.stream_samples("the ", seed=seed, max_tokens=12) for id in chunk.ids]
        how: dict[str, Any] = {"prompt": "the ", "seed": seed, "max_tokens": 12, "logprobs": 1}
        found = client.completions.create(model="writer", **how).choices[0]
        (score,) = writer.score_ids([[*writer.tokenizer.encode("the "), *drawn]])
        assert len(found.logprobs.tokens) == len(drawn)
        np.testing.assert_allclose(found.logprobs.token_logprobs, score.logprobs[-len(drawn) :], **CLOSE)
        others += writer.tokenizer.encode(found.text) != drawn
        stop = found.text[3:5]
        short = client.completions.create(model="writer", stop=stop, **how).choices[0]
        assert short.text == found.text[: found.text.index(stop)]
        assert short.logprobs.token_logprobs == pytest.approx(
            found.logprobs.token_logprobs[: len(short.logprobs.tokens)], abs=1e-4
        )
        assert all(at < len(short.text) for at in short.logprobs.text_offset)
    assert others


def test_the_most_probable_tokens_are_told(client: Any, writer: TextGenerator) -> None:
    text = "the moon and the sun"
    (score,) = writer.score([text], top=3)
    how: dict[str, Any] = {"prompt": text, "max_tokens": 0, "echo": True, "logprobs": 3}
    found = client.completions.create(model="writer", **how).choices[0].logprobs
    assert found.top_logprobs[0] is None
    for token, logprob, tops, ranked in zip(
        found.tokens[1:], found.token_logprobs[1:], found.top_logprobs[1:], score.most_probable, strict=True
    ):
        assert [*tops.values()] == pytest.approx([each for _, each in ranked], abs=1e-4)
        assert tops.get(token, logprob) == pytest.approx(logprob, abs=1e-5)
        assert logprob <= max(tops.values()) + 1e-5


def test_embeddings_are_those_of_the_model(client: Any, filler: MaskFiller, labeller: TextClassifier) -> None:
    texts = ["I like pizza", "soup", "we like we like we like"]
    for name, encoder in (("filler", filler), ("some/labeller", labeller)):
        for how in ({}, {"encoding_format": "float"}):
            found = client.embeddings.create(model=name, input=texts, **how)
            np.testing.assert_allclose(
                [one.embedding for one in found.data], encoder.embed(texts), rtol=1e-5, atol=2e-6
            )
            assert [one.index for one in found.data] == [0, 1, 2]
            assert found.usage.prompt_tokens == sum(map(len, encoder.encode_to_embed(texts)))


def test_models_are_listed(client: Any) -> None:
    assert [one.id for one in client.models.list()] == ["writer", "filler", "some/labeller"]
    assert client.models.retrieve("some/labeller").owned_by == "plainformer"


def test_its_own_errors_come(client: Any, url: str) -> None:
    openai = pytest.importorskip("openai", reason="the client of OpenAI is not installed")
    with pytest.raises(openai.NotFoundError, match="no model 'other' here"):
        client.completions.create(model="other", prompt="a")
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")
    with pytest.raises(openai.BadRequestError, match="filler is for fill"):
        client.completions.create(model="filler", prompt="a")
    with pytest.raises(openai.AuthenticationError):
        openai.OpenAI(base_url=f"{url}/v1", api_key="other").models.list()
    with pytest.raises(openai.BadRequestError) as found:
        client.completions.create(model="writer", prompt="a", top_p=2.0)
    assert (found.value.param, found.value.type) == ("top_p", "invalid_request_error")


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"prompt": ""}, None),
        ({"prompt": []}, "prompt"),
        ({"prompt": [10**9]}, "prompt"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"prompt": ["a"] * 13}, "n"),
        ({"n": 0}, "n"),
        ({"n": 10**9}, "n"),
        ({"max_tokens": 61}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": True}, "max_tokens"),
        ({"temperature": "hot"}, "temperature"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"logit_bias": {"3": 1}}, "logit_bias"),
        ({"suffix": "x"}, "suffix"),
        ({"best_of": 3}, "best_of"),
        ({"presence_penalty": 1.0}, "presence_penalty"),
        ({"frequence_penalty": 1.0}, "frequence_penalty"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"seed": 1.5}, "seed"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_what_will_not_do_is_named(url: str, changes: dict[str, Any], field: str | None, stream: bool) -> None:
    body = {"model": "writer", "prompt": "a", "stream": stream} | changes
    if stream and field == "stream_options":
        return
    reply = ask(f"{url}/v1/completions", body, headers={"Authorization": f"Bearer {KEY}"})
    assert reply.status == 400
    error = reply.json["error"]
    assert (error["type"], error["param"]) == ("invalid_request_error", field)
    assert error["message"]


def test_labels_and_gaps(url: str, filler: MaskFiller, labeller: TextClassifier) -> None:
    key = {"Authorization": f"Bearer {KEY}"}
    found = ask(f"{url}/v1/classify", {"input": ["soup", "I like pizza"]}, headers=key).json
    expected = labeller.classify(["soup", "I like pizza"])
    assert [one["label"] for one in found["data"]] == [one.label for one in expected]
    assert found["data"][0]["probabilities"] == pytest.approx(expected[0].probabilities, abs=1e-5)
    found = ask(f"{url}/v1/classify", {"input": ["soup " * 40, "soup"]}, headers=key).json
    assert [one["truncated"] for one in found["data"]] == [True, False]
    found = ask(f"{url}/fill", {"input": ["I <mask>" + " soup" * 40, "I <mask>"], "model": "filler"}, headers=key).json
    assert [one["truncated"] for one in found["data"]] == [True, False]
    found = ask(f"{url}/fill", {"input": "I like <mask>", "top": 3, "model": "filler"}, headers=key).json
    ((gap,),) = filler.fill(["I like <mask>"], top=3)
    assert [one["text"] for one in found["data"][0]["gaps"][0]] == [one.text for one in gap]
    wrong = ask(f"{url}/fill", {"input": "I like"}, headers=key)
    assert wrong.status == 400
    assert "the text has no gap; write <mask>" in wrong.json["error"]["message"]
