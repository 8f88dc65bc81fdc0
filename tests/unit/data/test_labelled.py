"""Labelled texts, read from two formats."""

import gzip
import json
from pathlib import Path

import pytest
from labelled_rows import labelled

from plainformer.data import Labelled, read_labelled
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


@pytest.mark.parametrize("name", ["TRAIN.TSV", "train.Tsv.GZ", "train.JSONL", "train.CSV"])
def test_a_format_is_known_by_its_name_in_capitals_too(tmp_path: Path, name: str) -> None:
    rows = {"c": "good,a film\n", "j": '{"label": "good", "text": "a film"}\n'}
    content = rows.get(name.split(".")[1][0].lower(), "good\ta film\n").encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    found = read_labelled(tmp_path, name)
    assert (found.labels, found.texts) == (["good"], ["a film"])


@pytest.mark.parametrize("label", ["good", '"good"'])
def test_quotes_of_csv_around_texts_in_a_tsv_are_said(tmp_path: Path, label: str) -> None:
    write(tmp_path, "a.tsv", f'{label}\t"a film"\n{label}\t"not, again"\n{label}\tnever\n')
    with pytest.raises(
        InputError, match=r"a\.tsv:1: 2 of 3 texts are in double quotes, as CSV has them; name the file"
    ):
        read_labelled(tmp_path, "a.tsv")
    write(tmp_path, "b.tsv", 'good\t"He said ""yes""."\nbad\tnot again\nbad\tnever\n')
    (note,) = read_labelled(tmp_path, "b.tsv").notes
    assert note.startswith("warning: 1 text with doubled quotes inside of quotes, as CSV has them (first: ")


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
        ("a.tsv", "", r"a\.tsv: the file holds no texts; give a file of labelled texts: label, tab, text a line"),
        ("a.tsv", "\ufeff\n \n", r"a\.tsv: the file holds no texts"),
        ("a.csv", "label,text\n", r"a\.csv: the file holds no texts"),
        ("a.jsonl", "\n\n", r"a\.jsonl: the file holds no texts"),
        ("a.tsv", "good\tx\rbad\ty\r", r"a\.tsv: there is no newline in the file, and 2 carriage returns; a line ends"),
        ("a.tsv", "good\tx\n \tno label\n", r"a.tsv:2: the label is empty; give the text a label"),
        ("a.tsv", b"good\tx\nbad\t\xff\n", r"a.tsv:2: not UTF-8: 0xFF at byte 5"),
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
    write(tmp_path, "train.xml", "a,b")
    write(tmp_path, "valid.tsv", "a\tb")
    with pytest.raises(InputError, match=r"no labelled texts 'train' .*did you mean 'train.xml'"):
        read_labelled(tmp_path, "train")
    with pytest.raises(
        InputError, match=r"train.xml is in no format of labelled texts; known are .tsv, .txt, .csv, .jsonl"
    ):
        read_labelled(tmp_path, "train.xml")
    write(tmp_path, "valid.jsonl", "{}")
    with pytest.raises(InputError, match=r"several files could be 'valid': valid.jsonl, valid.tsv"):
        read_labelled(tmp_path, "valid")
    assert len(read_labelled(tmp_path.parent, f"{tmp_path.name}/valid.tsv")) == 1
    with pytest.raises(InputError, match="there is no such folder"):
        read_labelled(tmp_path / "nowhere", "valid")
    with pytest.raises(InputError, match="must not be empty"):
        read_labelled(tmp_path, "")


def test_texts_labels_and_origins_are_of_one_length() -> None:
    with pytest.raises(InputError, match="2 texts, 1 labels and 3 origins"):
        Labelled(["a", "b"], ["x"], ["1", "2", "3"])


def test_a_fingerprint_is_of_labels_and_texts() -> None:
    one = labelled(("ab", "c"), ("a", "d"))
    assert one.fingerprint() == Labelled(one.texts, one.labels, ["elsewhere"] * 2).fingerprint()
    others = [labelled(("a", "bc"), ("a", "d")), labelled(("a", "d"), ("ab", "c")), labelled(("ab", "c"))]
    assert len({data.fingerprint() for data in (one, *others)}) == 4


def test_a_header_is_left_out_and_said(tmp_path):
    (tmp_path / "train.tsv").write_text("label\ttext\ngood\ta\tb\n", encoding="utf-8")
    found = read_labelled(tmp_path, "train")
    assert (found.labels, found.texts, list(found.origin)) == (["good"], ["a\tb"], [f"{tmp_path}/train.tsv:2"])
    assert found.notes == (f"{tmp_path}/train.tsv:1: a header (label, text), which is left out",)


def test_csv_is_read_by_its_header_or_as_label_and_text(tmp_path):
    path = tmp_path / "train.csv"
    path.write_text('id,review,sentiment\n7,"fine, and ""short""",good\n8,dull,bad\n', encoding="utf-8")
    found = read_labelled(tmp_path, "train")
    assert (found.labels, found.texts) == (["good", "bad"], ['fine, and "short"', "dull"])
    path.write_text('good,"a, b"\nbad,c\n', encoding="utf-8")
    assert read_labelled(tmp_path, "train").texts == ["a, b", "c"]
    path.write_text("good,a, b\nbad,c\n", encoding="utf-8")
    with pytest.raises(InputError, match=r"train.csv:1: the record has 3 columns, and 2 are needed: label and text"):
        read_labelled(tmp_path, "train")


@pytest.mark.parametrize(
    ("name", "header", "line"),
    [
        ("train.tsv", "text\tlabel", "fine work {i}\tgood"),
        ("train.tsv", "label\tid\ttext", "good\t{i}\tfine work {i}"),
        ("train.tsv", "id\tlabel\ttext", "{i}\tgood\tfine work {i}"),
        ("train.csv", "text,label", "fine work {i}, good"),
        ("train.csv", "id,label,text", '{i}, good, "fine work {i}"'),
    ],
)
def test_a_header_says_which_column_is_the_label(tmp_path: Path, name: str, header: str, line: str) -> None:
    lines = [header, *(line.format(i=i) for i in range(3))]
    (tmp_path / name).write_text("\n".join(lines) + "\n")
    found = read_labelled(tmp_path, "train")
    assert (found.labels, found.texts) == (["good"] * 3, [f"fine work {i}" for i in range(3)])
    assert "which is left out" in found.notes[0]


def test_a_tab_in_a_text_stays_whatever_the_header(tmp_path: Path) -> None:
    (tmp_path / "train.tsv").write_text("label\ttext\ngood\tfine\twork\n")
    assert read_labelled(tmp_path, "train").texts == ["fine\twork"]


@pytest.mark.parametrize(
    ("name", "line"), [("train.csv", '"a film, number {}",good\n'), ("train.tsv", "a film, no {}\tbad\n")]
)
def test_texts_in_the_place_of_labels_are_refused(tmp_path: Path, name: str, line: str) -> None:
    (tmp_path / name).write_text("".join(line.format(i) for i in range(40)))
    with pytest.raises(InputError, match="40 labels of several words in 40 texts"):
        read_labelled(tmp_path, "train")


def test_a_blank_record_is_an_empty_text(tmp_path: Path) -> None:
    (tmp_path / "train.csv").write_text("good,one\n\nbad,two\n")
    found = read_labelled(tmp_path, "train")
    assert (found.texts, list(found.origin)) == (
        ["one", "", "two"],
        [f"{tmp_path / 'train.csv'}:{n}" for n in (1, 2, 3)],
    )
