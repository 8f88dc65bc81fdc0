"""A page without its model: what is recorded of a text is what the model computed, in blocks that can be read back."""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_engine_models import TEXT

import plainformer
from plainformer.decode.load import USERS
from plainformer.folder import ModelFolder
from plainformer.inspect.look import Look
from plainformer.page.blocks import Blocks, halves
from plainformer.page.recorded import LENS, Recording, largest, recording_of
from plainformer.tokenizer import SpecialTokens, train_character
from random_models import content_of

Sizes = dict[str, Any]
CASES: dict[str, tuple[Sizes, str]] = {
    "translator": ({"d_model": 24, "d_ff": 20, "heads": 3, "encoder_layers": 1, "decoder_layers": 2}, "a lazy fox"),
    "writer": ({"d_model": 16, "d_ff": 20, "heads": 4, "kv_heads": 2, "layers": 2, "context": 12}, "a lazy fox: ü!"),
    "filler": (
        {"d_model": 12, "d_ff": 20, "heads": 2, "layers": 1, "context": 40, "mlm_transform": True},
        "a <mask>azy fox",
    ),
    "classifier": ({"d_model": 12, "d_ff": 20, "heads": 2, "layers": 1, "context": 40, "labels": ("x", "y")}, "a fox"),
}


def seen_of(kind: str) -> tuple[Look, ModelFolder]:
    sizes, text = CASES[kind]
    tokenizer = train_character([TEXT], special=SpecialTokens(mask="<mask>"))
    content = content_of(sizes, tokenizer)
    return USERS[type(content.model)].of(content).look(text), content


def arrays_of(recording: Recording, block: str) -> dict[str, np.ndarray]:
    """As `views/recorded.js` reads a block."""
    planes = gzip.decompress(base64.b64decode(recording.blocks.data[block]))
    found, start = {}, 0
    for one in recording.blocks.layout[block]:
        dtype = np.dtype(one["dtype"])
        size = int(np.prod(one["shape"]))
        own = np.frombuffer(planes, np.uint8, size * dtype.itemsize, start).reshape(dtype.itemsize, -1)
        found[one["name"]] = np.frombuffer(own.T.tobytes(), dtype).reshape(one["shape"])
        start += size * dtype.itemsize
    assert start == len(planes)
    return found


@pytest.mark.parametrize("kind", CASES)
def test_every_head_is_recorded_as_it_was_seen(kind: str) -> None:
    seen, content = seen_of(kind)
    recording = recording_of(seen, content, "it is large.")
    for name, weights in seen.attention.items():
        heads = weights.shape[1]
        output = arrays_of(recording, f"{name}/output")
        np.testing.assert_array_equal(output["heads"], halves(seen[f"{name}/heads"][0]))
        for head in range(heads):
            own = arrays_of(recording, f"{name}/{head}")
            np.testing.assert_array_equal(own["weights"], weights[0, head].astype(np.float16))
            keys = seen[f"{name}/key"][0]
            np.testing.assert_array_equal(own["key"], halves(keys[head * len(keys) // heads]))
        assert recording.told["pass"]["names"][f"{name}/scores"] == list(weights.shape[1:])


@pytest.mark.parametrize("kind", CASES)
def test_what_was_added_sums_to_the_logits(kind: str) -> None:
    seen, content = seen_of(kind)
    recording = recording_of(seen, content, "it is large.")
    told = arrays_of(recording, "told")
    values, ids = told["attribution/values"], told["attribution/ids"]
    assert len(recording.told["parts"]) == len(values)
    logits = np.take_along_axis(seen["logits"].reshape(len(ids), -1), ids, axis=-1)
    np.testing.assert_array_equal(told["attribution/logits"], logits)
    np.testing.assert_allclose(values.sum(axis=0), logits, atol=1e-5 * np.abs(values).max())
    if kind != "classifier":
        for name in ("ids", "logprobs"):
            np.testing.assert_array_equal(told[f"lens/{name}"][-1], told[f"predictions/{name}"][:, :LENS])


def test_what_is_told_is_the_search_and_what_was_cut() -> None:
    seen, content = seen_of("translator")
    told = recording_of(seen, content, "it is large.").told
    best = told["search"]["hypotheses"][0]
    node = told["search"]["nodes"][best["node"]]
    assert node["total"] == pytest.approx(best["logprob"])
    path = []
    while node["parent"] >= 0:
        path.append(node)
        node = told["search"]["nodes"][node["parent"]]
    assert [one["token"] for one in reversed(path)][: len(best["ids"])] == best["ids"]
    assert sum(one["logprob"] for one in path) == pytest.approx(best["logprob"], rel=1e-5)
    seen, content = seen_of("writer")
    told = recording_of(seen, content, "it is large.").told
    assert (told["pass"]["cut"], len(told["pass"]["target"])) == (6, 8)
    assert told["description"]["recorded"] is True
    text = CASES["writer"][1]
    recording = recording_of(seen, content, "it is large.")
    np.testing.assert_array_equal(arrays_of(recording, "next")["logits"], seen["logits"][0, -1])
    assert told["next"]["place"] == len(content.source_tokenizer.encode(text))


def test_a_small_map_has_the_largest_of_what_a_cell_stands_for() -> None:
    weights = np.random.default_rng(0).random((2, 11, 5))
    found = largest(weights, 4)
    rows, columns = np.arange(11) * 4 // 11, np.arange(5) * 4 // 5
    for row, column in np.ndindex(4, 4):
        own = weights[:, rows == row][:, :, columns == column]
        np.testing.assert_array_equal(found[:, row, column], own.max(axis=(1, 2)))


def test_what_float16_cannot_hold_stays_float32() -> None:
    assert halves(np.array([1.0, 7e4], np.float32)).dtype == np.float32
    blocks = Blocks()
    blocks.put("a", {"x": halves(np.array([1.0, 2.0], np.float32))})
    assert blocks.layout == {"a": [{"name": "x", "shape": [2], "dtype": "float16"}]}
    (element,) = blocks.elements()
    assert element.startswith('<script type="application/octet-stream" id="block a">')


def test_a_look_writes_its_page(tmp_path: Path) -> None:
    seen, _ = seen_of("filler")
    saved = seen.save_page(tmp_path / "page.html", title="Mine")
    assert not saved.is_recorded
    assert saved.size == (tmp_path / "page.html").stat().st_size
    small = plainformer.save_page(seen.subject.user, tmp_path / "small.html", seen.text, max_size=0.001)
    assert small.is_recorded
    (start,) = [line for line in small.path.read_text().splitlines() if 'id="start"' in line]
    assert json.loads(start.split(">", 1)[1].removesuffix("</script>"))["text"] == seen.text
