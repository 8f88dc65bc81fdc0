"""The table of weights, by hand: how arrays lie, which names are taken, and that a way in is a way out."""

from dataclasses import replace

import numpy as np
import pytest
from checkpoints import GPT

from plainformer.errors import InputError
from plainformer.interop.family import Layout, Row
from plainformer.interop.gpt2 import GPT2
from plainformer.interop.llama import LLAMA
from plainformer.interop.weight_map import Pair, located, pairs_of


def counted(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


# The layout, our shapes, the tokens of a vocabulary, the shape of theirs.
CASES: dict[str, tuple[Layout, list[tuple[int, ...]], int | None, tuple[int, ...]]] = {
    "as it is": ("same", [(3, 5)], None, (3, 5)),
    "a vector": ("same", [(7,)], None, (7,)),
    "transposed": ("transposed", [(3, 5)], None, (5, 3)),
    "side by side": ("same", [(3, 5), (3, 2), (3, 4)], None, (3, 11)),
    "side by side, transposed": ("transposed", [(3, 5), (3, 2)], None, (7, 3)),
    "vectors side by side": ("same", [(5,), (2,)], None, (7,)),
    "a table with padding": ("same", [(8, 3)], 6, (6, 3)),
    "an output projection with padding": ("transposed", [(3, 8)], 6, (6, 3)),
    "a row": ("one row", [(7,)], None, (1, 7)),
    "a row with padding": ("one row", [(8,)], 6, (1, 6)),
}


@pytest.mark.parametrize("name", CASES)
def test_the_way_in_is_the_way_out(name: str) -> None:
    layout, shapes, tokens, shape = CASES[name]
    ours = {f"part{number}": shape for number, shape in enumerate(shapes)}
    pair = Pair("theirs", shape, ours, layout, tokens)
    array = counted(*shape)
    parts = dict(pair.read(array))
    assert {key: part.shape for key, part in parts.items()} == ours
    assert np.array_equal(pair.write(parts), array)


def test_parts_are_told_apart_by_their_place() -> None:
    """[[0, 1, 2], [3, 4, 5]] transposed is [[0, 3], [1, 4], [2, 5]], and its columns are two parts."""
    pair = Pair("theirs", (2, 3), {"first": (3, 1), "second": (3, 1)}, "transposed", None)
    parts = dict(pair.read(counted(2, 3)))
    assert parts["first"].tolist() == [[0], [1], [2]]
    assert parts["second"].tolist() == [[3], [4], [5]]


def test_padding_is_zero() -> None:
    (padded,) = dict(Pair("theirs", (2, 3), {"table": (4, 3)}, "same", 2).read(counted(2, 3))).values()
    assert padded.tolist() == [[0, 1, 2], [3, 4, 5], [0, 0, 0], [0, 0, 0]]


def test_names_are_taken_with_the_prefix_and_without() -> None:
    pairs = pairs_of(GPT2, GPT)
    whole = {pair.theirs: pair.shape for pair in pairs}
    assert len(whole) == 4 + 2 * 12
    assert located(GPT2, pairs, whole, "here") == {name: name for name in whole}
    bare = {name.removeprefix("transformer."): shape for name, shape in whole.items()}
    assert located(GPT2, pairs, bare, "here") == {name: name.removeprefix("transformer.") for name in whole}


def test_a_copy_and_old_buffers_may_be_there() -> None:
    pairs = pairs_of(GPT2, GPT)
    whole = {pair.theirs: pair.shape for pair in pairs}
    extra = {"lm_head.weight": (11, 12), "transformer.h.1.attn.bias": (1, 1, 17, 17)}
    assert set(located(GPT2, pairs, whole | extra, "here")) == {*whole, "lm_head.weight"}
    untied = pairs_of(GPT2, replace(GPT, tie=False))
    with pytest.raises(InputError, match=r"here: .* disagree: lm_head\.weight is missing"):
        located(GPT2, untied, whole, "here")


def test_a_model_with_a_weight_that_a_family_has_no_row_for_is_refused() -> None:
    with pytest.raises(InputError, match=r"llama has no weights for layers\.0\.feed_forward\.inner\.bias, "):
        pairs_of(replace(LLAMA, table=tuple(row for row in LLAMA.table if ".bias" not in row.theirs)), GPT)


def test_a_row_of_which_the_model_has_but_a_part_is_no_row_of_it() -> None:
    table = [row for row in GPT2.table if row.theirs != "transformer.wte.weight"]
    table.append(Row("transformer.wte.weight", ("embedding.table", "a.second.table"), vocab="vocab"))
    with pytest.raises(InputError, match=r"gpt2 has no weights for embedding\.table$"):
        pairs_of(replace(GPT2, table=tuple(table)), GPT)
