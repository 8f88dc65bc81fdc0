"""Lines of text: where they end, and what is no text."""

import gzip

import pytest

from plainformer.data import read_lines
from plainformer.data.formats import json_rows, json_texts, text_blocks
from plainformer.errors import InputError


def test_only_a_newline_ends_a_line(tmp_path):
    odd = "a\rb\x0bc\x0cd\x85e\u2028f\u2029g"
    path = tmp_path / "mono.txt"
    path.write_bytes(f"\ufeff{odd}\r\nsecond\n\nlast\r".encode())
    assert read_lines(path) == [odd, "second", "", "last"]


def test_lines_that_end_in_carriage_returns_alone_are_not_one_line(tmp_path):
    (tmp_path / "old").write_bytes(b"a\tb\rc\td\r")
    said = r"old: there is no newline in the file, and 2 carriage returns; a line ends at a newline; if these end"
    with pytest.raises(InputError, match=said):
        read_lines(tmp_path / "old")
    (tmp_path / "one").write_bytes(b"a\tb\r")
    assert read_lines(tmp_path / "one") == ["a\tb"]


def test_only_a_byte_order_mark_at_the_start_is_taken_off(tmp_path):
    path = tmp_path / "mono.txt"
    path.write_bytes("\ufeff\ufeffa\n\ufeffb\n".encode())
    assert read_lines(path) == ["\ufeffa", "\ufeffb"]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "mono.txt: the file is empty"),
        (b"\xef\xbb\xbf", "mono.txt: the file is empty"),
        ("gut\nschön\n".encode("latin-1"), "mono.txt:2: not UTF-8: 0xF6 at byte 4 of the line"),
        (b"\xef\xbb\xbfab\xff\n", "mono.txt:1: not UTF-8: 0xFF at byte 6 of the line"),
        (b"a\n\xed\xa0\x80\n", "mono.txt:2: not UTF-8: 0xED at byte 1"),
        ("a\n".encode("utf-16"), "byte order mark of UTF-16"),
        ("a\n".encode("utf-16-be").join([b"\xfe\xff", b""]), "byte order mark of UTF-16"),
        ("a\n".encode("utf-32"), "byte order mark of UTF-32"),
        (b"abc\nde\0f\n", "mono.txt:2: NUL byte at byte 3 of the line: the file is binary"),
        (gzip.compress(b"a\n", mtime=0), "gzip-compressed, and its name does not say so"),
    ],
)
def test_text_that_is_not_utf8_is_refused_with_its_place(tmp_path, content, said):
    path = tmp_path / "mono.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_lines(path)
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        (lambda data: data[:-9], "the gzip file is truncated"),
        (lambda data: data[:200] + bytes(40) + data[240:], "corrupt"),
        (lambda data: data[:-8] + bytes(4) + data[-4:], "is not gzip, or is corrupt"),  # the CRC
        (lambda data: b"<html>not found</html>", "named .gz and is not gzip"),
    ],
)
def test_a_damaged_gzip_file_is_refused(tmp_path, damage, said):
    path = tmp_path / "mono.txt.gz"
    path.write_bytes(damage(gzip.compress("".join(f"line {i * i}\n" for i in range(999)).encode())))
    with pytest.raises(InputError) as caught:
        read_lines(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


# Running text, in blocks.

EVERY_LINE_END = "one\r\ntwo\rthree\n\r\n\rfür\u2028🙂\x85\x0c\r"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 1000])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
def test_blocks_joined_are_the_text_with_one_kind_of_line_end(tmp_path, name, size):
    path = tmp_path / name
    data = b"\xef\xbb\xbf" + EVERY_LINE_END.encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    assert "".join(text_blocks(path, size)) == "one\ntwo\nthree\n\n\nfür\u2028🙂\x85\x0c\n"


def test_an_empty_file_has_no_blocks(tmp_path):
    path = tmp_path / "a.txt"
    for nothing in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(nothing)
        assert list(text_blocks(path)) == []


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 1000])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("gut\nschön\n".encode("latin-1"), "a.txt:2: not UTF-8: 0xF6 at byte 4 of the line"),
        ("gut\nä€🙂".encode() + b"\xe2\x82z\n\n", "a.txt:2: not UTF-8: 0xE2 at byte 10 of the line"),
        ("gut\n\nä".encode() + b"\xf0\x9f\x99", "a.txt:3: not UTF-8: 0xF0 at byte 3 of the line"),  # the end is missing
        (b"\xe2\x82\nab\n", "a.txt:1: not UTF-8: 0xE2 at byte 1 of the line"),
        (b"\xef\xbb\xbfab\xff\n", "a.txt:1: not UTF-8: 0xFF at byte 6 of the line"),
        (b"abc\nde\0f\nde\0", "a.txt:2: NUL byte at byte 3 of the line: the file is binary"),
        ("abc\nä".encode() + b"\0\n", "a.txt:2: NUL byte at byte 3 of the line: the file is binary"),
        ("a\n".encode("utf-16"), "byte order mark of UTF-16"),
        (gzip.compress(b"a\n", mtime=0), "gzip-compressed, and its name does not say so"),
    ],
)
def test_running_text_that_is_not_utf8_is_refused_with_its_place(tmp_path, content, said, size):
    path = tmp_path / "a.txt"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        list(text_blocks(path, size))
    assert said in str(caught.value)


def test_a_file_that_was_cut_inside_a_character_is_not_taken_for_latin_1(tmp_path):
    path = tmp_path / "a.txt"
    for read in (read_lines, lambda path: list(text_blocks(path, 3))):
        path.write_bytes("gut\nschö".encode()[:-1])
        with pytest.raises(
            InputError, match=r"a\.txt:2: .* inside which the file ends: it was cut off; copy or download"
        ):
            read(path)
        path.write_bytes("schö\ngut".encode("latin-1"))
        with pytest.raises(InputError, match=r"a\.txt:1: not UTF-8: 0xF6 at byte 4 of the line; convert the file"):
            read(path)


def test_pairs_that_are_no_objects_are_told_the_languages_that_are_asked_for(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('["a", "b"]\n', encoding="utf-8")
    with pytest.raises(InputError, match=r'write \{"en": "\.\.\.", "fr": "\.\.\."\} a line'):
        list(json_rows(path, "en", "fr"))


def test_json_texts_keep_their_line_breaks(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "a\\r\\n\\nb", "id": 3}\n\n{"text": ""}\n{"id": 1, "text": " c"}', encoding="utf-8")
    assert list(json_texts(path)) == [(1, "a\r\n\nb"), (2, ""), (3, ""), (4, " c")]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"text": "a"', "a.jsonl:2: broken JSON at column 13"),
        ('["a"]', 'a.jsonl:2: the line holds a JSON array, and an object is needed; write {"text": "..."} a line'),
        ('{"texts": "a", "n": 1}', "a.jsonl:2: the object has no key 'text'; its keys are 'texts', 'n'"),
        ('{"text": 7}', "a.jsonl:2: 'text' holds a JSON number, and a string is needed"),
        ('{"text": "a\\ud83d"}', "a.jsonl:2: 'text' holds half of a surrogate pair at character 2"),
    ],
)
def test_a_line_without_a_document_is_refused_with_its_place(tmp_path, line, said):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n' + line + "\n", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        list(json_texts(path))
    assert said in str(caught.value)
