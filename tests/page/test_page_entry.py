"""A text is typed, and everything follows it: tokens, views and output; what is wrong with it is one clear line."""

from typing import Any

import pytest
from small_models import ARABIC, HINDI, KINDS, TEXTS, WORDS, content, user

MARKUP = '<img src=x onerror="window.ran = 1"></textarea></script><script>window.ran = 1</script>'
NEW = dict.fromkeys(KINDS, "a red dog near the oak") | {"filler": "a red <mask> near the <mask>"}


def drawn_tokens(page: Any, side: str = "target") -> list[str]:
    return page.locator(f"#tokens [aria-label='Tokens of the {side}'] button").all_inner_texts()


@pytest.mark.parametrize("kind", KINDS)
def test_another_text_is_typed_and_everything_follows(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page = opened.page
    pictures = "section.panel svg"
    before = page.locator(pictures).evaluate_all("all => all.map((one) => one.outerHTML)")
    opened.type(NEW[kind])
    tokenizer = content(kind).source_tokenizer
    side = "source" if kind == "translator" else "target"
    ids = [one["id"] for one in opened.state(f"result.pass.{side}")]
    assert len(drawn_tokens(page, side)) == len(ids)
    if kind != "filler":
        assert [one for one in ids if one not in special_ids(tokenizer)] == tokenizer.encode(NEW[kind])
    if kind == "translator":
        assert page.locator("#output").text_content() == user(kind).translate([NEW[kind]])[0]
    after = page.locator(pictures).evaluate_all("all => all.map((one) => one.outerHTML)")
    assert all(one not in after for one in before if "gridcell" in one or "data-token" in one)
    assert page.locator("#problem").text_content() == ""


def special_ids(tokenizer: Any) -> set[int]:
    roles = ("bos", "eos", "cls", "sep", "mask")
    return {tokenizer.special_id(role) for role in roles if role in tokenizer.special.__dict__}


@pytest.mark.parametrize("text", [HINDI, ARABIC, f"the fox {ARABIC} {HINDI}"])
def test_scripts_are_cut_and_shown_as_they_are(text: str, open_page: Any) -> None:
    opened = open_page("BPE writer", text=text)
    page, tokenizer = opened.page, content("BPE writer").source_tokenizer
    assert page.locator("#text").input_value() == text
    ids = tokenizer.encode(text)
    shown = opened.state("result.pass.target")
    assert [one["id"] for one in shown] == ids
    whole = b"".join(bytes(one["bytes"]) for one in shown)
    assert whole.decode().strip() == text
    said = [one["text"] if "\ufffd" not in one["text"] else one["token"] for one in shown]
    assert drawn_tokens(page) == [one.replace(" ", "␣") for one in said]
    first = page.locator("#tokens [role=toolbar]")
    direction = first.evaluate("one => getComputedStyle(one).direction")
    assert direction == ("rtl" if text == ARABIC else "ltr")
    boxes = [first.locator("button").nth(at).bounding_box()["x"] for at in (0, 1)]
    assert (boxes[0] > boxes[1]) == (text == ARABIC)


@pytest.mark.parametrize("kind", ["BPE writer", "filler"])
def test_markup_in_a_text_stays_text(kind: str, open_page: Any) -> None:
    opened = open_page(kind, text=f"a fox {MARKUP}")
    opened.type(f"the fox saw <mask> {MARKUP}")
    page = opened.page
    assert page.evaluate("() => window.ran") is None
    assert page.locator("main img, main script").count() == 0
    assert page.locator("#text").input_value().endswith(MARKUP)
    assert any("<" in one for one in drawn_tokens(page))


def test_what_the_vocabulary_lacks_is_said_and_what_it_does_to_a_translation(open_page: Any) -> None:
    opened = open_page("translator")
    page = opened.page
    lacks = "The vocabulary does not have"
    assert lacks not in page.locator("#note").inner_text()
    opened.type("the 猫 saw a Zoo")
    assert f'{lacks} "猫", "Z": read as unknown.' in page.locator("#note").inner_text()
    assert page.locator("#tokens .unknown").count() == 2
    opened.type("the fox")
    assert lacks not in page.locator("#note").inner_text()
    assert page.locator("#tokens .unknown").count() == 0


def test_while_a_text_is_read_the_page_says_what_it_shows(open_page: Any) -> None:
    opened = open_page("translator")
    opened.page.evaluate("window.plainformer.store.set({ busy: true })")
    said = opened.page.locator("#note").inner_text()
    assert said == f"Being computed. What is shown below is still of “{opened.state('result.text')[:40]}”."
    opened.type(NEW["translator"])
    assert "Being computed" not in opened.page.locator("#note").inner_text()


def test_what_is_drawn_slowly_is_not_being_computed(open_page: Any) -> None:
    opened = open_page("translator")
    opened.page.evaluate("window.plainformer.store.on(['result'], () => new Promise((done) => setTimeout(done, 500)))")
    opened.type("it is large.")
    opened.page.wait_for_timeout(600)
    assert opened.state("store.get('busy')") is False
    assert opened.page.locator("#output").text_content() == user("translator").translate(["it is large."])[0]


EMPTY = "the text is empty"
LACKS = "the model's vocabulary does not have"


@pytest.mark.parametrize(
    ("kind", "texts"),
    [
        ("translator", {"": EMPTY, " \n ": EMPTY}),
        ("writer", {"": EMPTY, "fox 猫 Z": f"{LACKS} '猫', 'Z'", " \n ": f"{LACKS} '\\n'"}),
        ("BPE writer", {"": EMPTY}),
        ("filler", {"": EMPTY, " \n ": EMPTY}),
        ("classifier", {"": EMPTY, " \n ": EMPTY, "the fox 猫": f"{LACKS} '猫'"}),
    ],
)
def test_what_cannot_be_read_gives_one_line_and_the_next_text_is_read(
    kind: str, texts: dict[str, str], open_page: Any
) -> None:
    opened = open_page(kind)
    page = opened.page
    for text, problem in texts.items():
        before = opened.state("result.text")
        opened.type(text, problem)
        assert page.locator("#problem").text_content() == problem
        assert page.locator("#note").text_content() == f"What is shown below is still of “{before[:40]}”."
        assert page.locator("#problem").get_attribute("role") == "alert"
        assert page.locator("#output").count() == 0 or page.locator("#output").text_content() == ""
        opened.type(NEW[kind])
        assert page.locator("#problem").text_content() == ""
        opened.type(TEXTS[kind])
    assert opened.state("result.pass.target.length") > 1


@pytest.mark.parametrize(("kind", "read"), [("classifier", 56), ("filler", 60), ("writer", 24)])
def test_a_text_that_is_too_long_is_cut_and_it_is_said(kind: str, read: int, open_page: Any) -> None:
    opened = open_page(kind)
    words = " ".join(WORDS * 7)
    opened.type(words)
    cut = len(content(kind).source_tokenizer.encode(words)) - read
    note, forgotten = opened.page.locator("#note").inner_text(), f"{cut} before them are forgotten"
    if kind == "writer":
        assert note == ""
        assert forgotten in opened.page.locator("#next_token-note").inner_text()
    else:
        assert note == f"This is more than the model reads at once: {cut} tokens at its end were left out."
    assert len(drawn_tokens(opened.page)) == opened.state("result.pass.target.length") <= read + 2


def test_the_token_that_is_pointed_at_lights_up_wherever_it_is(open_page: Any) -> None:
    opened = open_page("translator")
    page = opened.page
    for side, index in (("source", 4), ("target", 2)):
        chip = page.locator(f"#tokens [data-token='{side}:{index}']")
        chip.hover()
        lit = page.locator(".lit")
        assert set(lit.evaluate_all("all => all.map((one) => one.dataset.token)")) == {f"{side}:{index}"}
        assert lit.count() == page.locator(f"[data-token='{side}:{index}']").count() >= 3
        panels = set(lit.evaluate_all("all => all.map((one) => one.closest('.panel').id)"))
        assert {"tokens", "attention_map", "attention_lines"} <= panels
        assert f"{side} {index}" in page.locator("#tokens-detail").inner_text()
    page.locator("h1").hover()
    assert page.locator(".lit").count() == 0


@pytest.mark.parametrize("system", ["light", "dark"])
def test_the_theme_is_the_system_s_until_somebody_switches_it(system: str, open_page: Any) -> None:
    opened = open_page("classifier", theme=system)
    page = opened.page
    other = {"light": "dark", "dark": "light"}[system]
    ground = "() => getComputedStyle(document.body).backgroundColor"
    first, maps = page.evaluate(ground), page.locator("#attention_map image").first.get_attribute("href")
    assert page.locator("html").get_attribute("data-theme") == system
    page.get_by_role("button", name=f"Change to the {other} theme").click()
    assert page.locator("html").get_attribute("data-theme") == other
    assert page.evaluate(ground) != first
    assert page.locator("#attention_map image").first.get_attribute("href") != maps
    page.get_by_role("button", name=f"Change to the {system} theme").click()
    assert page.evaluate(ground) == first
    assert page.locator("#attention_map image").first.get_attribute("href") == maps
