"""The option that says which model an adapter belongs to."""

from pathlib import Path
from typing import Annotated

import typer

BaseOption = Annotated[
    Path | None,
    typer.Option(
        "--base", metavar="FOLDER", help="The model that an adapter belongs to, if not where its own settings say."
    ),
]
