"""Arrays that travel in a page, packed in blocks of which each is unpacked when it is first asked for.

A block is an element of the page whose text is base64 of gzip of the numbers of its arrays, one behind the other, which
`views/recorded.js` reads. Numbers of several bytes lie in planes: all first bytes, then all second ones. The last bytes
of neighbours, which have sign and exponent, are alike, and so pack well.
"""

import base64
import gzip
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

FASTEST = 1  # of gzip: the numbers of a model hardly pack better with more time

Layout = dict[str, Any]
"""An array in a block: its `name`, `shape` and `dtype`."""


@dataclass
class Blocks:
    """Blocks by their names.

    Attributes:
        layout: the arrays of each, in their order.
        data: the text of each.
    """

    layout: dict[str, list[Layout]] = field(default_factory=dict)
    data: dict[str, str] = field(default_factory=dict)

    def put(self, block: str, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Pack arrays of float16, float32 or int32."""
        self.layout[block] = [
            {"name": name, "shape": list(array.shape), "dtype": array.dtype.name} for name, array in arrays.items()
        ]
        planes = b"".join(_planes(array) for array in arrays.values())
        self.data[block] = base64.b64encode(gzip.compress(planes, FASTEST, mtime=0)).decode("ascii")

    def elements(self) -> Iterator[str]:
        """Each block as it stands in a page."""
        for name, data in self.data.items():
            yield f'<script type="application/octet-stream" id="block {name}">{data}</script>\n'

    @property
    def size(self) -> int:
        """Bytes in a page, about."""
        return sum(map(len, self.data.values()))


def halves(array: NDArray[Any]) -> NDArray[Any]:
    """In float16, or as it is where that cannot hold it."""
    with np.errstate(over="ignore"):
        found = array.astype(np.float16)
    return found if np.isfinite(found).all() else array.astype(np.float32)


def _planes(array: NDArray[Any]) -> bytes:
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return little.view(np.uint8).reshape(-1, array.dtype.itemsize).T.tobytes()
