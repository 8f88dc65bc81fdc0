"""`plainformer`: the verbs, and how an error reaches the user."""

import os
import re
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from plainformer import __version__
from plainformer.cli import (
    classify,
    data,
    demo,
    embed,
    evaluate,
    export,
    figures,
    fill,
    generate,
    import_,
    info,
    look,
    merge,
    plan,
    plot,
    recipes,
    replay,
    reproduce,
    score,
    serve,
    settings,
    train,
    translate,
    verify,
)
from plainformer.cli.usage import Verb, in_words
from plainformer.errors import PlainformerError, reason
from plainformer.runtime import collect_garbage_rarely
from plainformer.spelling import for_the_shell

NO_MEMORY = (
    "there is not enough memory; take a smaller model, or in training a smaller batch (data.batch_tokens, or "
    "data.batch_size)"
)


# Typer has no public name for the errors of usage, of which this is one.
UsageError: Any = typer.BadParameter.__base__


class Interrupted(SystemExit):
    """Ctrl-C, where the verb has not made an end of its own."""

    STATUS = 130


class Verbs(TyperGroup):
    """The verbs. Typer would end silently on Ctrl-C, and with 1 on a broken pipe, if it came to see them."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            _say("interrupted")
            raise Interrupted(Interrupted.STATUS) from None
        except BrokenPipeError:
            # The reader of our output has gone (`| head`): nothing more to say, and nothing to say it to.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(141)


app = typer.Typer(
    cls=Verbs,
    name="plainformer",
    help="The Transformer in plain sight: train a model on your text, measure it, use it.",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (
    *(train.train, replay.replay, translate.translate, generate.generate, score.score),
    *(fill.fill, classify.classify, embed.embed),
    *(plan.plan, serve.serve),
    *(evaluate.evaluate, reproduce.reproduce, info.info, merge.merge, demo.demo),
    *(look.look, plot.plot, figures.figures),
    *(import_.import_, export.export, verify.verify),
    *(recipes.recipes, settings.settings),
):
    app.command(verb.__name__.rstrip("_"), cls=Verb)(in_words(verb))
app.add_typer(data.app)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"plainformer {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[
        bool | None, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def run() -> None:
    """`main` for a process that ends with it."""
    try:
        main()
    except SystemExit as end:
        if "plainformer.programs.compiled" in sys.modules:
            from plainformer.programs.compiled import compile_no_more

            compile_no_more()
        if not isinstance(end, Interrupted):
            raise
        # At once: what JAX was in the middle of (an import, a program) does not survive being taken down in order.
        sys.stdout.flush()
        os._exit(Interrupted.STATUS)


def main() -> None:
    """Run the command line; bad input and failures at work end in one line on stderr and an exit code."""
    collect_garbage_rarely()
    for stream, errors in ((sys.stdout, "strict"), (sys.stderr, "backslashreplace")):
        if isinstance(stream, TextIOWrapper):  # text is UTF-8 here, whatever the locale; a file's name may not be
            stream.reconfigure(encoding="utf-8", errors=errors)
    warnings.formatwarning = lambda message, *_, **__: f"plainformer: {message}\n"
    debug = "--debug" in sys.argv[1:]
    # Anywhere on the line: it is no verb's option.
    arguments = [argument for argument in sys.argv[1:] if argument != "--debug"]
    try:
        with for_the_shell():
            sys.exit(app(args=arguments, prog_name="plainformer", standalone_mode=False) or 0)
    except UsageError as error:
        if debug:
            raise
        _end_usage(error)
    except PlainformerError as error:
        if debug:
            raise
        _end(str(error), error.exit_code)
    except MemoryError:
        if debug:
            raise
        _end(NO_MEMORY, 1)
    except OSError as failure:
        if debug:
            raise
        _end(f"{failure.filename or 'standard output'}: {reason(failure)}", 1)
    except Exception as unforeseen:
        if debug:
            raise
        if "RESOURCE_EXHAUSTED" in str(unforeseen):  # as the runtime of a device says it
            _end(NO_MEMORY, 1)
        first = (str(unforeseen).strip().splitlines() or [""])[0][:200]
        _end(f"an error in plainformer itself: {type(unforeseen).__name__}: {first}; --debug shows where", 1)


def _end_usage(error: Any) -> NoReturn:
    """What is wrong with the command line, and where it is explained; without any arguments, the explanation."""
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
        sys.exit(2)
    command = error.ctx.command_path if error.ctx else "plainformer"
    said = error.format_message().rstrip(".")
    for what, words in (("integer", "a whole number"), ("number", "a number")):
        said = re.sub(rf"Input should be a valid {what}\b.*", f"it must be {words}", said)
    said = said.replace("Value error, ", "")
    said = re.sub(r"Input should be greater than or equal to", "it must be at least", said)
    _end(f"{said[:1].lower()}{said[1:]}; see {command} --help", 2)


def _end(message: str, code: int) -> NoReturn:
    _say(message)
    sys.exit(code)


def _say(message: str) -> None:
    sys.stdout.flush()
    sys.stderr.write(f"plainformer: {message}\n")
    sys.stderr.flush()
