"""Pages in a browser: Debian's chromium, or what CHROMIUM names, by Playwright. Nothing is downloaded.

Every page is opened from its file, with the network cut. A test fails if its page says anything on the console, throws
an error that nobody catches, or requests anything but itself.
"""

import importlib.util
import itertools
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from small_models import DESKTOP, TEXTS, carried

from plainformer.page.document import page_of

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 15_000  # milliseconds: what does not come by then will not come

SETTLED = """async ([text, serial, problem, patience]) => {
  const { store } = window.plainformer;
  const is_there = () => store.get("problem") === problem && (problem || store.get("result").serial > serial);
  const begun = Date.now();
  while (store.get("text") !== text || !is_there()) {
    if (Date.now() - begun > patience) throw new Error(`nothing followed but ${store.get("problem")}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
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

    def until(self, expression: str) -> None:
        """Wait until an expression, as of `state`, is true."""
        told = f"Promise.reject(new Error('in vain: ' + {expression!r}))"
        turn = f"(Date.now() - begun > {PATIENCE} ? {told} : new Promise((go) => setTimeout(go, 10)))"
        names = "const { store, ask } = window.plainformer; const begun = Date.now();"
        self.page.evaluate(f"async () => {{ {names} while (!({expression})) await {turn}; }}")

    def type(self, text: str, problem: str | None = None) -> None:
        """Another text, as somebody types it, and wait until its result is there, or this problem."""
        serial = self.state("result?.serial ?? 0")
        self.page.locator("#text").fill(text)
        self.page.locator("#text").blur()
        self.page.evaluate(SETTLED, [text, serial, problem, PATIENCE])

    def after_typing(self, act: Callable[[], Any]) -> None:
        """Type by keys, and wait for the result of what then stands there."""
        serial = self.state("result.serial")
        act()
        self.until(
            f"store.get('text') === document.getElementById('text').value && store.get('result').serial > {serial}"
        )

    def after(self, act: Callable[[], Any]) -> None:
        """Do something that gives another result of the same text, and wait for it."""
        serial, text = self.state("[result.serial, store.get('text')]")
        act()
        self.page.evaluate(SETTLED, [text, serial, None, PATIENCE])


Open = Callable[..., Opened]


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


@pytest.fixture(scope="module")
def start_page(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Open:
    """How `open_page` opens a page, which has to be closed."""
    folder, numbers = tmp_path_factory.mktemp("pages"), itertools.count()

    def start(
        kind: str,
        *,
        text: str | None = None,
        size: tuple[int, int] = DESKTOP,
        theme: Any = "light",
        before: str = "",
        drawn: str = "#page[data-ready]",
        file: Path | None = None,
    ) -> Opened:
        if file is None:
            file = folder / f"{next(numbers)}.html"
            first = TEXTS[kind] if text is None else text
            file.write_text(page_of(carried(kind), title=f"A {kind}", text=first), encoding="utf-8")
        width, height = size
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, offline=True, reduced_motion="reduce"
        )
        context.set_default_timeout(PATIENCE)
        opened = Opened(context.new_page())
        _listen(opened, file.as_uri())
        opened.page.add_init_script(before)
        opened.page.goto(file.as_uri())
        try:
            opened.page.wait_for_selector(drawn)
        except Exception as error:
            said = opened.page.locator("#page").inner_text()[:200]
            pytest.fail(f"the page of a {kind} did not open, but says {said!r}, and {opened.heard}: {error}")
        return opened

    return start


@pytest.fixture
def open_page(start_page: Open) -> Iterator[Open]:
    """`open_page(kind, text=…, size=PHONE, theme="dark")`: the page of one of `small_models`, drawn.

    `before` is a script that runs before the page's own, `drawn` what is waited for, `file` another page of the kind.
    """
    opened: list[Opened] = []

    def start(kind: str, **how: Any) -> Opened:
        opened.append(start_page(kind, **how))
        return opened[-1]

    yield start
    for one in opened:
        one.page.context.close()
    assert [line for one in opened for line in one.heard] == []


@pytest.fixture(scope="module")
def kept(start_page: Open) -> Iterator[dict[str, Opened]]:
    """Pages that tests of a file share."""
    opened: dict[str, Opened] = {}
    yield opened
    for one in opened.values():
        one.page.context.close()


@pytest.fixture
def pages(start_page: Open, kept: dict[str, Opened]) -> Iterator[Open]:
    """`pages(kind)`: the page of one of `small_models`, perhaps the same one as in other tests of the file."""

    def find(kind: str) -> Opened:
        if kind not in kept:
            kept[kind] = start_page(kind)
        return kept[kind]

    yield find
    heard = [line for one in kept.values() for line in one.heard]
    for one in kept.values():
        one.heard.clear()
    assert heard == []


def _listen(opened: Opened, own: str) -> None:
    """Keep what a page says, throws and requests beside itself. A blob is its own script, for its worker."""
    page, heard = opened.page, opened.heard
    page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: heard.append(f"error: {error}"))

    def requested(request: Any) -> None:
        if request.url != own and not request.url.startswith("blob:"):
            heard.append(f"request: {request.url}")

    page.on("request", requested)
