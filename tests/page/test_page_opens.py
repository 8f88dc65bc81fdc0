"""A page opens from its file, shows its model, and neither requests nor runs anything that is not its own."""

from typing import Any

import pytest
from small_models import KINDS, TEXTS, user

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
