"""Whether contestants of a row of decoding said the same: token for token, or nearly."""

from collections.abc import Sequence

from benchmarks.contest import ContestError, Result
from benchmarks.row import Check

Texts = Sequence[Sequence[int]]


def same_tokens(share: float, *, exact: Sequence[str], length: float = 0.0) -> Check:
    """A check of the fact "tokens", the ids of every text: so large a share of the texts is ours, id for id.

    Ours are those of the first contestant.

    It says the share of texts and of tokens of everyone, but holds only those named as `exact` to it: what has fewer
    bits chooses otherwise now and then, and after one other token all is another text. Where fewer than all need be
    the same, `length` is how far the number of tokens of all texts together may be from ours, relative to it.
    """

    def check(results: Sequence[Result]) -> None:
        ours = results[0].facts["tokens"]
        for result in results[1:]:
            theirs = result.facts["tokens"]
            texts = sum(map(_same, ours, theirs)) / len(ours)
            tokens = sum(map(_shared, ours, theirs)) / sum(map(len, ours))
            longer = sum(map(len, theirs)) / sum(map(len, ours)) - 1
            result.facts["same"] = {"texts": texts, "tokens": tokens, "longer": longer}
            what = f"{texts:.1%} of the texts are ours, {tokens:.1%} of the tokens, {longer:+.1%} in length"
            print(f"  {result.name}: {what}", flush=True)
            if len(theirs) != len(ours) or (result.name in exact and (texts < share or abs(longer) > length)):
                raise ContestError(f"{result.name}: {what}; {share:.1%} and {length:.1%} are asked for")

    return check


def _same(ours: Sequence[int], theirs: Sequence[int]) -> bool:
    return list(ours) == list(theirs)


def _shared(ours: Sequence[int], theirs: Sequence[int]) -> int:
    """How many tokens stand at the same place in both."""
    return sum(a == b for a, b in zip(ours, theirs, strict=False))
