"""docs/paper.md, from section and equation to file and function: every place it names is there."""

import re
from pathlib import Path

import pytest

from pages import defined_in

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "paper.md"
TEXT = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""

# [`name`](../src/plainformer/file.py), the name being defined in that file.
NAMED = sorted(set(re.findall(r"\[`([^`\]]+)`\]\(([^)#\s]+\.(?:py|toml))[^)]*\)", TEXT)))
# `src/plainformer/file.py::name`, from the root.
WRITTEN = sorted({(name, f"../{path}") for path, name in re.findall(r"`([\w./-]+\.py)::([\w.]+)`", TEXT)})
LINKS = sorted(set(re.findall(r"\]\(([^)#\s]+)[^)]*\)", TEXT)))

SECTIONS = ["3.1", "3.2.1", "3.2.2", "3.2.3", "3.3", "3.4", "3.5", "5.1", "5.2", "5.3", "5.4", "6.1"]


def test_the_page_names_places() -> None:
    assert len(NAMED) + len(WRITTEN) > len(SECTIONS)


@pytest.mark.parametrize("section", SECTIONS)
def test_the_page_covers_the_section(section: str) -> None:
    assert re.search(rf"(?<![\d.]){re.escape(section)}(?![\d.]*\d)", TEXT)


@pytest.mark.parametrize(("name", "path"), NAMED + WRITTEN)
def test_a_name_on_the_page_is_defined_where_it_says(name: str, path: str) -> None:
    file = (PAGE.parent / path).resolve()
    assert file.is_file()
    if file.suffix == ".py" and name not in (file.name, str(file.relative_to(ROOT))):
        assert name.removesuffix("()") in defined_in(file)


@pytest.mark.parametrize("link", LINKS)
def test_a_link_on_the_page_leads_to_a_file(link: str) -> None:
    assert link.startswith(("https://", "http://")) or (PAGE.parent / link).exists()


def test_the_test_sees_functions_classes_methods_and_constants() -> None:
    found = defined_in(ROOT / "src" / "plainformer" / "nn" / "feed_forward.py")
    assert {"FeedForward", "FeedForward.inner", "FeedForward.__call__"} <= found
    assert "inner" not in found
