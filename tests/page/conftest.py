"""Pages in a browser: Debian's chromium, or what CHROMIUM names, by Playwright. Nothing is downloaded.

Every page is opened from its file, with the network cut. A test fails if its page says anything on the console, throws
an error that nobody catches, or requests anything but itself.
"""

import importlib.util
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_models import TEXTS, carried

from plainformer.page.document import page_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 15_000  # milliseconds: what does not come by then will not come
PHONE, DESKTOP = (380, 760), (1280, 900)  # pixels

SETTLED = """async ([text, serial]) => {
  const { store } = window.plainformer;
  const is_there = () => store.get("text") === text && (store.get("result")?.serial > serial || store.get("problem"));
  while (!is_there()) await new Promise((resolve) => setTimeout(resolve, 10));
}"""


@dataclass
class Opened:
    """A page that was opened.

    Attributes:
        page: Playwright's.
        heard: what it said on the console, what it threw and what it requested: nothing, at the end of a test.
    """

    page: Any
    heard: list[str] = field(default_factory=list)

    def state(self, expression: str) -> Any:
        """What an expression in the page gives, of `store`, `result`, `ask` and `description`, as JSON can say it."""
        names = "const { store, ask, description } = window.plainformer; const result = store.get('result');"
        return self.page.evaluate(f"async () => {{ {names} return {expression}; }}")

    def type(self, text: str) -> None:
        """Another text, as somebody types it, and wait until its result is there, or a problem."""
        serial = self.state("result?.serial ?? 0")
        self.page.locator("#text").fill(text)
        self.page.locator("#text").blur()
        self.page.evaluate(SETTLED, [text, serial])

    def after(self, act: Callable[[], Any]) -> None:
        """Do something that gives another result, and wait for it."""
        serial, text = self.state("result?.serial ?? 0"), self.state("store.get('text')")
        act()
        self.page.evaluate(SETTLED, [text, serial])


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the browser is."""
    if importlib.util.find_spec("playwright") is None:
        pytest.skip("there is no Playwright to open pages with: pip install playwright")
    if named := os.environ.get("CHROMIUM"):
        return named
    if found := next(filter(None, map(shutil.which, BROWSERS)), None):
        return found
    pytest.skip(f"there is no browser to open pages in: install one of {', '.join(BROWSERS)}, or name one by CHROMIUM")


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    """One for each file of tests: Playwright keeps an event loop running, and other tests have their own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        # A container's root may not start the sandbox; the pages are our own.
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield started
        started.close()


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser: Any, tmp_path: Path) -> Iterator[Open]:
    """`open_page(kind, text=…, size=PHONE, theme="dark")`: the page of one of `small_models`, drawn."""
    opened: list[Opened] = []

    def start(kind: str, *, text: str | None = None, size: tuple[int, int] = DESKTOP, theme: Any = "light") -> Opened:
        file = tmp_path / f"{len(opened)}.html"
        first = TEXTS[kind] if text is None else text
        file.write_text(page_of(carried(kind), title=f"A {kind}", text=first), encoding="utf-8")
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, offline=True, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE)
        opened.append(Opened(context.new_page()))
        _listen(opened[-1], file.as_uri())
        opened[-1].page.goto(file.as_uri())
        opened[-1].page.wait_for_selector("#page[data-ready]")
        return opened[-1]

    yield start
    for one in opened:
        one.page.context.close()
    assert [line for one in opened for line in one.heard] == []


def _listen(opened: Opened, own: str) -> None:
    """Keep what a page says, throws and requests beside itself. A blob is its own script, for its worker."""
    page, heard = opened.page, opened.heard
    page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))

    def requested(request: Any) -> None:
        if request.url != own and not request.url.startswith("blob:"):
            heard.append(f"request: {request.url}")

    page.on("request", requested)
