"""Which rows of a batch one of several processes makes; the others make theirs."""

from typing import NamedTuple


class Part(NamedTuple):
    """The `index`-th, from 0, of `of` parts, each with as many neighbouring rows."""

    index: int = 0
    of: int = 1

    def rows(self, rows: int) -> slice:
        """Those of a batch of so many, which the parts divide."""
        each = rows // self.of
        return slice(self.index * each, (self.index + 1) * each)


WHOLE = Part()
