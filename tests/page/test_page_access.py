"""A page for everybody: by keyboard alone, to screen readers, on a phone, in both themes; its pictures as files."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from small_models import DESKTOP, KINDS, PHONE, WORDS

LONG = " ".join(WORDS * 20)[:400]
OVERFLOW = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def violations(page: Any) -> list[str]:
    """What axe-core finds."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(page).response["violations"]
    return [f"{one['id']}: {node['target']} {node['html'][:120]}" for one in found for node in one["nodes"][:3]]


@pytest.mark.parametrize("kind", KINDS)
def test_axe_finds_nothing(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page = opened.page
    assert violations(page) == []
    for folded in page.locator("details:not([open]) > summary").all():
        folded.click()
    opened.after(page.locator("#switches [data-part$='self_attention/1']").first.click)
    page.get_by_role("button", name="Change to the dark theme").click()
    assert violations(page) == []
    page.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    assert violations(page) == []
    page.get_by_role("button", name="Change to the light theme").click()
    assert violations(page) == []


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_does_not_scroll_sideways_and_a_long_text_fits(kind: str, open_page: Any) -> None:
    opened = open_page(kind, size=PHONE)
    page = opened.page
    assert page.evaluate(OVERFLOW) <= 0
    if kind != "translator":
        opened.type(LONG)
        assert page.evaluate(OVERFLOW) <= 0
    for panel in page.locator("section.panel").all():
        box = panel.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE[0]


@pytest.mark.parametrize("size", [DESKTOP, PHONE])
def test_two_hundred_tokens_are_drawn(size: tuple[int, int], open_page: Any) -> None:
    opened = open_page("BPE writer", size=size)
    page = opened.page
    opened.type(" ".join(WORDS * 19))
    assert opened.state("result.pass.target.length") > 200
    assert page.locator("#attention_map image").count() == 1
    assert page.evaluate(OVERFLOW) <= 0
    assert page.locator("svg *").count() < 4000


@pytest.mark.parametrize("kind", KINDS)
def test_every_picture_is_saved_as_an_svg_that_needs_no_style(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page = opened.page
    opened.after(lambda: page.locator("#switches [data-part$='self_attention/0']").first.click())
    saved = []
    for button in page.locator("button.save").all():
        with page.expect_download() as download:
            button.click()
        name = download.value.suggested_filename
        root = ET.fromstring(download.value.path().read_text(encoding="utf-8"))
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        assert all(float(root.get(side, "0")) > 0 for side in ("width", "height"))
        elements = list(root.iter())
        assert len(elements) > 5, name
        assert not [one for one in elements if one.get("class") or one.get("style") or one.get("tabindex")]
        assert not [one for one in elements if one.tag.endswith(("script", "foreignObject", "style"))]
        assert all(one.get("fill") for one in elements if one.tag.endswith(("rect", "text")))
        saved.append(name)
    assert len(saved) == len(set(saved)) == page.locator("button.save").count() >= 6
    assert {"attention_map.svg", "head-steps.svg"} <= set(saved)


def test_the_switches_are_saved_while_all_is_on(open_page: Any) -> None:
    page = open_page("writer").page
    with page.expect_download() as download:
        page.get_by_role("button", name="Save Switch parts off as SVG").click()
    texts = [one.text for one in ET.fromstring(download.value.path().read_text(encoding="utf-8")).iter() if one.text]
    assert texts == page.locator("#switches [data-part]").all_inner_texts()


def test_where_nothing_is_drawn_that_is_said(open_page: Any) -> None:
    opened = open_page("filler", text="the fox")
    opened.page.get_by_role("button", name="Save Gaps as SVG").click()
    assert opened.page.locator("#gaps .unsaved").inner_text() == "Nothing is drawn here now."


def focused(page: Any, expression: str) -> Any:
    return page.evaluate(f"() => {{ const at = document.activeElement; return {expression}; }}")


def tab_to(page: Any, test: str, most: int = 80) -> None:
    """Press the tab key until what has the focus is this."""
    for _ in range(most):
        page.keyboard.press("Tab")
        if focused(page, test):
            return
    raise AssertionError(f"the tab key does not reach {test}")


def test_the_whole_way_by_keyboard_alone(open_page: Any) -> None:
    opened = open_page("translator")
    page, keys = opened.page, opened.page.keyboard
    tab_to(page, "at.id === 'text'")
    keys.press("Control+a")
    opened.after_typing(lambda: keys.type("a red dog"))
    tab_to(page, "at.closest('#tokens')?.id && at.dataset.token")
    keys.press("ArrowRight")
    assert focused(page, "at.dataset.token") == "source:1"
    assert page.locator(".lit[data-token='source:1']").count() > 1
    tab_to(page, "at.id === 'beam_tree-beam_size'")
    opened.after(lambda: keys.press("ArrowRight"))
    assert opened.state("store.get('settings').beam_size") == 5
    tab_to(page, "at.dataset.node")
    keys.press("ArrowLeft")
    tab_to(page, "at.dataset.cell && at.closest('#attention_grid')")
    keys.press("ArrowUp")
    keys.press("ArrowRight")
    keys.press("Enter")
    opened_head = opened.state("store.get('attention')")
    assert opened_head != {"name": "decoder/1/cross_attention", "head": 0}
    tab_to(page, "at.getAttribute('role') === 'application' && at.closest('#attention_map')")
    for key in ("ArrowDown", "ArrowRight", "Enter"):
        keys.press(key)
    tab_to(page, "at.className === 'next' && at.closest('#head-steps')")
    keys.press("Enter")
    assert page.locator("#head-steps h3").first.inner_text().startswith("Step 2 of 6")
    tab_to(page, "at.dataset.part")
    keys.press("ArrowRight")
    opened.after(lambda: keys.press("Enter"))
    assert len(opened.state("store.get('off')")) == 1
    tab_to(page, "at.dataset.cell && at.closest('#alternatives')")
    keys.press("ArrowDown")
    keys.press("ArrowDown")
    if focused(page, "at.getAttribute('role')") != "button":
        keys.press("ArrowDown")
    opened.after(lambda: keys.press("Enter"))
    assert len(opened.state("store.get('written')")) >= 1
    tab_to(page, "at.dataset.cell && at.closest('#lens')")
    keys.press("ArrowDown")
    keys.press("Enter")
    tab_to(page, "at.id === 'attribution-token'")


@pytest.mark.parametrize("kind", KINDS)
def test_the_focus_is_seen_goes_through_everything_and_comes_back(kind: str, open_page: Any) -> None:
    page = open_page(kind).page
    stops = []
    for _ in range(120):
        page.keyboard.press("Tab")
        if focused(page, "at === document.body"):
            break
        outline = "getComputedStyle(at).outlineStyle !== 'none' || getComputedStyle(at).boxShadow !== 'none'"
        name = focused(
            page, "at.id || at.getAttribute('aria-label') || at.textContent.slice(0, 40) || at.outerHTML.slice(0, 80)"
        )
        assert focused(page, f"{outline} || at.matches('summary, select, g')"), name
        stops.append(name)
    assert 12 < len(stops) < 100
    panels = page.locator("section.panel").evaluate_all("all => all.map((one) => one.id)")
    assert panels
