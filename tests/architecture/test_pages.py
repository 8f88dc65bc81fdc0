"""README.md and the pages of docs/ say what is so: links lead somewhere, commands, settings and names exist."""

import ast
import re
import tomllib
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

import plainformer
from pages import GUIDES, PAGES, ROOT, Page, commands, defined_in, names_of_tests
from plainformer.cli.main import app
from plainformer.recipe import TASKS, parse_recipe
from plainformer.recipe.settings import settings_of
from plainformer.shipped import find_recipe

README = next(page for page in PAGES if page.name == "README.md")
LINKS = [(page, link) for page in PAGES for link in page.links]
# [`name`](../src/plainformer/file.py): the name is defined in that file.
DEFINED = [
    (page, *found)
    for page in GUIDES
    for found in sorted(set(re.findall(r"\[`([\w.]+)`\]\(([^)#\s]+\.py)\)", page.text)))
    if not found[0].endswith(".py")
]
PYTHON = [(page, code) for page in PAGES for code in page.blocks("python")]
SPANS = sorted({span for page in GUIDES for span in page.spans})
WRITTEN = [*(line for page in GUIDES for line in page.lines), *(span for span in SPANS if " " in span)]
COMMANDS = sorted({tuple(words) for line in WRITTEN for words in commands(line)})
OTHERS = sorted({line for page in GUIDES for line in page.lines if not commands(line)})

LONGEST = {"README.md": 250}
MOST_LINES = 400


def ids(value: Any) -> str | None:
    return value.name if isinstance(value, Page) else None


@cache
def page_at(path: Path) -> Page:
    return Page(path)


@cache
def keys() -> set[str]:
    """Every setting of every task, and every section."""
    found = {setting.key for kind in TASKS.values() for some in settings_of(kind).values() for setting in some}
    return found | {f"[{key.partition('.')[0]}]" for key in found if "." in key}


@cache
def verbs(command: Any = None) -> dict[tuple[str, ...], Any]:
    """Every command by its words."""
    command = command or get_command(app)
    inner = getattr(command, "commands", {})
    found = {(name, *words): one for name, verb in inner.items() for words, one in verbs(verb).items()}
    return {(): command, **found}


def options(command: Any) -> set[str]:
    named = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return named | {"-h", "--help", "--debug", "--version", "--install-completion", "--show-completion"}


@pytest.mark.parametrize("page", PAGES, ids=ids)
def test_a_page_is_not_long(page: Page) -> None:
    assert len(page.text.splitlines()) <= LONGEST.get(page.name, MOST_LINES)


@pytest.mark.parametrize(("page", "link"), LINKS, ids=ids)
def test_a_link_leads_to_a_file_and_a_heading(page: Page, link: str) -> None:
    if link.startswith(("https://", "http://", "mailto:")):
        return
    place, _, anchor = link.partition("#")
    target = (page.path.parent / place).resolve() if place else page.path
    assert target.exists()
    if anchor:
        assert anchor in page_at(target).anchors


def test_every_page_is_reached_from_the_readme() -> None:
    """By links from page to page, so that nothing is written for nobody."""
    reached, waiting = set(), [README.path]
    while waiting:
        if (path := waiting.pop()) in reached:
            continue
        reached.add(path)
        for link in page_at(path).links:
            target = (path.parent / link.partition("#")[0]).resolve()
            target = target / "README.md" if target.is_dir() else target
            if target.suffix == ".md" and target.exists():
                waiting.append(target)
    assert {page.path for page in PAGES} <= reached


@pytest.mark.parametrize(("page", "name", "path"), DEFINED, ids=ids)
def test_a_name_that_is_linked_is_defined_there(page: Page, name: str, path: str) -> None:
    file = (page.path.parent / path).resolve()
    assert file.is_file()
    assert name in defined_in(file)


def test_the_readme_s_tree_has_every_room_and_no_other() -> None:
    (tree,) = [block for block in README.blocks("") if block.startswith("src/plainformer/")]
    source = tree.partition("\nrecipes/")[0]
    package = ROOT / "src" / "plainformer"
    rooms = {path.name for path in package.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert set(re.findall(r"^  (\w+)/ ", source, flags=re.MULTILINE)) == rooms
    files = [name for line in source.splitlines() for name in re.findall(r"\b\w+\.py\b", line[:26])]
    assert [name for name in files if not (package / name).exists()] == []


def test_pages_have_python_and_commands() -> None:
    assert len(PYTHON) >= 8
    assert len(COMMANDS) >= 60


@pytest.mark.parametrize(("page", "code"), PYTHON, ids=ids)
def test_python_compiles_and_uses_public_names(page: Page, code: str) -> None:
    tree = ast.parse(code)
    compile(tree, page.name, "exec")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "plainformer":
            assert node.attr in plainformer.__all__
        if isinstance(node, ast.ImportFrom) and node.module == "plainformer":
            assert {alias.name for alias in node.names} <= set(plainformer.__all__)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_exists_with_its_options(words: tuple[str, ...]) -> None:
    """Placeholders, such as MODEL, stand for anything."""
    length = max(length for length in range(len(words) + 1) if words[:length] in verbs())
    command, rest = verbs()[words[:length]], words[length:]
    # What follows a verb that has verbs of its own is one of them, or an option.
    assert not hasattr(command, "commands") or not rest or rest[0].startswith("-") or rest[0] == "…", rest
    given = {word.partition("=")[0] for word in rest if re.fullmatch(r"--?[a-z].*", word)}
    assert given <= options(command)
    if command.name == "train" and rest and not rest[0].isupper() and rest[0] != "-":
        assert rest[0].startswith("runs/") or find_recipe(rest[0]).exists()


@pytest.mark.parametrize("span", [span for span in SPANS if re.match(r"--[a-z]", span)])
def test_an_option_is_one_of_some_command(span: str) -> None:
    known = set(chain.from_iterable(options(command) for command in verbs().values()))
    assert span.split()[0].partition("=")[0] in known


FILES = (".en", ".fr", ".json", ".jsonl", ".tsv", ".txt", ".csv", ".tmx", ".model")  # train.en is no setting of [train]
SECTIONS = {key[1:-1] for key in keys() if key.startswith("[")}
SETTINGS = sorted(
    {
        found[0]
        for text in [*SPANS, *(line for page in GUIDES for line in page.lines)]
        for found in re.findall(r"(?<![\w./*\"-])((\w+)\.[a-z]\w*)(?![\w./(])", text)
        if found[1] in SECTIONS and not found[0].endswith(FILES)
    }
)


def test_pages_name_settings() -> None:
    assert len(SETTINGS) >= 30


@pytest.mark.parametrize("key", SETTINGS)
def test_a_setting_exists(key: str) -> None:
    assert key in keys()


@pytest.mark.parametrize("code", [code for page in PAGES for code in page.blocks("toml")])
def test_a_recipe_on_a_page_is_one(code: str) -> None:
    assert parse_recipe(code).name


@pytest.mark.parametrize("line", OTHERS)
def test_every_other_line_of_shell_is_known(line: str) -> None:
    """`make` of a target, `pip install` of an extra, an environment that is made and entered, a file that is run."""
    command, *words = line.split("#")[0].split()
    if command == "make":
        targets = re.findall(r"^([\w-]+):", ROOT.joinpath("Makefile").read_text(), flags=re.MULTILINE)
        assert {word for word in words if "=" not in word and not word.startswith('"')} <= set(targets)
    elif command == "pip":
        check_extras(line)
    elif command.startswith("."):
        assert (ROOT / command).exists()
    else:
        assert line in ("python3 -m venv .venv", "source .venv/bin/activate")


def check_extras(line: str) -> None:
    project = tomllib.loads(ROOT.joinpath("pyproject.toml").read_text())["project"]
    assert set(re.findall(r"\.\[(\w+)\]", line)) <= set(project["optional-dependencies"])
    assert "-c" not in line.split() or (ROOT / line.split()[line.split().index("-c") + 1]).exists()


@pytest.mark.parametrize("span", [span for span in SPANS if span.startswith("pip install ")])
def test_an_extra_exists(span: str) -> None:
    check_extras(span)


@pytest.mark.parametrize("name", [span for span in SPANS if re.fullmatch(r"test_\w+", span)])
def test_a_test_that_is_named_exists(name: str) -> None:
    assert name in names_of_tests()


def test_headings_become_anchors_as_on_github(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# What is a `token`, in 2 words?\n\n## Twice\n\n```sh\n# no heading\n```\n\n## Twice\n")
    assert Page(path).anchors == {"what-is-a-token-in-2-words", "twice", "twice-1"}
