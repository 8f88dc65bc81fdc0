"""Takes docs/page/*.png: pictures of the page that `plainformer look` writes, in Debian's chromium.

    python dev/take_screenshots.py demo=runs/demo captions=runs/captions …

Each NAME=MODEL is one of SCENES; those that are not given stay as they are. The models are trainings of recipes:

    demo         plainformer demo
    multi30k     plainformer train recipes/multi30k-tiny-quick.toml
    char-gpt     plainformer train recipes/char-gpt.toml
    shakespeare  plainformer train recipes/shakespeare-bpe.toml
    captions     plainformer train recipes/masked-lm.toml --text train.en (of Multi30k)
    authors      plainformer train classify --data passages.tsv (of Moby Dick and Shakespeare, with the author)

`server=URL` takes serving*.png, of the first page of a server (`plainformer serve runs/demo runs/char-gpt`).
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, sync_playwright

PICTURES = Path(__file__).parents[1] / "docs" / "page"
DESKTOP, PHONE = (1400, 1460), (390, 844)
SERVER = "server"
CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or "chromium"


@dataclass(frozen=True)
class Scene:
    """One picture.

    Attributes:
        name: of the file.
        model: which of those that are given.
        text: what is read.
        size: of the window, in pixels.
        theme: light or dark.
    """

    name: str
    model: str
    text: str
    size: tuple[int, int] = DESKTOP
    theme: Literal["light", "dark"] = "light"


CAPTION = (
    "A little boy in a red T-shirt and blue trousers is running across a green meadow with his big brown dog, while "
    "his parents are sitting on a bench in the shade of an old tree and watching him."
)
LINES = "ROMEO:\nBut soft, what light"
GAPS = "A man in a <mask> shirt is riding a <mask>."
PASSAGE = "My lord, the night is cold, and I have seen no sail upon the sea."

TEXTS = {
    "demo": "I like pizza",
    "multi30k": CAPTION,
    "char-gpt": LINES,
    "shakespeare": LINES,
    "captions": GAPS,
    "authors": PASSAGE,
}
WINDOWS = {"": DESKTOP, "-phone": PHONE}
THEMES: dict[str, Literal["light", "dark"]] = {"": "light", "-dark": "dark"}
SCENES = [
    Scene(model + window + theme, model, text, WINDOWS[window], THEMES[theme])
    for model, text in TEXTS.items()
    for window in WINDOWS
    for theme in THEMES
]

SERVED: list[tuple[str, tuple[int, int], Literal["light", "dark"]]] = [
    ("serving", (1200, 880), "light"),
    ("serving-phone-dark", PHONE, "dark"),
]


def main(given: list[str]) -> None:
    models = dict(one.split("=", 1) for one in given)
    if not models or set(models) - {SERVER, *(scene.model for scene in SCENES)}:
        raise SystemExit(__doc__)
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        if SERVER in models:
            take_served(browser, models[SERVER])
        for scene in SCENES:
            if scene.model not in models:
                continue
            path = Path(folder) / f"{scene.name}.html"
            command = [sys.executable, "-m", "plainformer", "look", models[scene.model], scene.text, "-o", path]
            subprocess.run(command, check=True)
            width, height = scene.size
            context = browser.new_context(
                viewport={"width": width, "height": height}, color_scheme=scene.theme, offline=True
            )
            page = context.new_page()
            page.goto(path.as_uri())
            take(page, scene)
            context.close()
        browser.close()


def take_served(browser: Browser, address: str) -> None:
    """Takes the pictures of a server's first page."""
    for name, (width, height), theme in SERVED:
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=theme)
        page = context.new_page()
        page.goto(address)
        page.locator("#text").fill("I like pizza. The dog sees it.")
        page.locator("#alternatives summary").click()
        page.locator("#prompt").fill("Call me ")
        page.locator("#write-go").click()
        page.locator("#alternatives li").first.wait_for(timeout=120_000)
        page.locator("#written[aria-busy=false]").wait_for(timeout=120_000)
        page.screenshot(path=PICTURES / f"{name}.png")
        context.close()


def take(page: Page, scene: Scene) -> None:
    """Takes the picture of a page that is open."""
    page.wait_for_selector("#page[data-ready]")
    path = PICTURES / f"{scene.name}.png"
    page.screenshot(path=path)
    print(path)


if __name__ == "__main__":
    main(sys.argv[1:])
