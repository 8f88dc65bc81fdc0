"""Why a request gets no answer, though nothing is wrong with it."""

from plainformer.errors import WorkError


class Overloaded(WorkError):
    """As many requests wait as may. `retry_after`: seconds, after which there may be room."""

    def __init__(self, waiting: int, retry_after: float) -> None:
        super().__init__(f"{waiting:,} texts are waiting already", fix="try again later")
        self.retry_after = retry_after


class DeadlinePassed(WorkError):
    """The time that a request had is over."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"there was no answer within {seconds:g} seconds", fix="try again later, or give more time")


class Stopped(WorkError):
    """The engine takes no more requests."""

    def __init__(self) -> None:
        super().__init__("the engine has stopped", fix="start it again")
