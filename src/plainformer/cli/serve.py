"""`plainformer serve`: models behind HTTP, for clients of LibreTranslate's API and of OpenAI's."""

import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plainformer.cli.translate import Weights
from plainformer.cli.work import begin_work, say_aside
from plainformer.errors import InputError

if TYPE_CHECKING:
    from plainformer.serve.house import House

KEY = "PLAINFORMER_API_KEY"

Models = Annotated[
    list[str],
    typer.Argument(metavar="MODEL...", help="Model folders, or runs; en-de=MODEL says a translator's languages."),
]
Host = Annotated[str, typer.Option(help="The address to be reached at; 0.0.0.0 is all of this machine's.")]
Port = Annotated[int, typer.Option(min=0, max=65535, help="The port; 0 is any that is free.")]
Threads = Annotated[int | None, typer.Option(min=1, help="Use so many cores [default: all].")]
ApiKey = Annotated[
    list[str] | None,
    typer.Option(
        help=f"Answer only who gives this key (may be given again). Others see it in the list of processes: {KEY} in "
        "the environment, keys with commas between them, hides it."
    ),
]
Rate = Annotated[int, typer.Option(min=0, help="Requests a minute of one client; 0 is no bound.")]
MostBody = Annotated[int, typer.Option(min=1, help="Bytes of a request.")]
MostCharacters = Annotated[int, typer.Option(min=1, help="Characters of the texts of a request.")]
MostTexts = Annotated[int, typer.Option(min=1, help="Texts of a request.")]
MostTokens = Annotated[int, typer.Option(min=1, help="Tokens of a text that is written.")]
Waiting = Annotated[int, typer.Option(min=1, help="Texts that may wait for a place; more are refused.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds until a request is given up.")]
Drain = Annotated[float, typer.Option(min=0.0, help="Seconds in which what is under way may end, after SIGTERM.")]
Origins = Annotated[list[str] | None, typer.Option(help="A site whose pages may ask (may be given again); * is all.")]
Hosts = Annotated[list[str] | None, typer.Option(help="Another name of this server (may be given again).")]
Look = Annotated[
    bool | None,
    typer.Option(
        "--look/--no-look",
        help="Give models to the page that looks inside, weights and all [default: where only this machine can ask].",
    ),
]
LogTexts = Annotated[bool, typer.Option("--log-texts", help="Have in the log what was asked, texts and all.")]
NoLog = Annotated[bool, typer.Option("--no-log", help="Write no line for each request.")]


def serve(
    models: Models,
    host: Host = "127.0.0.1",
    port: Port = 5000,
    weights: Weights = "float32",
    threads: Threads = None,
    api_key: ApiKey = None,
    requests_per_minute: Rate = 0,
    max_body: MostBody = 2**20,
    max_characters: MostCharacters = 100_000,
    max_texts: MostTexts = 256,
    max_tokens: MostTokens = 4096,
    waiting: Waiting = 1024,
    timeout: Timeout = 120.0,
    drain: Drain = 30.0,
    cors_origin: Origins = None,
    allow_host: Hosts = None,
    look: Look = None,
    log_texts: LogTexts = False,
    no_log: NoLog = False,
) -> None:
    """Put models behind HTTP.

    Translators answer as LibreTranslate does (/translate, /languages, /detect); language models as OpenAI's
    completions (/v1/completions), encoders as its embeddings (/v1/embeddings), classifiers at /v1/classify and masked
    language models at /fill. What each is asked and answers is at /openapi.json, what is counted at /metrics; a page
    to try all of them is at /.

    For every request there is a line of JSON on standard output, without texts and keys. SIGTERM lets what is under
    way end, and refuses what comes.
    """
    _use(threads)
    from plainformer.serve.app import Doors, application
    from plainformer.serve.house import Bounds
    from plainformer.serve.limits import Limits
    from plainformer.serve.security import LOOPBACK, Keys
    from plainformer.serve.server import address, bound, run

    keys = Keys.of([*(api_key or []), *filter(None, os.environ.get(KEY, "").split(","))])
    at = bound(host, port)
    begin_work()
    bounds = Bounds(texts=max_texts, characters=max_characters, seconds=timeout)
    limits, is_seen = Limits(waiting=waiting, max_tokens=max_tokens), host in LOOPBACK if look is None else look
    house = _house(models, weights, is_seen, limits=limits, bounds=bounds, needs_key=bool(keys))
    hosts = frozenset(LOOPBACK | {name.lower() for name in allow_host or []}) if host in LOOPBACK else frozenset()
    doors = Doors(
        keys,
        requests_per_minute,
        hosts,
        cors_origin or [],
        body=max_body,
        log=None if no_log else _print,
        log_texts=log_texts,
        drain=drain,
    )
    run(application(house, doors), at, drain=drain, ready=lambda: say_aside(f"ready at {address(at)}"))


def _print(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def _use(threads: int | None) -> None:
    """Have this process run on so many cores, before anything counts them. Raises InputError where it cannot."""
    if threads is None:
        return
    if not hasattr(os, "sched_setaffinity"):
        raise InputError("this system does not let a program choose its cores", where="--threads", fix="leave it out")
    cores = sorted(os.sched_getaffinity(0))
    if threads > len(cores):
        raise InputError(f"there are {len(cores)} cores", where="--threads", fix=f"give 1 to {len(cores)}")
    os.sched_setaffinity(0, cores[:threads])


def _house(models: Sequence[str], weights: str, is_seen: bool, **how: Any) -> "House":
    """The models, loaded; `is_seen`, that they may be looked at. Raises InputError for one that cannot be served."""
    from plainformer.decode.load import load
    from plainformer.decode.text_generator import TextGenerator
    from plainformer.decode.translator import Translator
    from plainformer.serve.house import given_pair, house_of, languages_of
    from plainformer.serve.looks import Looks

    found: dict[str, Any] = {}
    looks: dict[str, Looks] = {}
    for said in models:
        pair, folder = _split(said)
        name = _name(folder)
        if name in found:
            raise InputError(f"two models are called {name}", where=said, fix="rename the folder of one")
        model = load(folder, weights=weights, say=say_aside)
        if isinstance(model, TextGenerator | Translator) and model.unusable is not None:
            raise model.unusable
        languages = None
        if isinstance(model, Translator):
            languages = given_pair(pair) if pair else languages_of(folder)
            if languages is None:
                raise InputError("the model does not say its languages", where=said, fix=f"write en-de={folder}")
        elif pair:
            raise InputError("only a translator has languages", where=said, fix=f"write {folder}")
        found[name] = model, languages
        if is_seen:  # what travels is rounded from the weights as they were trained
            looks[name] = Looks(partial(load, folder) if weights != "float32" else lambda model=model: model)
    return house_of(found, looks=looks, **how)


def _split(said: str) -> tuple[str, Path]:
    """Languages, if they are given, and a folder; a folder may have a sign in its name."""
    pair, sign, folder = said.partition("=")
    return (pair, Path(folder)) if sign and not Path(said).exists() else ("", Path(said))


def _name(folder: Path) -> str:
    """What a model is called: its folder, or the run that it is in."""
    from plainformer.locate import PLACES

    whole = folder.resolve()
    return whole.parent.name if whole.name in PLACES else whole.name
