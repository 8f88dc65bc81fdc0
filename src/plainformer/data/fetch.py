"""Download a corpus, whole and checked, or not at all.

The table below is the only knowledge of where corpora are; each file is known by its SHA-256, packed and unpacked.
"""

import difflib
import gzip
import hashlib
import http.client
import os
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from plainformer.errors import InputError, WorkError

_CHUNK = 1 << 16  # bytes
_TIMEOUT = 30.0  # seconds without a byte

Progress = Callable[[int, int], None]
"""Called with the bytes done and the bytes in all, over all files of a corpus."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of a corpus: `name` on this disk, `name.gz` at its source, or `name` where it is not packed there.

    Args:
        name: the file name, without `.gz`.
        packed_size: bytes to download.
        packed_sha256: checksum (hex) of the download; None where that is the text itself.
        sha256: checksum of the text.
    """

    name: str
    packed_size: int
    packed_sha256: str | None
    sha256: str

    @property
    def remote_name(self) -> str:
        """What it is called at its source."""
        return self.name if self.packed_sha256 is None else f"{self.name}.gz"


@dataclass(frozen=True)
class Corpus:
    """A corpus that can be downloaded.

    Args:
        about: what it is, and under what terms, in a line.
        base_url: the address of the folder that holds the files.
        files: its files.
    """

    about: str
    base_url: str
    files: tuple[RemoteFile, ...]


CORPORA = {
    "multi30k": Corpus(
        about="Multi30k task 1 (Elliott et al. 2016): image captions, English and German, 29,000 pairs; for research",
        # One commit, so that the address stands for these bytes for good.
        base_url="https://raw.githubusercontent.com/multi30k/dataset/c9be912dc05a3ebf9ae5bb5f7f58c1791cda43ab/data/task1/raw/",
        files=(
            RemoteFile(
                "train.en",
                568_929,
                "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
                "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
            ),
            RemoteFile(
                "train.de",
                637_044,
                "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
                "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
            ),
            RemoteFile(
                "val.en",
                21_650,
                "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
                "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
            ),
            RemoteFile(
                "val.de",
                24_681,
                "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
                "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
            ),
            RemoteFile(
                "test_2016_flickr.en",
                21_077,
                "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
                "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
            ),
            RemoteFile(
                "test_2016_flickr.de",
                22_890,
                "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
                "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
            ),
        ),
    ),
    "multi30k-tok": Corpus(
        about="the same text lower-cased, normalised and tokenised by Moses's scripts, as many papers score it",
        base_url="https://raw.githubusercontent.com/multi30k/dataset/a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/tok/",
        files=(
            RemoteFile(
                "train.lc.norm.tok.en",
                1_837_696,
                None,
                "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119",
            ),
            RemoteFile(
                "train.lc.norm.tok.de",
                2_150_008,
                None,
                "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505",
            ),
            RemoteFile(
                "val.lc.norm.tok.en", 64_608, None, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"
            ),
            RemoteFile(
                "val.lc.norm.tok.de", 77_273, None, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"
            ),
            RemoteFile(
                "test_2016_flickr.lc.norm.tok.en",
                63_307,
                None,
                "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2",
            ),
            RemoteFile(
                "test_2016_flickr.lc.norm.tok.de",
                71_917,
                None,
                "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4",
            ),
        ),
    ),
}


@dataclass(frozen=True)
class Fetched:
    """One file that is now there: `downloaded` just now, or already there before."""

    path: Path
    downloaded: bool


def fetch(name: str, folder: Path, *, base_url: str | None = None, progress: Progress | None = None) -> list[Fetched]:
    """Download the corpus `name` into `folder`, unpacked.

    A file that is already there (also as `.gz`) and is right is left alone; one that is there and differs is never
    overwritten, and nothing is then downloaded. A file appears under its name only when it is whole and checked.

    Args:
        name: a key of `CORPORA`.
        folder: where the files go; made if it is absent.
        base_url: another address (http or https) that serves the same files, instead of the corpus's own.
        progress: called with (bytes done, bytes in all) as the download goes.

    Raises:
        InputError: no such corpus, no such address, or a different file in the way.
        WorkError: the network, the server, the disk or a checksum fails.
    """
    if name not in CORPORA:
        near = difflib.get_close_matches(name, CORPORA, n=1)
        raise InputError(
            f"no corpus is called {name!r}",
            fix=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(CORPORA)}",
        )
    corpus = CORPORA[name]
    address = (base_url or corpus.base_url).rstrip("/") + "/"
    if not address.startswith(("https://", "http://")):
        raise InputError("the address must begin with https:// or http://", where=address)
    folder = Path(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise InputError("this is a file, and a folder is needed", where=str(folder)) from error
    except OSError as error:
        raise WorkError(f"the folder cannot be made ({error.strerror or error})", where=str(folder)) from error
    wanted = [(file, _already_there(file, folder)) for file in corpus.files]
    total = sum(file.packed_size for file, there in wanted if there is None)
    fetched, done = [], 0
    for file, there in wanted:
        if there is None:
            _download(file, address + file.remote_name, folder, _Counted(progress, done, total))
            done += file.packed_size
        fetched.append(Fetched(there or folder / file.name, downloaded=there is None))
    return fetched


@dataclass(frozen=True)
class _Counted:
    """The progress of one file, told as that of the whole corpus."""

    progress: Progress | None
    before: int
    total: int

    def __call__(self, done: int) -> None:
        if self.progress is not None:
            self.progress(self.before + done, self.total)


def _already_there(file: RemoteFile, folder: Path) -> Path | None:
    """The path of the right file, None if there is none; InputError if a different one is in its place."""
    plain, packed = folder / file.name, folder / f"{file.name}.gz"
    for path, open_ in ((plain, open), (packed, gzip.open)):
        if not path.exists():
            continue
        try:
            with open_(path, "rb") as stream:
                found = hashlib.file_digest(stream, "sha256").hexdigest()
        except (OSError, EOFError, zlib.error) as error:
            found = f"unreadable: {error}"
        if found != file.sha256:
            raise InputError(
                "a different file of this name is already there, and nothing is overwritten",
                where=str(path),
                fix="move it away, or fetch into another folder",
            )
        return path
    return None


def _download(file: RemoteFile, url: str, folder: Path, counted: _Counted) -> None:
    """Bring one file from `url` to `folder`: download, check, unpack, check, and only then put it under its name."""
    # Named by process, so that two downloads into one folder do not write to one file.
    packed, text = (folder / f"{name}.{os.getpid()}.part" for name in (f"{file.name}.gz", file.name))
    try:
        with packed.open("wb") as out:
            got = _copy(_received(url, file.packed_size, counted), out)
        _check(file.packed_sha256 or file.sha256, got, url)
        if file.packed_sha256 is None:
            os.replace(packed, folder / file.name)
            return
        # Unpacked only once its checksum is right: an unknown archive may unpack to any size.
        with gzip.open(packed, "rb") as stream, text.open("wb") as out:
            got = _copy(iter(lambda: stream.read(_CHUNK), b""), out)
        _check(file.sha256, got, url)
        os.replace(text, folder / file.name)
    except OSError as error:
        raise WorkError(f"the file cannot be written ({error.strerror or error})", where=str(folder)) from error
    finally:
        for part in (packed, text):
            part.unlink(missing_ok=True)


def _copy(chunks: Iterable[bytes], out: BinaryIO) -> str:
    """Write the chunks and return the SHA-256 (hex) of them all."""
    digest = hashlib.sha256()
    for chunk in chunks:
        out.write(chunk)
        digest.update(chunk)
    return digest.hexdigest()


def _received(url: str, size: int, counted: _Counted) -> Iterator[bytes]:
    """Yield what `url` serves in chunks, and stop soon after `size` bytes: no more of it can be right."""
    done = 0
    request = urllib.request.Request(url, headers={"User-Agent": "plainformer"})
    retry = "check the network and try again; files already complete are kept"
    # The body of the loop belongs to the caller, whose errors (a full disk) are not the network's: hence `_network`.
    with _network(url, retry):
        response = urllib.request.urlopen(request, timeout=_TIMEOUT)
    with response:
        promised = response.headers.get("Content-Length")
        while done <= size:
            with _network(url, retry):
                chunk = response.read(_CHUNK)
            if not chunk:
                break
            done += len(chunk)
            counted(min(done, size))
            yield chunk
    if promised is not None and promised.isdigit() and done < min(int(promised), size):
        raise WorkError(f"the download broke off after {done:,} of {int(promised):,} bytes", where=url, fix=retry)


@contextmanager
def _network(url: str, retry: str) -> Iterator[None]:
    """Put every way in which a network fails into one line."""
    try:
        yield
    except urllib.error.HTTPError as error:
        error.close()  # it holds the connection
        raise WorkError(f"the server answered {error.code} {error.reason}", where=url, fix=retry) from error
    except urllib.error.URLError as error:
        raise WorkError(f"the address cannot be reached ({error.reason})", where=url, fix=retry) from error
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise WorkError(
            f"the download broke off ({str(error) or type(error).__name__})", where=url, fix=retry
        ) from error


def _check(expected: str, got: str, url: str) -> None:
    if got != expected:
        raise WorkError(
            f"the checksum is wrong: expected sha256 {expected}, got {got}; nothing was kept",
            where=url,
            fix="try again, or fetch the corpus by hand",
        )
