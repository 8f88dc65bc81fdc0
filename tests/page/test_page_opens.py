"""A page opens from its file, shows its model, and neither requests nor runs anything that is not its own."""

from pathlib import Path
from typing import Any

import pytest
from small_models import KINDS, TEXTS, carried, user

from plainformer.page.document import page_of
from plainformer.page.save import save_page

TRIED = {
    "eval('window.ran = 1')": "script-src",
    "fetch('https://example.org/').catch(() => 0)": "connect-src",
    "fetch('file:///etc/hostname').catch(() => 0)": "connect-src",
    "new WebSocket('wss://example.org/')": "connect-src",
    "navigator.sendBeacon('https://example.org/', 'a')": "connect-src",
    "new Image().src = 'https://example.org/a.png'": "img-src",
    "put('script').textContent = 'window.ran = 1'": "script-src-elem",
    "put('script').src = 'https://example.org/a.js'": "script-src-elem",
    "put('style').textContent = 'body { color: rgb(1, 2, 3) }'": "style-src-elem",
    "put('iframe').src = 'https://example.org/'": "frame-src",
    "put('form').submit()": "form-action",
    "document.body.insertAdjacentHTML('beforeend', '<b style=\"color: red\"></b>')": "style-src-attr",
    "document.body.insertAdjacentHTML('beforeend', '<img src=data:, onerror=\"window.ran = 1\">')": "script-src-attr",
    "new Worker('data:text/javascript,1')": "worker-src",
}
"""What a page may not do, and the directive of its policy that forbids it."""

ATTEMPT = """() => new Promise((done) => {
  const put = (tag) => document.body.appendChild(document.createElement(tag));
  document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
  setTimeout(() => done("nothing forbade it"), 2000);
  setTimeout(() => { try { RUN } catch { } });
})"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_page_opens_with_what_the_model_makes_of_its_text(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page = opened.page
    assert page.locator("h1").inner_text() == f"A {kind}"
    assert page.locator("#text").input_value() == TEXTS[kind]
    names = page.locator("section.panel").evaluate_all("all => all.map((one) => one.id)")
    assert "tokens" in names
    assert len(names) == len(set(names))
    wanted = {"translator": lambda one: one.translate([TEXTS[kind]])[0]} | {
        "classifier": lambda one: one.classify([TEXTS[kind]])[0].label
    }
    if kind in wanted:
        assert page.locator("#output").text_content() == wanted[kind](user(kind))
    assert page.locator("#problem").text_content() == ""
    assert opened.state("result.serial") == 1


def test_the_policy_forbids_what_is_not_the_page_s_own(open_page: Any) -> None:
    opened, failed = open_page("writer"), []
    opened.page.on("requestfailed", lambda request: failed.append((f"request: {request.url}", request.failure)))
    found = {attempt: opened.page.evaluate(ATTEMPT.replace("RUN", attempt)) for attempt in TRIED}
    assert found == TRIED
    assert opened.page.evaluate("() => window.ran") is None
    requested = [line for line in opened.heard if line.startswith("request")]
    assert failed == [(line, "csp") for line in requested]
    opened.heard.clear()  # a browser tells of each refusal


def test_a_browser_that_starts_no_worker_runs_the_model_in_the_page(open_page: Any) -> None:
    opened = open_page("translator", before="delete window.Worker")
    assert opened.page.locator("#output").text_content() == user("translator").translate([TEXTS["translator"]])[0]


def test_a_worker_that_breaks_gives_one_line(open_page: Any) -> None:
    broken = "const make = URL.createObjectURL; URL.createObjectURL = () => make(new Blob(['throw Error(`no room`)']))"
    opened = open_page("writer", before=broken, drawn="#problem:not(:empty)")
    assert opened.page.locator("#page").inner_text() == "This page cannot be shown: Uncaught Error: no room"
    assert all("no room" in line for line in opened.heard)
    opened.heard.clear()


def test_a_browser_without_scripts_is_told_what_the_page_needs(browser: Any, tmp_path: Path) -> None:
    file = tmp_path / "page.html"
    file.write_text(page_of(carried("writer"), title="a", text="the fox"), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    assert (
        page.locator("#problem").inner_text().startswith("This page runs a model in the browser. It needs JavaScript")
    )
    context.close()


def test_a_page_of_arrays_shows_the_same_without_the_model(browser: Any, open_page: Any, tmp_path: Path) -> None:
    saved = save_page(user("BPE writer"), tmp_path / "page.html", TEXTS["BPE writer"], max_size=0.01)
    assert saved.is_recorded
    context, heard = browser.new_context(offline=True), []
    page = context.new_page()
    page.on("console", lambda message: heard.append(message.text))
    page.on("pageerror", lambda error: heard.append(str(error)))
    page.on("request", lambda request: heard.append(request.url))
    page.goto(saved.path.as_uri())
    page.wait_for_selector("#page[data-ready]")
    whole = open_page("BPE writer").page
    chips = "#tokens [role=toolbar] button"
    assert page.locator(chips).all_inner_texts() == whole.locator(chips).all_inner_texts()
    weights = (
        "async () => Array.from((await plainformer.store.get('result').array('1/self_attention/weights', 2)).data)"
    )
    assert page.evaluate(weights) == pytest.approx(whole.evaluate(weights), abs=1e-3)
    assert page.locator("#text").evaluate("one => one.readOnly || one.disabled")
    assert heard == [saved.path.as_uri()]
    context.close()
