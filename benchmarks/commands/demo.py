"""`plainformer demo`, the first time and the second, by its phases; installing is left out."""

from benchmarks.commands.command import Command, Place
from benchmarks.commands.process import Ran

# What is printed first of each phase, in turn, and what the phase before it is called. The first line of steps is that
# of step 25.
PHASES = (
    ("step ", "s to step 25"),
    ("Scoring the test set", "s training"),
    ("I like pizza, and", "s scoring"),
    ("The model is in", "s examples"),
)


def phases(ran: Ran) -> dict[str, float]:
    """The seconds of each phase, from the lines that the command printed."""
    found, before = {}, 0.0
    for begins, name in PHASES:
        at = next(seconds for seconds, line in ran.lines if line.startswith(begins))
        found[name], before = at - before, at
    return found


def _demo(place: Place) -> list[str]:
    return ["demo", "--run", str(place.own / "run")]


COMMANDS = {"demo": Command("`plainformer demo`, from its start to its last line", _demo, notes=phases)}
