"""Which rows of a batch one of several processes makes; the others make theirs."""

from typing import NamedTuple


class Part(NamedTuple):
    """The `number`-th, from 0, of `of` parts, each with as many neighbouring rows."""

    number: int = 0
    of: int = 1

    def rows(self, rows: int) -> slice:
        """Those of a batch of so many, which the parts divide."""
        each = rows // self.of
        return slice(self.number * each, (self.number + 1) * each)


WHOLE = Part()
