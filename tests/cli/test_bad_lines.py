"""`--on-bad-line`: one line that nothing can be made of does not end a stream, and is said in the end."""

import json

import numpy as np
import pytest

# What a verb is asked, a line that is good, one that the model cannot take, and what an empty answer is.
VERBS = {
    "translate": (["translate", "translator", "--max-source-tokens", "20"], b"the man", b"the man" * 9, ""),
    "n-best": (["translate", "translator", "--n-best", "1", "--max-source-tokens", "20"], b"a", b"a" * 21, "0.0000\t"),
    "classify": (["classify", "classifier", "--truncate", "no"], b"the man", b"the man" * 9, ""),
    "embed": (["embed", "masked", "--truncate", "no"], b"the man", b"the man" * 9, None),
    "score": (["score", "character", "--lines"], b"the man", b"m", ""),
    "score of pairs": (["score", "translator"], b"the\tman", b"the man", ""),
}
BAD = [b"m\xe4n", b"a\0b"]


@pytest.fixture
def asked(cli, models):
    """`asked(verb, lines, *options)`: what a verb makes of lines."""

    def ask(verb, lines, *options):
        command, model, *more = VERBS[verb][0]
        return cli(command, models[model], *more, *options, stdin=b"\n".join(lines) + b"\n")

    return ask


@pytest.mark.parametrize("verb", VERBS)
def test_a_bad_line_gives_an_empty_one_and_is_said_in_the_end(asked, verb):
    _, good, long, empty = VERBS[verb]
    one = asked(verb, [good]).written()
    outcome = asked(verb, [good, BAD[0], long, good, BAD[1]], "--on-bad-line", "empty")
    lines = outcome.out.split("\n")
    assert outcome.code == 3, outcome
    assert len(lines) == 6
    bad = [json.loads(lines[at])["vector"] for at in (1, 2, 4)] if empty is None else [lines[at] for at in (1, 2, 4)]
    assert bad == [empty] * 3
    # With another in its batch, sums are in another order.
    assert [line[:8] for line in (lines[0], lines[3])] == [one[:8]] * 2
    said = outcome.err.splitlines()[-4:]  # a translator says before that an output reached its bound
    assert said[0] == "3 lines were bad and left empty:"
    assert said[1] == "  stdin:2: byte 2 of the line is not UTF-8"
    assert said[2].startswith("  stdin:3: ")
    assert said[3] == "  stdin:5: the line has a NUL: this is not text"


@pytest.mark.parametrize("verb", VERBS)
def test_it_stops_there_unless_it_is_told_otherwise_and_answers_what_is_before(asked, verb):
    _, good, long, _ = VERBS[verb]
    for bad in (BAD[0], long):
        outcome = asked(verb, [good, bad, good])
        assert (outcome.code, outcome.out.count("\n")) == (2, 1)
        assert outcome.last_line().startswith("stdin:2: ")
        assert outcome == asked(verb, [good, bad, good], "--on-bad-line", "stop")


def test_only_the_first_are_named_and_good_lines_say_nothing(asked):
    outcome = asked("classify", [b"the man"] + [b"\xff"] * 1234, "--on-bad-line", "empty")
    assert outcome.code == 3
    assert outcome.out.count("\n") == 1235
    said = outcome.err.splitlines()
    assert said[0] == "1,234 lines were bad and left empty, the first of them:"
    assert [line.partition(": ")[0] for line in said[1:]] == [f"  stdin:{number}" for number in range(2, 7)]
    well = asked("classify", [b"the man", b""], "--on-bad-line", "empty")
    assert (well.code, well.err, well.out.count("\n")) == (0, "", 2)


def test_the_array_of_vectors_keeps_its_rows(cli, models, tmp_path):
    (tmp_path / "lines").write_bytes(b"the man\n\n\xe4\nthe sun\n")
    file = tmp_path / "v.npy"
    outcome = cli("embed", models["masked"], "-f", tmp_path / "lines", "-o", file, "--on-bad-line", "empty")
    assert (outcome.code, outcome.out) == (3, f"4 vectors of 12 numbers are in {file}\n")
    assert outcome.err.startswith("2 lines were bad and left empty:\n  " + f"{tmp_path}/lines:2: the text is empty\n")
    np.testing.assert_array_equal(np.isnan(np.load(file)).any(axis=1), [False, True, True, False])


def test_gaps_of_a_bad_line_are_none(cli, models):
    raw = b"the <mask>\nthe moon\n\nm\xe4n\n<mask>\n"
    outcome = cli("fill", models["masked"], "--json", "--on-bad-line", "empty", stdin=raw)
    assert outcome.code == 3
    records = [json.loads(line) for line in outcome.out.splitlines()]
    assert [record["where"] for record in records] == [
        "stdin:1",
        "stdin:2",
        "stdin:4",
        "stdin:5",
    ]  # a blank one is none
    assert [record["gaps"] is None for record in records] == [False, True, True, False]
    assert outcome.err.splitlines()[0] == "2 lines were bad and left empty:"
    blocks = cli("fill", models["masked"], "--on-bad-line", "empty", "--top", 1, stdin=raw).out
    assert [len(block.splitlines()) for block in blocks.split("\n\n")] == [2, 0, 0, 2]


def test_figures_of_a_bad_line_are_null_in_json(asked):
    for verb in ("score", "score of pairs"):
        _, good, bad, _ = VERBS[verb]
        out = asked(verb, [bad, good], "--json", "--tokens", "--on-bad-line", "empty").out
        first, second = map(json.loads, out.splitlines())
        assert first.keys() == second.keys()
        assert {value for key, value in first.items() if key != "where"} == {None}
        assert None not in second.values()


def test_a_text_that_is_not_read_by_lines_has_no_bad_ones(cli, models):
    error = cli("score", models["character"], "--on-bad-line", "empty", stdin=b"the man").error(2)
    assert error == "--on-bad-line is for lines, and the whole text is one; give --lines, or leave it out"


def test_a_setting_that_is_wrong_is_no_bad_line(asked):
    assert asked("translate", [b"a"], "--on-bad-line", "empty", "--alpha", "-11").code == 2
    assert "on-bad-line" in asked("translate", [b"a"], "--on-bad-line", "skip").error(2)
