"""What a verb that computes does first: memory that stays, and programs that other processes have made."""

import sys

import typer

from plainformer.cli.progress import clear_line, show_waiting


def say_aside(line: str) -> None:
    """A line for the user that is no output."""
    typer.echo(f"plainformer: {line}", err=True)


def begin_work(*, one_heap: bool = True) -> None:
    """Set this process up to compute; `one_heap` is `runtime.keep_freed_memory`'s."""
    from plainformer.programs import kept
    from plainformer.runtime import cache_folder, keep_compiled_programs, keep_freed_memory
    from plainformer.waiting import watch

    keep_freed_memory(one_heap=one_heap)
    kept.keep_in(cache_folder() / "programs", say=say_aside)
    if sys.stderr.isatty():
        watch(show_waiting, clear_line)
    if kept.is_on():  # or JAX would say the same of its own folder, program by program
        keep_compiled_programs()
