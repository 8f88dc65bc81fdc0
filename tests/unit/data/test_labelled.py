"""Labelled texts: read from two formats, checked, dropped and counted."""

import gzip
import json
from pathlib import Path

import pytest

from plainformer.data import Labelled, check_labels, clean_labelled, label_names, read_labelled
from plainformer.errors import InputError

PLAIN = "good\tWhat a film!\nbad\tNot again.\tNever.\n\n good \t  twice \nbad\t\n"
LABELS = ["good", "bad", "", "good", "bad"]
TEXTS = ["What a film!", "Not again.\tNever.", "", "  twice ", ""]


def write(folder: Path, name: str, content: str | bytes) -> Path:
    data = content.encode() if isinstance(content, str) else content
    (folder / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return folder


@pytest.mark.parametrize("name", ["train.tsv", "train.txt", "train.tsv.gz"])
@pytest.mark.parametrize("content", [PLAIN.encode(), b"\xef\xbb\xbf" + PLAIN.replace("\n", "\r\n").encode()])
def test_lines_of_label_tab_text(tmp_path: Path, name: str, content: bytes) -> None:
    """Further tabs are of the text; a mark, line ends of Windows and blanks around a label are not read."""
    for asked in (name, "train"):
        found = read_labelled(write(tmp_path, name, content), asked)
        assert (found.labels, found.texts) == (LABELS, TEXTS)
        assert found.origin[3] == f"{tmp_path / name}:4"


@pytest.mark.parametrize("name", ["train.jsonl", "train.jsonl.gz"])
def test_lines_of_json(tmp_path: Path, name: str) -> None:
    """Whole numbers are labels too; line breaks in a text stay; a blank line is a text of nothing."""
    rows = [{"label": "good", "text": "one\ntwo", "id": 7}, {"label": 10, "text": "x"}, {"text": "", "label": -1}]
    content = "\n\n".join(map(json.dumps, rows))
    found = read_labelled(write(tmp_path, name, content), "train")
    assert found.labels == ["good", "", "10", "", "-1"]
    assert found.texts == ["one\ntwo", "", "x", "", ""]
    assert found.origin[2] == f"{tmp_path / name}:3"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.tsv",
            "good\tx\nno tab here\n",
            r"a.tsv:2: the line has no tab; write the label, a tab and the text a line",
        ),
        ("a.tsv", "good\tx\n \tno label\n", r"a.tsv:2: the label is empty; give the text a label"),
        ("a.tsv", b"good\tx\nbad\t\xff\n", r"a.tsv:2: not UTF-8: 0xFF at byte 5"),
        ("a.tsv", "", r"a.tsv: the file is empty"),
        ("a.jsonl", '{"label": "x", "text": "y"}\n{"label": "x"}\n', r"a.jsonl:2: the object has no key 'text'"),
        ("a.jsonl", '{"label": " ", "text": "y"}\n', r"a.jsonl:1: the label is empty"),
        ("a.jsonl", '{"label": true, "text": "y"}\n', r"a.jsonl:1: 'label' holds a JSON boolean"),
        ("a.jsonl", '{"label": 1.5, "text": "y"}\n', r"a.jsonl:1: 'label' holds a JSON number"),
        ("a.jsonl", '{"label": "x", "text": 3}\n', r"a.jsonl:1: 'text' holds a JSON number"),
        ("a.jsonl", '["x", "y"]\n', r'a.jsonl:1: the line holds a JSON array.*write {"label"'),
    ],
)
def test_a_line_that_will_not_do_is_named(tmp_path: Path, name: str, content: str | bytes, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labelled(write(tmp_path, name, content), name)


def test_a_file_that_is_not_there_is_refused_with_what_is_close(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the folder is empty"):
        read_labelled(tmp_path, "train")
    write(tmp_path, "train.csv", "a,b")
    write(tmp_path, "valid.tsv", "a\tb")
    with pytest.raises(InputError, match=r"no labelled texts 'train' .*did you mean 'train.csv'"):
        read_labelled(tmp_path, "train")
    with pytest.raises(InputError, match=r"train.csv is in no format of labelled texts; known are .tsv, .txt, .jsonl"):
        read_labelled(tmp_path, "train.csv")
    write(tmp_path, "valid.jsonl", "{}")
    with pytest.raises(InputError, match=r"several files could be 'valid': valid.jsonl, valid.tsv"):
        read_labelled(tmp_path, "valid")
    assert len(read_labelled(tmp_path.parent, f"{tmp_path.name}/valid.tsv")) == 1
    with pytest.raises(InputError, match="there is no such folder"):
        read_labelled(tmp_path / "nowhere", "valid")
    with pytest.raises(InputError, match="must not be empty"):
        read_labelled(tmp_path, "")


# ---------------------------------------------------------------------------------------------------------------------
# Labels
# ---------------------------------------------------------------------------------------------------------------------


def labelled(*rows: tuple[str, str]) -> Labelled:
    origin = [f"train.tsv:{number}" for number in range(1, len(rows) + 1)]
    return Labelled([text for _, text in rows], [label for label, _ in rows], origin)


def test_labels_are_sorted_numbers_by_their_value() -> None:
    assert label_names(labelled(("b", "x"), ("a", "y"), ("b", "z"), ("", ""))) == ("a", "b")
    assert label_names(labelled(*((label, "x") for label in ("10", "9", "1")))) == ("1", "9", "10")
    assert label_names(labelled(*((label, "x") for label in ("10", "9", "b")))) == ("10", "9", "b")


def test_one_label_is_nothing_to_tell_apart() -> None:
    with pytest.raises(InputError, match="every text has the label 'a', and there is nothing to tell apart"):
        label_names(labelled(("a", "x"), ("a", "y")))
    with pytest.raises(InputError, match="no text has a label"):
        label_names(labelled(("", "")))


def test_a_held_out_label_that_training_does_not_have_is_named_with_its_line() -> None:
    check_labels(labelled(("good", "x"), ("", ""), ("bad", "y")), ("bad", "good"))
    with pytest.raises(InputError, match=r"train.tsv:2: the training set has no label 'goood'; did you mean 'good'\?"):
        check_labels(labelled(("bad", "x"), ("goood", "y")), ("bad", "good"))
    with pytest.raises(InputError, match=r"no label '7'; the labels there are bad, good"):
        check_labels(labelled(("7", "y")), ("bad", "good"))


def test_texts_labels_and_origins_are_of_one_length() -> None:
    with pytest.raises(InputError, match="2 texts, 1 labels and 3 origins"):
        Labelled(["a", "b"], ["x"], ["1", "2", "3"])


def test_a_fingerprint_is_of_labels_and_texts() -> None:
    one = labelled(("ab", "c"), ("a", "d"))
    assert one.fingerprint() == Labelled(one.texts, one.labels, ["elsewhere"] * 2).fingerprint()
    others = [labelled(("a", "bc"), ("a", "d")), labelled(("a", "d"), ("ab", "c")), labelled(("ab", "c"))]
    assert len({data.fingerprint() for data in (one, *others)}) == 4


# ---------------------------------------------------------------------------------------------------------------------
# The report
# ---------------------------------------------------------------------------------------------------------------------

ROWS = labelled(
    ("good", "one"),  # 2 tokens: kept
    ("", ""),  # a blank line: empty
    ("bad", "two"),  # 12 tokens: too long
    ("bad", " \t"),  # blank: empty
    ("odd", "three"),  # 11 tokens, exactly at the limit: kept, and the only one of its label
    ("good", "four"),  # no token: empty
    ("bad", "five"),  # 3 tokens: kept
    ("good", "six"),  # 4 tokens: kept
    ("bad", "one"),  # 1 token: kept
)
UNKNOWN = 1
IDS = [[7] * length for length in (2, 0, 12, 5, 11, 0, 3, 4, 1)]
IDS[0][0] = UNKNOWN


def test_every_text_is_kept_or_counted_under_one_reason() -> None:
    held_out = {"dev": labelled(("bad", "six"), ("good", "two"), ("odd", "one"))}
    cleaned = clean_labelled(ROWS, ids=IDS, max_tokens=11, unk_id=UNKNOWN, held_out=held_out)
    report = cleaned.report
    assert cleaned.data == ROWS.select([0, 4, 6, 7, 8])
    assert [len(ids) for ids in cleaned.ids] == [2, 11, 3, 4, 1]
    assert (report.read, report.kept, report.dropped) == (9, 5, {"empty": 3, "too long": 1})
    assert report.first == {"empty": "train.tsv:2", "too long": "train.tsv:3"}
    assert list(report.labels.items()) == [("bad", 2), ("good", 2), ("odd", 1)]
    assert report.once == {"odd": "train.tsv:5"}
    assert (report.lengths.total, report.lengths.maximum, report.unknown) == (21, 11, 1 / 21)
    assert report.held_out == {"dev": (2, 3)}
    assert report.lines() == [
        "9 texts read, 5 kept, 4 dropped",
        "  dropped as empty: 3 (first: train.tsv:2)",
        "  dropped as too long: 1 (first: train.tsv:3)",
        "  3 labels: bad 2 (40.0%), good 2 (40.0%), odd 1 (20.0%)",
        "  tokens a text: min 1, median 3, mean 4.2, 95 % 11, max 11; unknown 4.76 %",
        "  dev: of 3 texts, 2 are also in the training set",
        "  warning: the label 'odd' occurs only once (train.tsv:5), too rarely to be learnt",
    ]
    assert json.loads(json.dumps(report.as_dict()))["labels"] == {"bad": 2, "good": 2, "odd": 1}


def test_nothing_to_say_is_not_said() -> None:
    report = clean_labelled(labelled(("a", "x"), ("a", "y")), ids=[[5], [6, 7]], max_tokens=3).report
    assert report.unknown is None
    assert report.lines() == [
        "2 texts read, 2 kept, 0 dropped",
        "  1 labels: a 2 (100.0%)",
        "  tokens a text: min 1, median 1.5, mean 1.5, 95 % 2, max 2",
    ]


def test_what_cannot_be_cleaned_is_refused() -> None:
    with pytest.raises(InputError, match="9 texts with the ids of 8"):
        clean_labelled(ROWS, ids=IDS[:-1], max_tokens=3)
    with pytest.raises(InputError, match="max_tokens is 0"):
        clean_labelled(ROWS, ids=IDS, max_tokens=0)
    with pytest.raises(InputError, match=r"no text is left \(2 empty, 1 too long\)"):
        clean_labelled(ROWS.select([1, 2, 3]), ids=IDS[1:4], max_tokens=3)
