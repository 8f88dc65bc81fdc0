"""`plainformer translate`: one line out for every line in, as soon as it can be known, whatever the line is."""

import io
import math
import os
import select
import signal
import subprocess
import time
from dataclasses import dataclass

import pytest

import plainformer
from plainformer.cli.reading import ready_lines
from plainformer.errors import InputError

SENTENCES = ["the dog sees a book", "a cat likes the sea", "the man wants an apple and the house", "a child", "bird"]


@pytest.fixture(scope="module")
def answers(cli, trained):
    """The translation of each of SENTENCES, in one batch, from a file of plain lines."""
    text = "".join(line + "\n" for line in SENTENCES).encode()
    outcome = cli("translate", trained.folder, stdin=text)
    assert outcome.code == 0, outcome
    lines = outcome.out.split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(SENTENCES)
    # Were they all one answer, the tests below would compare nothing.
    assert len(set(lines)) > 1
    return lines


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("\r\n".join(SENTENCES) + "\r\n", id="windows line ends"),
        pytest.param("\ufeff" + "\n".join(SENTENCES) + "\n", id="a byte order mark"),
        pytest.param("\n".join(SENTENCES), id="no newline at the end"),
        pytest.param("\ufeff" + "\r\n".join(SENTENCES), id="all at once"),
    ],
)
def test_how_lines_end_and_begin_changes_nothing(cli, trained, answers, text):
    outcome = cli("translate", trained.folder, stdin=text.encode())
    assert outcome.out == "".join(line + "\n" for line in answers)


def test_a_file_and_arguments_give_what_standard_input_gives(cli, trained, answers, tmp_path):
    file = tmp_path / "text"
    file.write_text("\n".join(SENTENCES), encoding="utf-8")
    assert cli("translate", trained.folder, "--file", file).out.split("\n")[:-1] == answers
    assert cli("translate", trained.folder, *SENTENCES).out.split("\n")[:-1] == answers
    assert cli("translate", trained.folder / "average", "-f", file).out.split("\n")[:-1] == answers


GOES_ON = "a larger --max-margin or --max-ratio lets them go on"


def test_what_the_length_bound_cut_is_counted_and_named(cli, trained):
    """The tiny model, left with little room, ends some sentences and not others."""
    options = plainformer.load(trained.folder).translate_n_best(SENTENCES)
    cut = [number for number, found in enumerate(options, 1) if not found[0].finished]
    text = "".join(line + "\n" for line in SENTENCES).encode()
    said = cli("translate", trained.folder, stdin=text).err
    many = f"{len(cut)} translations reached the length bound and end"
    if len(cut) == 1:
        many = "1 translation reached the length bound and ends"
    assert said == (f"{many} there (first: stdin:{cut[0]}); {GOES_ON}\n" if cut else "")


@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_output_does_not_depend_on_the_batch(cli, trained, answers, batch):
    text = "\n".join(SENTENCES).encode()
    assert cli("translate", trained.folder, "--batch", batch, stdin=text).out.split("\n")[:-1] == answers


def test_empty_lines_stay_where_they_are(cli, trained, answers):
    text = "\n" + SENTENCES[0] + "\n\n  \t\n" + SENTENCES[1] + "\n\n"
    out = cli("translate", trained.folder, stdin=text.encode()).out
    assert out.split("\n") == ["", answers[0], "", "", answers[1], "", ""]


def test_a_line_ends_at_a_newline_and_nowhere_else(cli, trained):
    odd = "the dog\u2028sees\x0ca\x85book\rthe sea\x1e\x1c"
    outcome = cli("translate", trained.folder, stdin=(odd + "\n" + SENTENCES[0]).encode())
    assert (outcome.code, len(outcome.out.split("\n")), len(outcome.out.splitlines())) == (0, 3, 2)


def test_no_lines_give_no_lines(cli, trained):
    outcome = cli("translate", trained.folder, stdin=b"")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")


def test_every_line_has_its_n_best_with_falling_scores(cli, trained, answers):
    text = "\n".join([SENTENCES[0], "", SENTENCES[1]]).encode()
    out = cli("translate", trained.folder, "--n-best", "2", stdin=text).out
    rows = [line.split("\t") for line in out.split("\n")[:-1]]
    # An empty line too: who reads two lines for each line must not lose step.
    assert [len(row) for row in rows] == [2] * 6
    assert [rows[0][1], rows[4][1]] == answers[:2]
    assert rows[2:4] == [["0.0000", ""]] * 2
    scores = [float(score) for score, _ in rows]
    for best, second in ((0, 1), (4, 5)):
        assert 0 > scores[best] >= scores[second] > -math.inf
        assert rows[best] != rows[second]


@pytest.fixture(scope="module")
def sure(cli, trained, tmp_path_factory):
    """The micro model after more than three times the steps: it knows its dev set (perplexity 1.1, not 3.3).

    The micro model's own best translations are nearly as good as others, which rounding may bring to the front.
    """
    folder = tmp_path_factory.mktemp("sure") / "run"
    outcome = cli("train", trained.recipe, "--run", folder, "--set", "train.steps=100")
    assert outcome.code == 0, outcome
    return folder


@pytest.mark.parametrize("weights", ["bfloat16", "int8", "w8a8"])
def test_rounded_weights_translate_and_change_no_more_than_the_scores(cli, sure, weights):
    """Of a model that is sure of itself; a score is a sum of log-probabilities, each off by some thousandths."""
    lines = "\n".join(SENTENCES).encode()
    scored = [cli("translate", sure, "--n-best", 1, *extra, stdin=lines) for extra in ((), ("--weights", weights))]
    plain, rounded = ([line.split("\t") for line in outcome.out.splitlines()] for outcome in scored)
    assert [text for _, text in rounded] == [text for _, text in plain]
    assert len({text for _, text in plain}) > 1
    assert plain != rounded
    assert max(abs(float(a) - float(b)) for (a, _), (b, _) in zip(plain, rounded, strict=True)) < 0.2


def test_settings_of_the_search_are_used(cli, trained, answers):
    # A wide beam with a length penalty that adores length finds another translation of something.
    wide = cli(
        *("translate", trained.folder, "--beam", "5", "--length-penalty", "average", "--alpha", "9"),
        stdin="\n".join(SENTENCES).encode(),
    )
    assert len(wide.out.split("\n")) == len(SENTENCES) + 1
    assert wide.out.split("\n")[:-1] != answers


@pytest.mark.parametrize(
    ("options", "settings"),
    [
        (["--max-ratio", "0", "--max-margin", "2"], {"max_ratio": 0.0, "max_margin": 2}),
        (["--no-repeat-ngram", "1"], {"no_repeat_ngram": 1}),
        (["--repetition-penalty", "9"], {"repetition_penalty": 9.0}),
    ],
)
def test_options_are_the_settings_of_the_same_names(cli, trained, answers, options, settings):
    text = "\n".join(SENTENCES)
    out = cli("translate", trained.folder, *options, stdin=text.encode()).out.split("\n")[:-1]
    assert out == plainformer.load(trained.folder).translate(text.split("\n"), **settings)
    assert out != answers


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["a", "--file", __file__], "sentences and --file are both given"),
        (["--file", "nowhere.txt"], "nowhere.txt: there is no such file"),
        (["a", "--beam", "0"], "--beam is 0; give 1 to"),
        (["a", "--beam", "2", "--n-best", "3"], "--n-best is 3"),
        (["a", "--alpha", "-11"], "--alpha is -11.0; give -10 to 10"),
        (["a", "--n-best", "0"], "--n-best is 0; give 1 to"),
        (["a", "--alpha", "500"], "--alpha is 500.0; give -10 to 10"),
        (["a", "--max-margin", "99999999999999999999"], "--max-margin is 99999999999999999999; give 0 to 100000"),
        (["a", "--max-ratio", "nan"], "--max-ratio is nan"),
        (["a", "--no-repeat-ngram", "-1"], "--no-repeat-ngram is -1"),
        (["a", "--repetition-penalty", "0"], "--repetition-penalty is 0.0"),
        (["a", "--max-source-tokens", "-5"], "invalid value for '--max-source-tokens'"),
    ],
)
def test_a_request_that_makes_no_sense_is_one_line(cli, trained, options, said):
    assert said in cli("translate", trained.folder, *options).error(2)


class Trickle(io.BufferedReader):
    """A pipe into which `then` arrives just after its first bytes have been read."""

    def __init__(self, first: bytes, then: bytes) -> None:
        read, self.far_end = os.pipe()
        super().__init__(io.FileIO(read))
        os.write(self.far_end, first)
        self.then = then

    def read1(self, size: int = -1, /) -> bytes:
        assert select.select([self], [], [], 0)[0], "waits for more with a whole line in hand"
        data = super().read1(size)
        os.write(self.far_end, self.then)
        self.then = b""
        return data


def test_a_whole_line_does_not_wait_for_the_rest_of_the_next():
    with Trickle(b"the dog\n", b"the ca") as stream:
        assert next(ready_lines(stream, "stdin", 7)) == (["stdin:1"], ["the dog"])
        os.close(stream.far_end)


def test_the_lines_before_one_that_is_no_text_come_first():
    lines = ready_lines(io.BytesIO(b"the dog\na cat\nm\xe4n\nthe sea\n"), "stdin", 7)
    assert next(lines) == (["stdin:1", "stdin:2"], ["the dog", "a cat"])
    with pytest.raises(InputError, match="stdin:3: byte 2 of the line is not UTF-8"):
        next(lines)


def test_the_lines_before_one_that_is_too_long_come_first(cli, trained, answers):
    long = "the dog " * 50
    outcome = cli("translate", trained.folder, "--max-source-tokens", 40, stdin=f"the dog\n{long}\na cat\n".encode())
    first = cli("translate", trained.folder, "the dog").written()
    assert outcome.error(2, out=first).startswith("stdin:2: the line has ")


def test_lines_that_have_arrived_go_together_and_in_order():
    text = "".join(f"{number}\n" for number in range(20_011))
    chunks = [lines for _, lines in ready_lines(io.BytesIO(text.encode()), "stdin", 64)]
    assert [line for lines in chunks for line in lines] == text.split("\n")[:-1]
    assert max(map(len, chunks)) == 64


@dataclass(frozen=True)
class Conversation:
    """What a process answered, line by line, and how it took it when nobody listened any more."""

    answers: list[str]
    code: int
    err: str


@pytest.fixture(scope="module")
def conversation(spawn, trained):
    process = spawn("translate", trained.folder, stdin=subprocess.PIPE)
    answers = []
    for sentence in SENTENCES:
        process.stdin.write(sentence.encode() + b"\n")
        process.stdin.flush()
        # Nothing more is written until this answer is there.
        assert select.select([process.stdout], [], [], 60)[0], f"no answer to {sentence!r}"
        answers.append(process.stdout.readline().decode().removesuffix("\n"))
    process.stdout.close()
    process.stdin.write(b"the dog\n")
    process.stdin.flush()
    deadline = time.monotonic() + 60
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    process.stdin.close()
    err = process.stderr.read().decode()
    process.stderr.close()
    return Conversation(answers, process.wait(60), err)


def test_a_line_is_answered_before_the_next_is_written(conversation, answers):
    assert conversation.answers == answers


def test_a_reader_that_has_gone_is_no_error_to_speak_of(conversation):
    assert (conversation.code, conversation.err) == (141, "")


def test_ctrl_c_among_searches_in_threads_leaves_what_was_written(spawn, finished, trained, tmp_path):
    """Lines are searched 64 at a time. While the first are written nothing is searched, so they are read to the end."""
    (tmp_path / "lines.txt").write_text("the dog\n" * 40_000)
    process, first = spawn("translate", trained.folder, "-f", tmp_path / "lines.txt"), b""
    while first.count(b"\n") < 64:
        more = os.read(process.stdout.fileno(), 1000)
        assert more, process.stderr.read()
        first += more
    process.send_signal(signal.SIGINT)
    outcome = finished(process)
    assert (outcome.code, outcome.err) == (130, "plainformer: interrupted\n")
    lines = (first.decode() + outcome.out).split("\n")
    assert lines.pop() == ""
    assert 64 <= len(lines) < 40_000
    assert len(set(lines)) == 1
