"""Lines of text: where they end, and what is no text."""

import gzip

import pytest

from plainformer.data import read_lines
from plainformer.errors import InputError


def test_only_a_newline_ends_a_line(tmp_path):
    odd = "a\rb\x0bc\x0cd\x85e\u2028f\u2029g"
    path = tmp_path / "mono.txt"
    path.write_bytes(f"\ufeff{odd}\r\nsecond\n\nlast\r".encode())
    assert read_lines(path) == [odd, "second", "", "last"]


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
        (gzip.compress(b"a\n"), "gzip-compressed, and its name does not say so"),
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
