"""What README.md shows is there: its Python compiles, its commands exist, its links lead somewhere."""

import ast
import re
import shlex
from pathlib import Path

import pytest
from typer.main import get_command

import plainformer
from plainformer.cli.main import app
from plainformer.cli.recipes import find_recipe

ROOT = Path(__file__).parents[2]
README = ROOT.joinpath("README.md").read_text(encoding="utf-8")


def blocks(*languages: str) -> list[str]:
    """The code blocks of README.md in one of the languages."""
    return re.findall(rf"^```(?:{'|'.join(languages)})\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)


PYTHON = blocks("python", "py")
# A backslash continues a line; what follows # is for the reader.
SHELL = [
    shlex.split(line.strip().removeprefix("$ "), comments=True)
    for block in blocks("sh", "bash", "shell", "console")
    for line in block.replace("\\\n", " ").splitlines()
]
COMMANDS = [
    line[start + 1 : next((end for end in range(start, len(line)) if line[end] in ("|", ">", "&&", ";")), len(line))]
    for line in SHELL
    for start, word in enumerate(line)
    if word == "plainformer" and (start == 0 or line[start - 1] in ("|", "&&", ";"))
]


def test_the_readme_shows_python_and_commands() -> None:
    assert PYTHON
    assert COMMANDS


@pytest.mark.parametrize("code", PYTHON)
def test_python_in_the_readme_compiles_and_uses_public_names(code: str) -> None:
    tree = ast.parse(code)
    compile(tree, "README.md", "exec")
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "plainformer":
            assert node.attr in plainformer.__all__
        if isinstance(node, ast.ImportFrom) and node.module == "plainformer":
            assert {alias.name for alias in node.names} <= set(plainformer.__all__)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_a_command_in_the_readme_exists_with_its_options(words: list[str]) -> None:
    command = get_command(app)
    while words and words[0] in (commands := getattr(command, "commands", {})):
        command, words = commands[words[0]], words[1:]
    assert words == [] or words[0].startswith("-") or not hasattr(command, "commands"), f"no verb {words[0]}"
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    known |= {"--help", "--debug"}
    assert {word.partition("=")[0] for word in words if re.fullmatch(r"--?[a-z].*", word)} <= known
    if command.name == "train":
        assert find_recipe(str(ROOT / words[0]) if words[0].endswith(".toml") else words[0]).exists()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#\s]+)[^)]*\)", README))))
def test_a_link_in_the_readme_leads_to_a_file(link: str) -> None:
    assert link.startswith(("https://", "http://", "mailto:")) or (ROOT / link).exists()
