"""A page of arrays, without its model: it shows what the library computed of one text, and says what it is."""

import re
from pathlib import Path
from typing import Any

import pytest
from small_models import KINDS, TEXTS, user
from test_page_access import violations

HALF = 2e-3  # arrays travel in float16
WITHOUT = {"switches"}  # a view that needs the model itself


@pytest.fixture
def recorded(open_page: Any, tmp_path: Path) -> Any:
    """`recorded(kind)`: the page of the arrays of a kind's text, and what the library sees in that."""

    def start(kind: str) -> tuple[Any, Any]:
        seen = user(kind).look(TEXTS[kind], top=8)
        saved = seen.save_page(tmp_path / "page.html", title=f"A {kind}", max_size=0.001)
        assert saved.is_recorded
        return open_page(kind, file=saved.path), seen

    return start


def panels(opened: Any) -> set[str]:
    return set(opened.page.locator("section.panel").evaluate_all("all => all.map((one) => one.id)"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_view_of_a_text_is_there_and_says_that_the_model_is_not(kind: str, recorded: Any, open_page: Any) -> None:
    opened, seen = recorded(kind)
    page = opened.page
    assert panels(opened) == panels(open_page(kind)) - WITHOUT
    assert page.locator("#problem").text_content() == ""
    assert page.locator("#recorded").inner_text().startswith("This text cannot be changed here: the model is larger")
    assert page.locator("#text").evaluate("one => one.readOnly")
    assert [one["id"] for one in opened.state("result.pass.target")] == [token.id for token in seen.tokens]
    if kind == "translator":
        assert page.locator("#output").text_content() == user(kind).translate([TEXTS[kind]])[0]
        assert page.locator("#beam_tree input, #beam_tree .force, #alternatives .free").count() == 0
    if kind == "classifier":
        assert page.locator("#output").text_content() == seen.chosen[0].token.text
    page.locator("#guide-open").click()
    assert "kept in this page" in page.locator("#guide").inner_text()
    page.locator("#guide .close").click()
    assert not re.search(r"NaN|undefined|Infinity|\[object", page.locator("#page").inner_text())
    assert violations(page) == []


@pytest.mark.parametrize(
    ("kind", "name", "head", "row"),
    [
        ("translator", "decoder/1/cross_attention", 2, 3),
        ("writer", "1/self_attention", 3, 5),
        ("filler", "0/self_attention", 0, 2),
    ],
)
def test_a_head_is_the_library_s(kind: str, name: str, head: int, row: int, recorded: Any) -> None:
    opened, seen = recorded(kind)
    page = opened.page
    page.locator("#attention_map-name").select_option(name)
    page.locator("#attention_map-head").select_option(str(head))
    page.locator("#head-steps-row").select_option(str(row))
    page.get_by_role("button", name="Step 4").click()
    if (more := page.locator("#head-steps button.all")).count():
        more.click()
    heading = "document.querySelector('#head-steps .where').textContent"
    opened.until(f"{heading}.endsWith('head {head}')")
    shown = page.locator("#head-steps td[data-column='weight']").all_inner_texts()
    assert [float(one) for one in shown] == pytest.approx(seen[f"{name}/weights"][0, head, row].tolist(), abs=HALF)
    added = opened.state(f"(await result.heads_added({{ name: '{name}', position: {row} }})).parts")
    added = {one["name"]: one["vector"] for one in added}
    total = [sum(column) for column in zip(*added.values(), strict=True)]
    assert total == pytest.approx(seen[f"{name}/output"][0, row].tolist(), rel=HALF, abs=HALF)


@pytest.mark.parametrize("kind", KINDS)
def test_the_logits_of_the_likeliest_are_told_apart(kind: str, recorded: Any) -> None:
    opened, seen = recorded(kind)
    page, place = opened.page, opened.state("store.get('place')")
    for option in page.locator("#attribution-token option").evaluate_all(
        "all => all.slice(0, 2).map((one) => one.value)"
    ):
        page.locator("#attribution-token").select_option(option)
        logit = float(seen["logits"][0][int(option)] if kind == "classifier" else seen["logits"][0, place, int(option)])
        sums = "document.querySelector('#attribution .sum').dataset"
        opened.until(f"Math.abs({sums}.logit - {logit}) < 1e-4")
        said = opened.state(f"({{...{sums}}})")
        assert float(said["sum"]) == pytest.approx(float(said["logit"]), rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "classifier"])
def test_the_lens_ends_in_what_is_predicted(kind: str, recorded: Any, open_page: Any) -> None:
    opened, _ = recorded(kind)
    lens, predictions = opened.state("result.lens"), opened.state("result.pass.predictions")
    assert [row[:5] for row in predictions] == lens[-1]["predictions"]
    whole = open_page(kind)
    assert [one["name"] for one in lens] == [one["name"] for one in whole.state("result.lens")]
    for own, models in zip(predictions, whole.state("result.pass.predictions"), strict=True):
        assert own[0]["id"] == models[0]["id"]
        assert own[0]["probability"] == pytest.approx(models[0]["probability"], rel=1e-3)
        assert opened.state(f"result.token({own[0]['id']}).text") == whole.state(f"result.token({own[0]['id']}).text")


@pytest.mark.parametrize("kind", ["writer", "BPE writer"])
def test_the_next_token_is_drawn_by_any_settings(kind: str, recorded: Any, open_page: Any) -> None:
    opened, whole = recorded(kind)[0], open_page(kind)
    step = "{ token: result.step.token, kept: result.step.kept, cuts: result.step.cuts, said: result.chosen.at(-1).id }"
    assert opened.state(step)["token"] == whole.state(step)["token"]
    for name, value in {"temperature": 1.4, "top_k": 9, "min_p": 0.05, "seed": 7}.items():
        for one in (opened, whole):
            field = one.page.locator(f"#next_token-{name}")
            one.after(lambda field=field, value=value: (field.fill(str(value)), field.blur()))
        found, wanted = opened.state(step), whole.state(step)
        assert {cut: one["tokens"] for cut, one in found["cuts"].items()} == {
            cut: one["tokens"] for cut, one in wanted["cuts"].items()
        }
        assert (found["token"], found["kept"], found["said"]) == (wanted["token"], wanted["kept"], wanted["said"])
    bars = "#next_token .bar text:first-of-type"
    assert opened.page.locator(bars).all_text_contents() == whole.page.locator(bars).all_text_contents()
    assert opened.page.locator("#next_token .bar[role=button], #next_token-sample").count() == 0
    drawn = user(kind).generate([TEXTS[kind]], max_tokens=1, temperature=1.4, top_k=9, min_p=0.05, seed=7)[0][0]
    assert opened.state("result.token(result.step.token).text") == drawn


def test_a_search_by_other_settings_is_shown_by_these(open_page: Any, tmp_path: Path) -> None:
    text = TEXTS["translator"]
    seen = user("translator").look(text, beam_size=3, alpha=1.3)
    for name, size in (("whole", 40.0), ("arrays", 0.001)):
        saved = seen.save_page(tmp_path / f"{name}.html", max_size=size)
        opened = open_page("translator", file=saved.path)
        settings = opened.state("result.search.settings")
        assert (settings["beam_size"], settings["alpha"]) == (3, 1.3)
        best = opened.state("result.search.hypotheses[0]")
        shown = opened.page.locator("#beam_tree-node").evaluate("one => ({...one.dataset})")
        assert float(shown["score"]) == pytest.approx(best["score"], rel=1e-4)
        assert best["score"] == pytest.approx(seen.beam.hypotheses[0].score, rel=1e-4)


def test_a_translation_that_was_given_is_held(open_page: Any, tmp_path: Path) -> None:
    seen = user("translator").look(TEXTS["translator"], "a red fox")
    saved = seen.save_page(tmp_path / "page.html")
    opened = open_page("translator", file=saved.path)
    assert opened.page.locator("#output").text_content() == "a red fox"
    assert [one["id"] for one in opened.state("result.pass.target")] == [token.id for token in seen.tokens]
    opened.after(opened.page.locator("#alternatives .free").click)
    assert opened.page.locator("#output").text_content() == user("translator").translate([TEXTS["translator"]])[0]
