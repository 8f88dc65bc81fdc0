"""Files of columns: which are read, and which lines cannot be right."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from plainformer.data import read_pairs
from plainformer.errors import InputError

PAIRS = [("a dog sleeps", "ein Hund schläft"), ("Where is it?", "Wo ist es?"), ("two cats", "zwei Katzen")] * 4


def write(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def refusal(path: Path, **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        read_pairs(path.parent, path.name, "en", "de", **options)
    return str(caught.value)


def pairs_of(path: Path, **options: Any) -> tuple[list[tuple[str, str]], str]:
    """The pairs of a file, and its notes."""
    found = read_pairs(path.parent, path.name, "en", "de", **options)
    return list(zip(found.source, found.target, strict=True)), "\n".join(found.notes)


# Which columns are read.

TAB = "\t"
TATOEBA = {
    "ids": "".join(f"{100 + i}\t{one}\t{7000 + i}\t{other}\n" for i, (one, other) in enumerate(PAIRS)),
    "attribution": "".join(f"{one}\t{other}\tCC-BY #{i} (CM)\n" for i, (one, other) in enumerate(PAIRS)),
    "languages": "".join(f"{i}\teng\t{one}\t{9 + i}\tdeu\t{other}\n" for i, (one, other) in enumerate(PAIRS)),
    "scores": "".join(f"1.0{i}\thttps://a.b/{i}\t{one}\t{other}\n" for i, (one, other) in enumerate(PAIRS)),
    "plain": "".join(f"{one}\t{other}\n" for one, other in PAIRS),
    "a trailing tab": "".join(f"{one}\t{other}{TAB * (i % 3)}\n" for i, (one, other) in enumerate(PAIRS)),
    "header": "id\tEnglish\tsource_id\tGerman\n"
    + "".join(f"{i}\t{one}\t{i}\t{other}\n" for i, (one, other) in enumerate(PAIRS)),
    "codes": "de\ten\n" + "".join(f"{other}\t{one}\n" for one, other in PAIRS),
}


@pytest.mark.parametrize("name", TATOEBA)
@pytest.mark.parametrize("packed", ["", ".gz"])
def test_the_columns_of_text_are_found(tmp_path, name, packed):
    found, notes = pairs_of(write(tmp_path / f"pairs.tsv{packed}", TATOEBA[name]))
    assert found == PAIRS
    where = {
        "ids": "1 and 3 of 4",
        "attribution": "0 and 1 of 3",
        "languages": "2 and 5 of 6",
        "scores": "2 and 3 of 4",
    }
    where |= {"header": "1 and 3 of 4", "codes": "1 and 0 of 2"}
    which = f"columns {where.get(name)}, counted from 0, are read as en and de"
    said = f"{which}, such as 'a dog sleeps' and 'ein Hund schläft'"
    assert (said in notes) if name in where else not notes
    assert ("pairs.tsv:1: a header" in notes.replace(".gz", "")) == (name in ("header", "codes"))


def test_numbers_are_text_where_there_is_no_other(tmp_path):
    path = write(tmp_path / "digits.tsv", "1\t2\n2\t3\n3\t4\n")
    assert pairs_of(path) == ([("1", "2"), ("2", "3"), ("3", "4")], "")
    said = refusal(write(tmp_path / "ids.tsv", "1\t2\tdog\n2\t3\tcat\n3\t4\tcow\n"))
    assert "ids.tsv: of its 3 columns only one holds text; say which are source and target" in said
    assert '--set "data.columns=[0, 1]"' in said


def test_named_columns_are_read_as_they_stand(tmp_path):
    path = write(tmp_path / "pairs.tsv", "en\tde\nx\ty\nu\tv\tw\n")
    found, notes = pairs_of(path, columns=(0, 1))
    assert found == [("en", "de"), ("x", "y"), ("u", "v")]
    assert "pairs.tsv:1: this looks like a header, and is read as a pair" in notes
    assert "1 line of 3 has more or fewer columns than the 2 of the others: 3 (3)" in notes


def test_columns_the_other_way_round_are_told_by_their_script(tmp_path):
    path = write(tmp_path / "hin.txt", "Wow!\tवाह!\tCC\nDuck!\tझुको!\tCC\nRun\tभागो\tBY\n")
    pairs = read_pairs(tmp_path, "hin.txt", "hi", "en")
    assert pairs.source == ["वाह!", "झुको!", "भागो"]
    assert "columns 1 and 0 of 3, counted from 0, are read as hi and en, such as 'वाह!' and 'Wow!'" in pairs.notes[0]
    pairs = read_pairs(tmp_path, "hin.txt", "hi", "en", columns=(0, 1))
    assert pairs.source == ["Wow!", "Duck!", "Run"]
    assert f"warning: {path}: by its script column 0 is en, and is read as hi" in pairs.notes
    assert read_pairs(tmp_path, "hin.txt", "en", "hi").source == pairs.source


def test_a_column_of_numbers_is_said(tmp_path):
    path = write(tmp_path / "pairs.tsv", TATOEBA["ids"])
    assert f"warning: {path}: column 0 holds numbers or addresses" in pairs_of(path, columns=(0, 1))[1]
    assert "column 0 holds numbers" in pairs_of(write(tmp_path / "two.tsv", "1\ta dog\n2\ttwo cats\n"))[1]


# Lines that cannot be right.


def test_a_tab_inside_a_sentence_is_refused_with_its_lines(tmp_path):
    lines = [f"{one}\t{other}" for one, other in PAIRS]
    lines[3], lines[6] = "a dog\tsleeps\tein Hund schläft", "two\tcats\tzwei\tKatzen"
    said = refusal(write(tmp_path / "pairs.tsv", "\n".join(lines)))
    assert "pairs.tsv:4: 2 lines of 12 have more or fewer columns than the 2 of the others: 4 (3), 7 (4)" in said
    assert "a tab inside a sentence would make a wrong pair in silence" in said
    lines = TATOEBA["attribution"].split("\n")
    lines[4] = "only a source\tCC-BY #4 (CM)"  # what follows is no translation
    assert "pairs.tsv:5: 1 line of 12 has" in refusal(write(tmp_path / "pairs.tsv", "\n".join(lines)))


def test_a_line_with_too_few_columns_says_how_many_there_are(tmp_path):
    lines = TATOEBA["ids"].split("\n")
    lines[2] = lines[5] = "7\tonly a source"
    said = refusal(write(tmp_path / "pairs.tsv", "\n".join(lines)))
    assert "pairs.tsv:3: the line has 2 tab-separated columns, and 4 are needed, here and on 1 line more" in said


def test_quotes_of_csv_in_a_tsv_are_said(tmp_path):
    quoted = "".join(f'"{one}"\t"{other}"\n' for one, other in PAIRS)
    said = refusal(write(tmp_path / "pairs.tsv", quoted))
    assert "pairs.tsv:1: 24 of 24 sentences are in double quotes, as CSV has them; name the file .csv" in said
    assert pairs_of(write(tmp_path / "pairs.csv", quoted)) == (PAIRS, "")
    few = TATOEBA["plain"] + '"He said ""yes""."\tEr sagte „ja“.\n"Stop!"\t„Halt!“\n'
    found, notes = pairs_of(write(tmp_path / "pairs.tsv", few))
    assert found[-2:] == [('"He said ""yes""."', "Er sagte „ja“."), ('"Stop!"', "„Halt!“")]
    assert notes.startswith("warning: 1 sentence with doubled quotes inside of quotes")
    assert "pairs.tsv:13" in notes


# CSV.


@pytest.mark.parametrize("head", ["sep=;", '"sep=;"', "\ufeffsep=;"])
def test_a_first_line_that_says_the_separator_is_no_pair(tmp_path, head):
    """As a spreadsheet writes it. Here there are more commas than semicolons."""
    rows = [("one, two", "eins, zwei"), ("three, four", "drei, vier")]
    path = write(tmp_path / "pairs.CSV", f"{head}\n" + "".join(f"{one};{other}\n" for one, other in rows))
    assert pairs_of(path) == (rows, "")
    assert read_pairs(tmp_path, path.name, "en", "de").origin[0] == f"{path}:2"


def test_a_comma_inside_a_sentence_is_not_called_a_tab(tmp_path):
    said = refusal(write(tmp_path / "pairs.csv", "a dog,ein Hund\na cat, too,eine Katze\na man,ein Mann\n"))
    assert "pairs.csv:2: 1 line of 3 has more or fewer columns than the 2 of the others: 2 (3)" in said
    assert "; what is between columns, inside a sentence and not in quotes, would make a wrong pair in silence" in said


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_csv_is_read_with_its_quotes(tmp_path, separator, end):
    rows = [
        ["id", "en", "de"],
        ["1", '"Hi; you,"" he\tsaid"', "hallo"],
        ["2", '5" pipe', '"zwei\n Zeilen"'],
        [""],
        ["3", '""', "x"],
    ]
    path = write(tmp_path / "a.csv", end.join(separator.join(row) for row in rows) + end)
    found = read_pairs(tmp_path, "a", "en", "de")
    assert found.source == ['Hi; you," he\tsaid', '5" pipe', "", ""]
    assert found.target == ["hallo", "zwei Zeilen", "", "x"]
    assert list(found.origin) == [f"{path}:{number}" for number in (2, 3, 5, 6)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('a,b\nc,"d\ne,f\n', "a.csv:2: the double quote that opens a cell here is never closed"),
        ('a,b\n"c"d,e\n', "a.csv:2: text follows the double quote that closes cell 1"),
        ("a,b\nc,d,e\n", "a.csv:2: 1 line of 2 has more or fewer columns than the 2 of the others: 2 (3)"),
        ("a,b\nc\n", "a.csv:2: the line has 1 column, and 2 are needed; give every line source and target"),
    ],
)
def test_broken_csv_is_refused_with_its_line(tmp_path, text, said):
    assert said in refusal(write(tmp_path / "a.csv", text))


def test_the_real_corpora_raise_no_alarm(shared_data):
    for folder, name, said in (
        ("tatoeba", "hin.txt", "columns 0 and 1 of 3"),
        ("hvg", "train.tsv", ""),
        ("hvg", "val.tsv", ""),
    ):
        notes = " ".join(read_pairs(shared_data / folder, name, "en", "hi").notes)
        assert said in notes
        assert "warning" not in notes
