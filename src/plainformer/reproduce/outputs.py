"""What a model of a row gave: a line for each sentence of the test set, or the loss of each block of a text.

Kept gzipped beside the record, and the same bytes for the same lines; its checksum is that of the text inside.
"""

import gzip
import hashlib
import zlib
from collections.abc import Sequence
from pathlib import Path

from plainformer.data.formats import one_line
from plainformer.errors import InputError
from plainformer.files import atomic


def text_of(lines: Sequence[str]) -> bytes:
    """The lines as a file has them, each ended by a newline."""
    return "".join(one_line(line) + "\n" for line in lines).encode()


def digest(lines: Sequence[str]) -> str:
    """SHA-256 of `text_of`, in hexadecimal digits."""
    return hashlib.sha256(text_of(lines)).hexdigest()


def write_outputs(path: Path, lines: Sequence[str]) -> str:
    """Write the lines, gzipped, whole or not at all; their `digest`."""
    text = text_of(lines)
    atomic.write_bytes(path, gzip.compress(text, compresslevel=9, mtime=0))
    return hashlib.sha256(text).hexdigest()


def read_outputs(path: Path) -> list[str]:
    """The lines. Raises InputError where the file is missing or damaged."""
    fix = "put the file back, or record the run again"
    try:
        text = gzip.decompress(path.read_bytes()).decode()
    except FileNotFoundError as missing:
        raise InputError(f"the outputs {path.name} are missing", where=str(path.parent), fix=fix) from missing
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as damage:
        raise InputError(f"the outputs cannot be read ({damage})", where=str(path), fix=fix) from damage
    return text.split("\n")[:-1]
