"""What is shown of heads, layers and the stream: the library's own numbers, `look` on the same weights."""

import re
from typing import Any

import numpy as np
import pytest
from small_models import KINDS, TEXTS, content, user

from plainformer.inspect.look import Look

CLOSE = 1.2e-4  # what is shown has four decimals, and float32 sums in another order
STEPS = ["dot", "scaled", "masked", "weight"]


def looked_at(kind: str, opened: Any) -> Look:
    """The library's look at what the page shows."""
    found = user(kind).look(TEXTS[kind])
    assert [one["id"] for one in opened.state("result.pass.target")] == [token.id for token in found.tokens]
    return found


def shown_numbers(page: Any, column: str) -> list[float]:
    cells = page.locator(f"#head-steps td[data-column='{column}']").all_inner_texts()
    return [float(one.replace("−", "-").replace("∞", "inf")) for one in cells]


def numbers(text: str) -> list[float]:
    return [float(one) for one in text.replace("−", "-").split(", ")]


@pytest.mark.parametrize(
    ("kind", "name", "head", "row"),
    [
        ("translator", "decoder/1/cross_attention", 2, 3),
        ("translator", "decoder/0/self_attention", 1, 4),
        ("writer", "1/self_attention", 3, 5),
        ("filler", "0/self_attention", 0, 2),
    ],
)
def test_a_head_is_opened_and_followed_step_by_step(kind: str, name: str, head: int, row: int, open_page: Any) -> None:
    opened = open_page(kind)
    page, seen = opened.page, looked_at(kind, opened)
    spoken = f"{name.replace('/', ' ').replace('_', '-')} head {head}"
    page.get_by_role("gridcell", name=re.compile(rf"^(layer )?{spoken}\b")).click()
    assert opened.state("store.get('attention')") == {"name": name, "head": head}
    page.locator("#head-steps-row").select_option(str(row))
    array = {one: seen[f"{name}/{one}"][0, head] for one in ("query", "key", "weights", "heads")}
    query, keys = array["query"][row], array["key"]
    scaled = keys @ query / np.sqrt(query.size)
    is_causal = name == "decoder/0/self_attention" or kind == "writer"
    wanted = {
        "dot": keys @ query,
        "scaled": scaled,
        "masked": np.where(is_causal & (np.arange(len(keys)) > row), -np.inf, scaled),
        "weight": array["weights"][row],
    }
    for step, column in enumerate(STEPS):
        heading = page.locator("#head-steps h3").first
        assert heading.inner_text().startswith(f"Step {step + 1} of 6")
        if step == 0 and (more := page.locator("#head-steps button.all")).count():
            more.click()
        assert shown_numbers(page, column) == pytest.approx(wanted[column].tolist(), abs=CLOSE)
        page.get_by_role("button", name="Next", exact=True).click()
    page.locator("#head-steps summary").click()
    output = page.locator("#head-steps dd[data-vector='output']").inner_text()
    assert numbers(output) == pytest.approx(array["heads"][row].tolist(), abs=CLOSE)
    page.get_by_role("button", name="Next", exact=True).click()
    if page.locator("#head-steps details[open]").count() == 0:
        page.locator("#head-steps summary").click()
    added = np.array(numbers(page.locator("#head-steps dd[data-vector='added']").inner_text()))
    before = user(kind).look(TEXTS[kind]).without(f"{name}/{head}")[f"{name}/output"][0, row]
    assert added == pytest.approx(seen[f"{name}/output"][0, row] - before, abs=2 * CLOSE)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "classifier"])
def test_the_last_row_of_the_lens_is_the_output(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    lens, passed = opened.state("result.lens"), opened.state("result.pass.predictions")
    seen, silent = looked_at(kind, opened), silent_ids(kind)
    assert [row[:5] for row in passed] == lens[-1]["predictions"]
    assert lens[0]["predictions"] != lens[-1]["predictions"]
    for layer, ranked in zip(lens, seen.lens, strict=True):
        for row, best in zip(layer["predictions"], ranked, strict=True):
            found = {one["id"]: one["probability"] for one in row}
            own = {one.token.id: one.probability for one in best if one.token.id not in silent}
            both = [id for id in own if id in found]
            assert next(iter(own)) == row[0]["id"]
            # What stands for no text has no part of it here.
            shares = [found[id] / own[id] for id in both]
            assert shares == pytest.approx([shares[0]] * len(both), rel=1e-3)
    last = opened.page.locator("#lens .column").first.locator("[data-cell]").last.get_attribute("aria-label")
    assert f"{percent(lens[-1]['predictions'][0][0]['probability'])}" in str(last)


def silent_ids(kind: str) -> set[int]:
    """Tokens that a model of texts never says; a translator may say its end."""
    if kind == "translator":
        return set()
    tokenizer = content(kind).target_tokenizer
    return {id for id in map(tokenizer.special_id, ("pad", "bos", "eos", "unk", "mask")) if id is not None}


def percent(probability: float) -> str:
    return "100%" if probability >= 0.9995 else f"{100 * probability:.1f}%"


@pytest.mark.parametrize("kind", KINDS)
def test_attributions_sum_to_the_logit_and_are_the_library_s(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page, seen = opened.page, looked_at(kind, opened)
    place = opened.state("store.get('place')")
    choose = page.locator("#attribution-token")
    for option in choose.locator("option").evaluate_all("all => all.slice(0, 2).map((one) => one.value)"):
        choose.select_option(option)
        logit = float(seen["logits"][0][int(option)] if kind == "classifier" else seen["logits"][0, place, int(option)])
        sums = "document.querySelector('#attribution .sum').dataset"
        opened.until(f"Math.abs({sums}.logit - {logit}) < 1e-4")
        said = opened.state(f"({{...{sums}}})")
        assert float(said["sum"]) == pytest.approx(float(said["logit"]), rel=1e-5, abs=1e-6)
        shown = page.locator("#attribution .sum").inner_text().replace("−", "-").replace("+", "")
        assert shown == f"The parts sum to {logit:.4f}: the logit is {logit:.4f}."
        asked = (
            "{ token: store.get('token') }"
            if kind == "classifier"
            else "{ position: store.get('place'), token: store.get('token') }"
        )
        parts = {one["name"]: one["value"] for one in opened.state(f"(await ask('attribution', {asked})).parts")}
        if kind != "classifier":
            assert parts == pytest.approx(seen.attribution(place, int(option)), abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_heads_that_are_switched_off_are_the_model_without_them(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    page, heads = opened.page, opened.state("description.heads")
    layer = "decoder/1/" if kind == "translator" else "1/"
    names = [f"{layer}self_attention/{head}" for head in range(heads)]
    for name in names:
        opened.after(page.locator(f"#switches [data-part='{name}']").click)
    assert opened.state("store.get('off')") == names
    arrays = "await ask('arrays', { names: ['logits'] })"
    found = opened.state(f"Array.from(({arrays}).logits.data)")
    tokens = [one["id"] for one in opened.state("result.pass.target")]
    look = user(kind).look
    if kind == "translator":
        seen = look(TEXTS[kind], content_target(opened)).without(*names)
    else:
        seen = look(TEXTS[kind]).without(*names)
    assert [token.id for token in seen.tokens] == tokens
    assert found == pytest.approx(seen["logits"].ravel().tolist(), abs=1e-4)
    assert page.locator("#switches .verdict").count() == 1
    opened.after(page.locator("#switches .all-on").click)
    opened.after(page.locator(f"#switches [data-part='{layer}self_attention']").click)
    if kind != "translator" or [one["id"] for one in opened.state("result.pass.target")] == tokens:
        assert opened.state(f"Array.from(({arrays}).logits.data)") == found
    opened.after(page.locator("#switches .all-on").click)
    assert page.locator("#switches .verdict").count() == 0


def content_target(opened: Any) -> str:
    return opened.page.locator("#output").text_content()


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_longer_wanted_leaves_no_trace(kind: str, open_page: Any) -> None:
    opened = open_page(kind)
    state = "{ lens: result.lens, names: result.pass.names, chosen: result.chosen, output: result.output }"
    logits = "Array.from((await ask('arrays', { names: ['logits'] })).logits.data)"
    wanted, found = opened.state(state), opened.state(logits)
    layer = "decoder/0" if kind == "translator" else "0"
    for between in ("", "await new Promise((go) => setTimeout(go, 5));"):
        opened.page.evaluate(
            f"async () => {{ const {{ store }} = window.plainformer; store.set({{ off: ['{layer}'] }}); {between}"
            "await store.set({ off: [] }); }"
        )
        assert opened.state(state) == wanted
        assert opened.state(logits) == found


def test_a_text_that_cannot_be_read_leaves_the_views_alive(open_page: Any) -> None:
    opened = open_page("filler")
    opened.type("", "the text is empty")
    opened.page.locator("#attention_map-head").select_option("2")
    label = opened.page.locator("#attention_map .frame").get_attribute
    opened.until("document.querySelector('#attention_map .frame').getAttribute('aria-label').includes('head 2')")
    assert "head 2" in str(label("aria-label"))
    opened.page.locator("#lens .column").nth(3).locator("[data-cell]").first.click()
    place = opened.state("store.get('place')")
    logit = opened.state(f"(await result.attribution({{ position: {place}, token: result.chosen[{place}].id }})).logit")
    opened.until(f"Math.abs(document.querySelector('#attribution .sum').dataset.logit - {logit}) < 1e-6")
