"""The page as one file: markup, style, script and the model, under a policy that lets it request nothing."""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from plainformer.page.bundle import Bundle
from plainformer.page.recorded import Recording
from plainformer.page.scripts import as_script

VIEWS = Path(__file__).parent / "views"
"""The modules of what is seen; `main.js` there is the page's script, and its worker's."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="page"><p id="problem">This page runs a model in the browser. It needs JavaScript, in a browser of 2024 or \
later: Chrome 94, Firefox 125, Safari 16.4.</p></main>
<script type="application/json" id="start">{start}</script>
<script type="application/json" id="{kind}">{model}</script>
<script>{script}</script>
{blocks}</body>
</html>
"""


def page_of(bundle: Bundle, *, title: str, text: str, written: Sequence[int] = ()) -> str:
    """The page in which a model runs, as the text of one HTML file.

    Args:
        bundle: the model (`page.bundle`).
        title: what stands above it.
        text: what is read first.
        written: ids that the output begins with, first.
    """
    return _page("bundle", bundle.to_json(), {"title": title, "text": text, "written": list(written)})


def recorded_page_of(recording: Recording, *, title: str, text: str) -> str:
    """The page of a text that was read, without the model. Its arrays stand at the end: all else is seen before.

    Takes `title` and `text` as `page_of`.
    """
    start = {"title": title, "text": text, "written": []}
    return _page("recording", recording.to_json(), start, "".join(recording.blocks.elements()))


def _page(kind: str, model: str, start: Mapping[str, Any], blocks: str = "") -> str:
    script, style = as_script(VIEWS / "main.js"), style_of_views()
    return _PAGE.format(
        policy=policy_of(script, style),
        title=_escaped(start["title"]),
        style=style,
        start=_json(start),
        kind=kind,
        model=model,
        blocks=blocks,
        script=script,
    )


def style_of_views() -> str:
    """The page's own style, then that of each group of views."""
    own = VIEWS / "style.css"
    return "\n".join(path.read_text(encoding="utf-8") for path in (own, *sorted({*VIEWS.glob("*.css")} - {own})))


def policy_of(script: str, style: str, **more: str) -> str:
    """Only what stands in the page itself runs and is shown; nothing is requested, and nothing can be sent, but what
    `more` allows (`connect_src="'self'"`)."""
    own = {
        "default-src": "'none'",
        "script-src": _hash(script),
        "style-src": _hash(style),
        "worker-src": "blob:",
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    } | {name.replace("_", "-"): source for name, source in more.items()}
    return "; ".join(f"{name} {source}" for name, source in own.items())


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False).replace("<", "\\u003c")


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
