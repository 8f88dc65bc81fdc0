"""The pages that a server gives, in a browser, against a server at work: a box for each thing that its models do."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from small_models import DESKTOP, KINDS, PHONE, TEXTS, user
from test_page_access import OVERFLOW, violations

from plainformer.serve.app import Doors
from plainformer.serve.house import Bounds, house_of
from plainformer.serve.limits import Limits
from plainformer.serve.looks import Looks
from plainformer.serve.security import Keys
from running import ask, running

NEVER_GIVEN_UP = "AbortController.prototype.abort = () => {}"
MARKUP = "<b onclick=1>fox</b>"
PATIENCE = 60_000  # milliseconds: beams of another size are compiled when they are first asked for
FEW = Limits(hypotheses=8, rows=2)  # of which few programs are compiled
ENGLISH = {"code": "en", "name": "English", "targets": ["hi"]}
HINDI = {"code": "hi", "name": "Hindi", "targets": []}


def models(*kinds: str) -> dict[str, Any]:
    """One of each kind; a second translator goes the other way."""
    found: dict[str, Any] = {kind: (user(kind), ("en", "hi") if kind == "translator" else None) for kind in kinds}
    return found | {"back": (user("translator"), ("hi", "en"))}


def house(*kinds: str, **how: Any) -> Any:
    found = models(*kinds)
    looks = {name: Looks(lambda model=model: model) for name, (model, _) in found.items()}
    return house_of(found, looks=looks, limits=FEW, **how)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    kinds = [kind for kind in KINDS if kind != "BPE writer"]
    with running(house(*kinds, bounds=Bounds(characters=3000))) as address:
        yield address


class Visits:
    """Opens pages: `visit(address, before=…, size=…)`.

    Attributes:
        contexts: what they were opened in.
        heard: what they said on the console, threw, and asked elsewhere: nothing, at the end of a test.
    """

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self.contexts: list[Any] = []
        self.heard: list[str] = []

    def __call__(self, address: str, *, before: str = "", size: tuple[int, int] = DESKTOP, ready: bool = True) -> Any:
        width, height = size
        context = self._browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
        context.set_default_timeout(PATIENCE)
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        self.contexts.append(context)
        page, heard = context.new_page(), self.heard
        own = address.split("/", 3)[:3]
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on(
            "request",
            lambda one: one.url.startswith("blob:") or one.url.split("/", 3)[:3] == own or heard.append(one.url),
        )
        page.add_init_script(before)
        page.goto(address)
        if ready:
            page.wait_for_selector("#page[data-ready]")
        return page

    def expect(self, said: str) -> None:
        """Chromium itself says what a test brings about on purpose, as a refusal: that was heard, and is forgotten."""
        others = [one for one in self.heard if said not in one]
        assert len(others) < len(self.heard), f"{said!r} was not heard, but {self.heard}"
        self.heard[:] = others


@pytest.fixture
def visit(browser: Any) -> Iterator[Visits]:
    visits = Visits(browser)
    yield visits
    for context in visits.contexts:
        context.close()
    assert visits.heard == []


def translation(text: str) -> str:
    return user("translator").translate([text])[0]


def until(page: Any, expression: str) -> None:
    page.wait_for_function(f"() => {expression}")


def shows(page: Any, text: str) -> None:
    """Wait until this is the translation that is shown, and not an old one."""
    said = "document.getElementById('translation')"
    until(page, f"{said}.textContent === {json.dumps(text)} && {said}.getAttribute('aria-busy') === 'false'")


def test_it_translates_as_one_types(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#text").focus()
    for typed, whole in (("the lazy", "the lazy"), (" dog", "the lazy dog")):
        page.keyboard.type(typed)
        shows(page, translation(whole))
    assert page.locator("#translation").get_attribute("lang") == "hi"
    assert page.locator("#count").inner_text() == "12 of 3,000 characters"
    page.locator("#clear").click()
    shows(page, "")
    assert page.evaluate("document.activeElement.id") == "text"


@pytest.mark.parametrize("before", ["", NEVER_GIVEN_UP], ids=["given up", "late"])
def test_an_answer_that_comes_late_is_never_shown(url: str, before: str, visit: Visits) -> None:
    """The first answer is held back until the second one is there; then it comes, if it was not given up."""
    held: list[Any] = []

    def answer(route: Any) -> None:
        if json.loads(route.request.post_data)["q"] == "a red fox":
            held.append(route)
        else:
            route.continue_()

    first, second = translation("a red fox"), translation("the old oak")
    assert first != second
    page = visit(f"{url}/", before=before)
    page.route("**/translate", answer)
    page.evaluate(
        """() => { window.shown = []; new MutationObserver(() =>
        window.shown.push(document.getElementById("translation").textContent)).observe(
        document.getElementById("translation"), { childList: true, characterData: true, subtree: true }); }"""
    )
    page.locator("#text").fill("a red fox")
    while not held:
        page.wait_for_timeout(10)
    assert page.locator("#translation").get_attribute("aria-busy") == "true"
    page.locator("#text").fill("the old oak")
    shows(page, second)
    if before:
        with page.expect_response("**/translate"):
            held[0].fulfill(json={"translatedText": first})
        page.wait_for_timeout(50)
    assert page.locator("#translation").text_content() == second
    assert first not in page.evaluate("window.shown")


def test_languages_are_swapped_where_a_model_goes_back(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#text").fill("a red fox")
    shows(page, translation("a red fox"))
    page.locator("#swap").click()
    assert [page.locator(at).input_value() for at in ("#source", "#target")] == ["hi", "en"]
    assert page.locator("#text").input_value() == translation("a red fox")
    back = ask(f"{url}/translate", {"q": translation("a red fox"), "source": "hi", "target": "en"}).json
    shows(page, back["translatedText"])
    page.route("**/languages", lambda route: route.fulfill(json=[ENGLISH, HINDI]))
    page.reload()
    page.wait_for_selector("#page[data-ready]")
    assert page.locator("#swap").is_disabled()


def test_other_translations_are_told_where_they_are_asked_for(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#text").fill(TEXTS["translator"])
    page.locator("#alternatives summary").click()
    until(page, "document.querySelectorAll('#alternatives li').length > 0")
    best, *others = user("translator").translate_n_best([TEXTS["translator"]], n_best=4, beam_size=4)[0]
    wanted = [*dict.fromkeys(one.text for one in others if one.text != best.text)]
    assert page.locator("#alternatives li").all_text_contents() == wanted
    assert page.locator("#translation").text_content() == best.text
    page.locator("#translate .copy-text").click()
    until(page, "document.querySelector('#translate .said-of-copy').textContent === 'Copied'")
    assert page.evaluate("navigator.clipboard.readText()") == best.text


def test_a_language_is_detected(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#source").select_option("auto")
    page.locator("#text").fill("the old dog near the oak")
    until(page, "document.querySelector('#source option').textContent === 'Detected: English'")


def test_what_is_wrong_is_one_line_and_typing_goes_on(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#text").fill("fox " * 1000)
    until(page, "document.querySelector('#translate .problem').textContent")
    said = page.locator("#translate .problem").inner_text()
    assert said == "Q has 4,000 characters; give at most 3,000 at once."
    assert page.locator("#translation").text_content() == ""
    page.locator("#text").fill(f"a {MARKUP}")
    until(page, "document.querySelector('#translate .problem').textContent === ''")
    page.locator("#text").fill("a red fox\n\n an old oak ")
    shows(page, f"{translation('a red fox')}\n\n {translation('an old oak')} ")
    assert page.locator("#translate b").count() == 0
    visit.expect("400 (Bad Request)")


def test_a_server_that_is_busy_is_asked_again(url: str, visit: Visits) -> None:
    page, count = visit(f"{url}/"), []

    def answer(route: Any) -> None:
        count.append(route)
        if len(count) > 1:
            route.continue_()
        else:
            route.fulfill(status=503, headers={"Retry-After": "1"}, json={"error": "9 texts are waiting already"})

    page.route("**/translate", answer)
    page.locator("#text").fill("an old fox")
    until(page, "document.querySelector('#translate .problem').textContent")
    said = page.locator("#translate .problem").inner_text()
    assert said == "9 texts are waiting already. It is asked again in 1 s."
    shows(page, translation("an old fox"))
    assert page.locator("#translate .problem").text_content() == ""
    visit.expect("503 (Service Unavailable)")


def test_a_language_model_writes_as_it_goes(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#prompt").fill("the old oak")
    page.locator("#tokens").fill("9")
    page.locator("#temperature").fill("0")
    page.locator("#write-go").click()
    until(page, "document.querySelector('#written').getAttribute('aria-busy') === 'false'")
    expected = user("writer").generate(["the old oak"], max_tokens=9, temperature=0)[0][0]
    assert page.locator("#written").text_content() == f"the old oak{expected}"
    assert page.locator("#written .added").text_content() == expected
    page.locator("#write-on").click()
    until(page, f"document.querySelector('#written').textContent.length > {len('the old oak' + expected)}")


def test_labels_and_gaps_are_told_as_one_types(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    page.locator("#classify-text").fill("a red fox")
    until(page, "document.querySelectorAll('#classify .bars li').length === 2")
    label = user("classifier").classify(["a red fox"])[0].label
    assert page.locator("#classify .bars .name").first.inner_text() == label
    page.locator("#fill-text").fill("a red ")
    until(page, "document.querySelector('#fill-found').textContent === 'A gap is written <mask>.'")
    page.locator("#put-gap").click()
    until(page, "document.querySelectorAll('#fill .bars li').length === 6")
    found = [one.text for one in user("filler").fill(["a red <mask>"], top=6)[0][0]]
    assert page.locator("#fill .bars .name").all_text_contents() == found


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_it_is_for_everybody(url: str, size: tuple[int, int], visit: Visits) -> None:
    page = visit(f"{url}/", size=size)
    assert violations(page) == []
    page.locator("#text").fill("a red fox. " * 40)
    page.locator("#alternatives summary").click()
    page.locator("#fill-text").fill(TEXTS["filler"])
    page.locator("#classify-text").fill(TEXTS["classifier"])
    until(page, "document.querySelectorAll('.bars li').length === 8")
    until(page, "document.querySelector('#translation').getAttribute('aria-busy') === 'false'")
    assert violations(page) == []
    page.get_by_role("button", name="Change to the dark theme").click()
    assert violations(page) == []
    assert page.evaluate(OVERFLOW) <= 0
    stops = set()
    for _ in range(40):
        page.keyboard.press("Tab")
        stops.add(page.evaluate("document.activeElement.id"))
    assert {"text", "source", "target", "swap", "translation", "prompt", "write-go", "classify-text"} <= stops


@pytest.mark.parametrize("kind", ["translator", "classifier"])
def test_a_model_is_looked_at_with_the_text_that_was_typed(url: str, kind: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    field, box = ("#text", "#translate") if kind == "translator" else ("#classify-text", "#classify")
    page.locator(field).fill("the old fox & oak" if kind == "translator" else "the old fox")
    with page.expect_navigation():
        page.locator(f"{box} .look a").click()
    page.wait_for_selector("#page[data-ready]")
    assert page.url.startswith(f"{url}/look/{kind}")
    assert page.locator("h1").inner_text() == kind
    assert page.locator("#text").input_value() == ("the old fox & oak" if kind == "translator" else "the old fox")
    page.locator("#text").fill("a lazy dog")
    page.locator("#text").blur()
    until(page, "window.plainformer.store.get('result').text === 'a lazy dog'")
    if kind == "translator":
        assert page.locator("#output").text_content() == translation("a lazy dog")
    assert violations(page) == []


@pytest.mark.parametrize("kind", ["translator", "filler", "writer"])
def test_a_model_that_does_not_travel_is_looked_at_on_the_server(kind: str, visit: Visits) -> None:
    model = user(kind)
    looks = {"large": Looks(lambda: model, max_size=0.001)}
    pair = ("en", "hi") if kind == "translator" else None
    with running(house_of({"large": (model, pair)}, looks=looks, limits=FEW)) as url:
        page = visit(f"{url}/look/large#text=the old fox")
        said = page.locator("#recorded").inner_text()
        assert said.startswith("The model runs on the server, and no part can be switched off: the model is larger")
        for text in ("a red dog <mask>" if kind == "filler" else "a red dog", "the oak"):
            page.locator("#text").fill(text)
            page.locator("#text").blur()
            until(page, f"window.plainformer.store.get('result').text === {json.dumps(text)}")
            tokens = page.evaluate("window.plainformer.store.get('result').pass.target.map(({ id }) => id)")
            assert tokens == [token.id for token in model.look(text).tokens]
            if kind == "translator":
                assert page.locator("#output").text_content() == translation(text)
        page.locator("#attention_map-head").select_option("1")
        assert violations(page) == []
        page.locator("#text").fill("")
        until(page, "document.querySelector('#problem').textContent.endsWith('the text is empty; give some text')")
    visit.expect("400 (Bad Request)")


def test_a_key_is_asked_for_and_kept_in_memory_alone(visit: Visits) -> None:
    with running(house("translator", needs_key=True), Doors(Keys.of(["secret"]))) as url:
        page = visit(f"{url}/", ready=False)
        page.locator("#key").fill("wrong")
        page.keyboard.press("Enter")
        until(page, "document.querySelector('.key .problem').textContent")
        assert page.locator(".key .problem").inner_text() == "This is not the key of the server."
        assert violations(page) == []
        page.locator("#key").fill("secret")
        page.keyboard.press("Enter")
        page.wait_for_selector("#page[data-ready]")
        page.locator("#text").fill("a red fox")
        shows(page, translation("a red fox"))
        assert page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]") == [0, 0, ""]
        page.goto(f"{url}/look/translator")
        page.locator("#key").fill("secret")
        page.keyboard.press("Enter")
        page.wait_for_selector("#page[data-ready]")
    visit.expect("401 (Unauthorized)")


def test_what_is_not_to_be_looked_at_is_not(visit: Visits) -> None:
    found: Any = {"one": (user("translator"), ("en", "de"))}
    with running(house_of(found, limits=FEW)) as url:
        page = visit(f"{url}/")
        assert page.locator(".look a").count() == 0
        page = visit(f"{url}/look/one", ready=False)
        page.wait_for_selector("#problem")
        until(page, "document.querySelector('#problem').textContent.includes('one cannot be looked at here')")
    visit.expect("404 (Not Found)")


def test_the_policy_lets_a_page_ask_its_server_alone(url: str, visit: Visits) -> None:
    page = visit(f"{url}/")
    tried = {"fetch('https://example.org/').catch(() => 0)": "connect-src", "eval('1')": "script-src"}
    attempt = """(run) => new Promise((done) => {
      document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
      setTimeout(() => { const made = document.createElement("script"); try { RUN } catch { } });
    })"""
    assert {run: page.evaluate(attempt.replace("RUN", run), run) for run in tried} == tried
    visit.expect("Content Security Policy")
