"""The pages that a reader has: README.md, CONTRIBUTING.md and docs/, with their links, commands and blocks of code."""

import ast
import re
import shlex
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

ROOT = Path(__file__).parents[1]

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e-?\d+)?")
_ENDS = ("|", ">", "&&", ";")  # where one command of a line ends


@dataclass(frozen=True)
class Page:
    """A page of Markdown."""

    path: Path

    @property
    def name(self) -> str:
        """Its place in the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def prose(self) -> str:
        """The page without its blocks of code."""
        return _FENCE.sub("", self.text)

    @cached_property
    def spans(self) -> list[str]:
        """What stands between single backticks, its line breaks as spaces."""
        return [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", self.prose)]

    @cached_property
    def links(self) -> list[str]:
        """Where the links and pictures of the page lead."""
        return sorted(set(re.findall(r"\]\(([^)\s]+)\)", self.prose)))

    @cached_property
    def anchors(self) -> set[str]:
        """The names of its headings, as GitHub makes them: `## What is a token?` is `what-is-a-token`."""
        found: set[str] = set()
        for heading in re.findall(r"^#{1,6} (.+)$", self.prose, flags=re.MULTILINE):
            words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
            name = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
            count = sum(other == name or re.fullmatch(rf"{re.escape(name)}-\d+", other) is not None for other in found)
            found.add(f"{name}-{count}" if count else name)
        return found

    def blocks(self, language: str) -> list[str]:
        """Its blocks of code in a language."""
        return [code for kind, code in _FENCE.findall(self.text) if kind == language]

    @property
    def lines(self) -> list[str]:
        """The lines of its blocks of shell, a continued one as one."""
        blocks = (block.replace("\\\n", " ") for block in self.blocks("sh"))
        return [line for block in blocks for line in block.splitlines() if line.strip()]


def _is_for_readers(path: Path) -> bool:
    """Records of decisions and of experiments name things as they were then."""
    return path.name != "what-failed.md" and "decisions" not in path.as_posix()


PAGES = [Page(path) for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md")))]
GUIDES = [page for page in PAGES if _is_for_readers(page.path.relative_to(ROOT))]
"""The pages that say how things are; the others say how they came to be."""


def commands(line: str) -> list[list[str]]:
    """The words of every call of `plainformer` in a line of shell; what follows # is for the reader."""
    words = shlex.split(line.strip().removeprefix("$ "), comments=True)
    while words and (words[0] == "srun" or re.match(r"[A-Z_]+=", words[0])):  # what starts it, and what it finds set
        words = words[1:]
    found = []
    for start, word in enumerate(words):
        if word == "plainformer" and (start == 0 or words[start - 1] in _ENDS):
            end = next((at for at in range(start, len(words)) if words[at] in _ENDS), len(words))
            found.append(words[start + 1 : end])
    return found


def is_same_drawing(drawn: str, kept: str) -> bool:
    """Whether two SVGs differ at most in digits that another processor rounds otherwise: a point of a line by 0.1, a
    shade by 1 of 255."""
    if _NUMBER.sub("0", drawn) != _NUMBER.sub("0", kept):
        return False
    pairs = zip(_NUMBER.findall(drawn), _NUMBER.findall(kept), strict=True)
    return all(abs(float(one) - float(other)) <= 1.0 for one, other in pairs)


@cache
def defined_in(path: Path) -> set[str]:
    """The names that a file defines at its top, and `Class.member` for what its classes have."""
    found: set[str] = set()

    def collect(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found.add(prefix + node.name)
            targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
            found.update(prefix + target.id for target in targets if isinstance(target, ast.Name))
            if isinstance(node, ast.ClassDef):
                collect(node.body, f"{prefix}{node.name}.")

    collect(ast.parse(path.read_text(encoding="utf-8")).body, "")
    return found


@cache
def names_of_tests() -> set[str]:
    """Every test, every file of tests, without its suffix."""
    files = list((ROOT / "tests").rglob("test_*.py"))
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in files]
    functions = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    return functions | {path.stem for path in files}
