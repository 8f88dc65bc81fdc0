"""What only some kinds of model have on their pages: the next token, gaps, labels; as in the library."""

from typing import Any

import numpy as np
import pytest
from small_models import TEXTS, content, user


def written_behind(opened: Any) -> str:
    return "".join(opened.page.locator("#next_token-text .written").all_text_contents())


def probabilities(opened: Any) -> dict[int, float]:
    return {one["id"]: one["probability"] for one in opened.state("result.step.predictions")}


def test_a_text_is_sampled_step_by_step_and_taken_back(open_page: Any) -> None:
    opened = open_page("writer")
    page, prompt = opened.page, TEXTS["writer"]
    wanted = user("writer").generate([prompt], max_tokens=6)[0][0]
    press = {name: page.locator(f"#next_token-{name}") for name in ("sample", "step", "back", "clear", "more")}
    for count in range(1, 4):
        opened.after(press["sample"].click)
        assert written_behind(opened) == wanted[:count]
    opened.after(press["back"].click)
    assert written_behind(opened) == wanted[:2]
    page.locator("#next_token-count").fill("4")
    opened.after(press["more"].click)
    assert written_behind(opened) == wanted
    opened.after(press["clear"].click)
    assert written_behind(opened) == ""
    best = user("writer").generate([prompt], max_tokens=3, temperature=0.0)[0][0]
    for _ in range(3):
        opened.after(press["step"].click)
    assert written_behind(opened) == best
    assert page.locator("#text").input_value() == prompt
    opened.after(press["clear"].click)
    row = page.locator("#next_token .bar:not(.drawn)").nth(2)
    token = int(row.get_attribute("data-id"))
    opened.after(row.click)
    assert opened.state("store.get('written')") == [token]
    assert opened.state("result.ids") == [*content("writer").source_tokenizer.encode(prompt), token]


def test_the_next_token_and_what_each_setting_cuts(open_page: Any) -> None:
    opened = open_page("BPE writer")
    page, seen = opened.page, user("BPE writer").look(TEXTS["BPE writer"], top=5)
    best = {one.token.id: one.probability for one in seen.predictions[-1]}
    found = probabilities(opened)
    ratios = [found[id] / best[id] for id in best if id in found]
    assert ratios == pytest.approx([ratios[0]] * len(ratios), rel=1e-4)  # what stands for no text is left out
    settings = {"temperature": 0.8, "top_k": 9, "top_p": 0.7, "min_p": 0.05}
    for name, value in settings.items():
        slider = page.locator(f"#next_token-{name}")
        opened.after(lambda slider=slider, value=value: slider.fill(str(value)))
    assert opened.state("store.get('settings')") == pytest.approx(settings)
    shown = opened.state("result.step.predictions")
    drawn = np.array([one["drawn"] for one in shown])
    ranked = np.array([one["probability"] for one in shown]) ** (1 / settings["temperature"])
    kept = np.array([one["cut"] is None for one in shown])
    assert drawn.sum() == pytest.approx(1.0, abs=1e-4)
    assert drawn[kept] == pytest.approx(ranked[kept] / ranked[kept].sum(), rel=1e-3)
    assert (drawn[~kept] == 0).all()
    assert kept.sum() <= settings["top_k"]
    cut = page.locator("#next_token-cuts li")
    assert cut.count() >= 1
    assert {one["cut"] for one in shown} - {None} <= set(
        cut.evaluate_all("all => all.map((one) => one.dataset.setting)")
    )
    wanted = user("BPE writer").generate([TEXTS["BPE writer"]], max_tokens=5, **settings)[0][0]
    for _ in range(5):
        opened.after(page.locator("#next_token-sample").click)
    whole = content("BPE writer").source_tokenizer.decode(opened.state("result.ids"))
    assert whole == TEXTS["BPE writer"] + wanted
    opened.after(page.locator("#next_token-restore").click)
    assert opened.state("store.get('settings')") == {}


def test_a_token_is_forced_in_a_text_and_the_rest_is_written_anew(open_page: Any) -> None:
    opened = open_page("writer")
    page, prompt = opened.page, TEXTS["writer"]
    page.locator("#next_token-count").fill("5")
    opened.after(page.locator("#next_token-more").click)
    before = opened.state("store.get('written')")
    at = len(prompt) + 1  # the place whose next token is the third that was written
    opened.page.locator(f"#alternatives [data-cell='{at} 0']").click()
    other = page.locator(f"#alternatives .column[data-token='target:{at}'] .cell.press:not(.head)").first
    opened.after(other.click)
    after = opened.state("store.get('written')")
    assert after[:2] == before[:2]
    assert after[2] != before[2]
    assert len(after) == len(before)
    forced = prompt + content("writer").target_tokenizer.decode(after[:3])
    assert written_behind(opened) == (forced + user("writer").generate([forced], max_tokens=2)[0][0])[len(prompt) :]


def test_a_guess_is_put_into_its_gap(open_page: Any) -> None:
    opened = open_page("filler", text="the <mask> saw a <mask>")
    page = opened.page
    guesses = user("filler").fill(["the <mask> saw a <mask>"], top=4)[0]
    found, gaps = opened.state("result.pass.predictions"), opened.state("result.pass.gaps")
    for gap, wanted in zip(gaps, guesses, strict=True):
        views = [opened.state(f"result.token({one['id']})") for one in found[gap][:4]]
        assert [one["text"] for one in views if "\ufffd" not in one["text"]] == [
            one.text for one, view in zip(wanted, views, strict=True) if "\ufffd" not in view["text"]
        ]
        assert [one["probability"] for one in found[gap][:4]] == pytest.approx(
            [one.probability for one in wanted], rel=1e-4
        )
    assert page.locator("#gaps mark").count() == 2
    opened_text = page.locator("#text")
    column = page.locator("#gaps .column").nth(1)
    serial = opened.state("result.serial")
    column.locator(".cell.press:not(.head)").nth(1).click()
    opened.until(f"store.get('result').serial > {serial}")
    text = opened_text.input_value()
    assert text.startswith("the <mask> saw a")
    assert text.count("<mask>") == 1
    assert page.locator("#gaps mark").count() == 1
    opened.type("the fox saw a dog")
    assert page.get_by_text("There is no gap").is_visible()


def test_labels_and_what_each_word_adds(open_page: Any) -> None:
    opened = open_page("classifier")
    page, text = opened.page, TEXTS["classifier"]
    label = user("classifier").classify([text])[0]
    found = {one["label"]: one["probability"] for one in opened.state("result.pass.labels")}
    assert found == pytest.approx(label.probabilities, abs=1e-5)
    assert page.locator("#output").text_content() == label.label
    seen = user("classifier").look(text)
    left_out = opened.state("result.left_out")
    assert [one["word"] for one in left_out] == [word for word, _ in seen.left_out] == text.split()
    for one, (_, change) in zip(left_out, seen.left_out, strict=True):
        without = {label["label"]: label["probability"] for label in one["labels"]}
        assert {name: found[name] - without[name] for name in found} == pytest.approx(change, abs=1e-5)
    words = page.locator("#labels .shaded .word")
    assert words.all_inner_texts() == text.split()
    against = [change[label.label] < 0 for _, change in seen.left_out]
    assert [("against" in kind) for kind in words.evaluate_all("all => all.map((one) => one.className)")] == against
    other = next(name for name in found if name != label.label)
    page.locator("#labels").get_by_role("button", name=f"{other},").click()
    opened.until(f"document.querySelector('#labels').textContent.includes('add to “{other}”')")
