"""The pictures of docs/ are what the scripts of dev/ draw, their links lead somewhere, and no import goes upwards."""

import ast
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SVG = "{http://www.w3.org/2000/svg}"
PICTURES = {"figure1.svg": "draw_figure1.py", "rooms.svg": "draw_rooms.py"}

WRITTEN = {"kernels.md": "write_kernels.py", "results.md": "write_results.py"}

# Every part of the paper's Figure 1, by the class or method that computes it.
PARTS = {"Embedding", "Sinusoidal", "MultiHeadAttention", "FeedForward", "PostNorm", "Dropout"} | {
    *("Encoder", "EncoderLayer", "Decoder", "DecoderLayer", "Transformer", "Transformer.project", "cross_entropy"),
}


def picture(name: str) -> ElementTree.Element:
    return ElementTree.fromstring(DOCS.joinpath(name).read_text(encoding="utf-8"))


def links(name: str) -> list[str]:
    return [link.attrib["href"] for link in picture(name).iter(f"{SVG}a")]


@pytest.mark.parametrize(("name", "script"), [*PICTURES.items(), *WRITTEN.items()], ids=[*PICTURES, *WRITTEN])
def test_a_picture_is_what_its_script_draws(name: str, script: str, tmp_path: Path) -> None:
    drawn = tmp_path / name
    subprocess.run([sys.executable, ROOT / "dev" / script, drawn], check=True, capture_output=True, timeout=60)
    kept = DOCS.joinpath(name).read_text(encoding="utf-8")
    assert drawn.read_text(encoding="utf-8") == kept, f"draw it again: python dev/{script}"


@pytest.mark.parametrize("name", PICTURES)
def test_the_links_of_a_picture_lead_somewhere(name: str) -> None:
    assert links(name)
    for link in links(name):
        assert DOCS.joinpath(link.partition("#")[0]).exists(), link


def test_every_box_of_figure_1_is_a_link_to_the_definition_that_it_names() -> None:
    assert {link.partition("#")[2] for link in links("figure1.svg")} == PARTS
    boxes = [box for box in picture("figure1.svg").iter(f"{SVG}rect") if "box" in box.attrib["class"]]
    linked = [box for link in picture("figure1.svg").iter(f"{SVG}a") for box in link.iter(f"{SVG}rect")]
    assert len(boxes) == len(linked) > 10
    for link in links("figure1.svg"):
        path, _, name = link.partition("#")
        body = ast.parse(DOCS.joinpath(path).read_text(encoding="utf-8")).body
        for part in name.split("."):
            found = [node for node in body if isinstance(node, ast.ClassDef | ast.FunctionDef) and node.name == part]
            assert len(found) == 1, f"{path} does not define {name}"
            body = found[0].body


def test_no_arrow_between_rooms_goes_up() -> None:
    arrows = [path for path in picture("rooms.svg").iter(f"{SVG}path") if "data-from" in path.attrib]
    assert len(arrows) > 10
    for arrow in arrows:
        # Along a curve the second number of every pair is the height, which grows downwards.
        heights = [float(pair.split()[1]) for pair in re.findall(r"[\d.]+ [\d.]+", arrow.attrib["d"])]
        assert heights == sorted(heights)
        assert heights[0] < heights[-1], arrow.attrib


def test_every_room_is_in_the_picture() -> None:
    drawn = {link.removeprefix("../src/plainformer").strip("/") for link in links("rooms.svg")}
    rooms = {path.parent.name for path in ROOT.glob("src/plainformer/*/*.py")}
    on_the_ground = (picture("rooms.svg").findtext(f".//{SVG}a[@href='../src/plainformer']/{SVG}title") or "").split(
        ", "
    )
    assert rooms <= drawn | set(on_the_ground)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_has_its_own_background_for_light_and_dark_pages(name: str) -> None:
    text = DOCS.joinpath(name).read_text(encoding="utf-8")
    light, _, dark = text.partition("@media (prefers-color-scheme: dark)")
    assert all(".page { fill: #" in part for part in (light, dark))
    assert picture(name).findtext(f"{SVG}desc")
