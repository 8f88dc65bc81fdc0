"""The pages that a server gives: a box for each thing that its models do, and the page of `look` for each model.

They hold nothing of the models, which they ask for; so they are the same for everybody, and need no key.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from plainformer.page.document import VIEWS, policy_of, style_of_views
from plainformer.page.scripts import as_script

FRONT = Path(__file__).parent / "front"
"""The modules of these pages, beside `VIEWS`: `main.js` is the first page's, `look.js` the other's."""

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>plainformer</title>
<link rel="icon" href="data:,">
<style>{style}</style>
</head>
<body>
<main id="page"><p id="problem">This page needs JavaScript, in a browser of 2024 or later: Chrome 94, Firefox 125, \
Safari 16.4.</p></main>
<script>{script}</script>
</body>
</html>
"""


@dataclass(frozen=True)
class ServedPage:
    """content: of HTML. headers: under which it is to be given; the policy lets it ask the server alone."""

    content: bytes
    headers: Mapping[str, str]


@cache
def front_page() -> ServedPage:
    style = (VIEWS / "style.css").read_text(encoding="utf-8") + (FRONT / "front.css").read_text(encoding="utf-8")
    return _page("main.js", style)


@cache
def look_page() -> ServedPage:
    return _page("look.js", style_of_views())


def _page(entry: str, style: str) -> ServedPage:
    script = as_script(FRONT / entry)
    policy = policy_of(script, style, connect_src="'self'", frame_ancestors="'none'")
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-cache",
    }
    return ServedPage(_PAGE.format(style=style, script=script).encode(), headers)
