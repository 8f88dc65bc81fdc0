"""How a command line is read and explained, where the library that reads it leaves something to be wished for."""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_args, get_type_hints

from typer.core import TyperCommand

from plainformer.errors import InputError

WORDS: dict[type, str] = {str: "TEXT", Path: "FILE", int: "NUMBER", float: "NUMBER"}
"""What stands for a value of each type in an explanation, where the verb itself names nothing better."""

STDIN = "-"
"""What names standard input where a text or a file is wanted; a file of that name is ./-."""

STDIN_NAME = "stdin"
"""What a message calls it."""

_COUNT = re.compile(r"\+?\d+(\.\d*)?[eE]\+?\d+")


def in_words(verb: Callable[..., None]) -> Callable[..., None]:
    """The verb, every argument and option of which has a word for its value, instead of the name of a type."""
    for hint in get_type_hints(verb, include_extras=True).values():
        wanted, *about = get_args(hint) or (hint,)
        types = [part for kind in _flat(wanted) for part in (kind, *get_args(kind)) if part in WORDS]
        for info in about:
            if types and getattr(info, "metavar", "") is None:
                several = not getattr(info, "param_decls", None) and "Argument" in type(info).__name__
                info.metavar = WORDS[types[0]] + (
                    "…" if several and any(get_args(kind) for kind in _flat(wanted)) else ""
                )
    return verb


def _flat(hint: Any) -> tuple[Any, ...]:
    """The members of a union; of `list[str]` it is that."""
    from types import UnionType

    return get_args(hint) if isinstance(hint, UnionType) else (hint,)


class Word(NamedTuple):
    """A value on the command line: of an option or, where that is None, of an argument.

    Attributes:
        name: how the option was written.
        at: which word it is in.
        inline: whether it stands behind the option's `=`, in the same word.
        value: it.
    """

    option: Any
    name: str
    at: int
    inline: bool
    value: str


class Verb(TyperCommand):
    """A verb, which refuses an option that is given twice where one of the two would be forgotten, and names that are
    empty, as a variable of a shell that was never set; takes 1e3 for 1000, and - for standard input; and explains
    itself in words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        args, seen, arguments = list(args), set[str](), 0
        for option, name, at, inline, value in self._words(args):
            if option is None:
                if not arguments and not value:
                    metavar = next((one.metavar for one in self.params if one.param_type_name == "argument"), None)
                    raise InputError(f"{metavar or 'the argument'} is empty", fix="name one")
                arguments += 1
                continue
            if option.name in seen and not getattr(option, "multiple", True):
                raise InputError(f"{max(option.opts, key=len)} is given twice", fix="give it once")
            seen.add(option.name)
            if not value:
                raise InputError(f"{name} is empty", fix=f"give it a {option.metavar or 'value'}, or leave it out")
            if option.metavar == WORDS[int] and _COUNT.fullmatch(value) and float(value).is_integer():
                args[at] = (f"{name}=" if inline else "") + str(int(float(value)))
        rest = super().parse_args(ctx, args)
        _read_stdin(ctx.params)
        return rest

    def _words(self, args: list[str]) -> Iterator[Word]:
        """The values on a command line, and the options that they are of."""
        options = {name: one for one in self.params for name in (*one.opts, *one.secondary_opts)}
        at, only_arguments = 0, False
        while at < len(args):
            name, equals, value = args[at].partition("=")
            option = options.get(name) if name.startswith("-") and not only_arguments else None
            if args[at] == "--" and not only_arguments:
                only_arguments = True
            elif option is not None and not getattr(option, "is_flag", True):
                if not equals and at + 1 < len(args):
                    at += 1
                    yield Word(option, name, at, False, args[at])
                elif equals:
                    yield Word(option, name, at, True, value)
            elif only_arguments or not name.startswith("-") or args[at] == "-":
                yield Word(None, "", at, False, args[at])
            at += 1

    # How it explains itself

    def get_short_help_str(self, limit: int = 45) -> str:
        """The first sentence, whole."""
        return first_sentence(self.help)

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        arguments = [one for one in self.params if one.param_type_name == "argument"]
        return ["[OPTIONS]", *(_named(one) if one.required else f"[{_named(one)}]" for one in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        rows: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": []}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                is_argument = one.param_type_name == "argument"
                name = _named(one) if is_argument else record[0]
                rows["Arguments" if is_argument else "Options"].append((name, _in_words(record[1])))
        for title, entries in rows.items():
            if entries:
                with formatter.section(title):
                    formatter.write_dl(entries)


def _read_stdin(given: dict[str, Any]) -> None:
    """Put nothing where `-` is given for a text or for the file of texts: without any, standard input is read.

    Raises:
        InputError: other texts, or a file, are given beside it.
    """
    if "file" not in given:
        return
    (texts,) = [name for name in ("text", "prompt") if name in given]
    said = given[texts]
    words = said if isinstance(said, list | tuple) else [] if said is None else [said]
    if STDIN in (*words, str(given["file"])):
        if len(words) + (given["file"] is not None) > 1:
            raise InputError("- is standard input, and something else is to be read too", fix="give one of them")
        given[texts] = given["file"] = None


FLAGS = {"beam_size": "--beam"}
"""Options that have not the names of their settings."""


@contextmanager
def in_options(given: Collection[str]) -> Iterator[None]:
    """While this lasts, an error of a setting of decoding that an option has `given` names the option."""
    from plainformer.decode.settings import SettingError

    try:
        yield
    except SettingError as error:
        if error.setting not in given:
            raise
        raise error.called(FLAGS.get(error.setting, f"--{error.setting.replace('_', '-')}"), None) from error


def first_sentence(text: str | None) -> str:
    """Up to the first full stop that ends a line or stands before a space."""
    found = re.match(r".*?[.](?=\s|$)", text or "", re.DOTALL)
    return " ".join((found.group() if found else text or "").split())


def _named(argument: Any) -> str:
    return argument.metavar or argument.name.upper()


def _in_words(help: str) -> str:
    """The bound of a number, which is named x otherwise."""
    return re.sub(r"(?<=[\[ ])x>=", "at least ", help)
