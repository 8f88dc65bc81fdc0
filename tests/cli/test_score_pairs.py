"""`plainformer score` by a translator: how probable a target is, given its source."""

import json
import math

import pytest

import plainformer

PAIRS = [("the sun", "a man"), ("the moon", "the sun and a moon"), ("a man", "")]
LINES = [f"{source}\t{target}" for source, target in PAIRS]


@pytest.fixture(scope="module")
def scores(models):
    return plainformer.load(models["translator"]).score(*map(list, zip(*PAIRS, strict=True)))


def test_every_pair_has_a_line(cli, models, scores):
    expected = "".join(
        f"{score.logprob:.4f} nats\t{score.length} token{'s' * (score.length > 1)}\t"
        f"perplexity {score.perplexity:#.5g}\n"
        for score in scores
    )
    assert [score.length for score in scores] == [6, 19, 1]  # characters and the end of sentence
    assert cli("score", models["translator"], *LINES).out == expected
    assert cli("score", models["translator"], stdin="\n".join(LINES).encode()).out == expected


def test_tokens_add_up_and_the_last_is_the_end(cli, models, scores):
    one, *_ = cli("score", models["translator"], LINES[0], "--tokens").out.split("\n\n")
    rows = [line.split("\t") for line in one.splitlines()]
    assert [token for token, _ in rows] == [*"a man", "</s>"]
    assert [number for _, number in rows] == [f"{value:.4f}" for value in scores[0].token_logprobs]
    assert sum(scores[0].token_logprobs) == pytest.approx(scores[0].logprob)


def test_as_json(cli, models, scores):
    lines = cli("score", models["translator"], *LINES, "--json", "--tokens").out.splitlines()
    records = [json.loads(line) for line in lines]
    assert [record["logprob"] for record in records] == [score.logprob for score in scores]
    assert [record["tokens"] for record in records] == [len(record["token_logprobs"]) for record in records]
    assert records[1]["perplexity"] == pytest.approx(math.exp(-scores[1].logprob / 19))
    assert records[2]["where"] == "argument 3"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("the sun", "argument 2: a pair is a source, a tab and a target, and here are 0 tabs; give one pair a line"),
        ("a\tman\tsun", "argument 2: a pair is a source, a tab and a target, and here are 2 tabs"),
        ("a " * 600 + "\tman", "argument 2: the line has 1,200 tokens, and at most 1,024 are taken at once"),
        ("man\t" + "a " * 600, "argument 2: the line has 1,200 tokens, and at most 1,024 are taken at once"),
    ],
)
def test_what_is_no_pair_is_one_line(cli, models, line, said):
    first = cli("score", models["translator"], LINES[0]).written()
    assert said in cli("score", models["translator"], LINES[0], line).error(2, out=first)


def test_other_models_do_not_score(cli, models):
    assert "is for plainformer fill, not for score" in cli("score", models["masked"], "the sun").error(2)
