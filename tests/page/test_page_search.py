"""A translator's page: tokens are forced, the search has other settings, and the tree adds up: as in the library."""

import math
from typing import Any

import numpy as np
import pytest
from small_models import TEXTS, content, user

from plainformer.decode.reference import model_logits

TEXT = TEXTS["translator"]
NAMES = ["text", "score", "logprob", "finished"]


def next_logprobs(ids: list[int]) -> np.ndarray:
    """The library's log-probabilities behind `ids`, the unknown token left out as a search does."""
    model, tokenizer = user("translator").model, content("translator").target_tokenizer
    source = tokenizer.encode(TEXT)
    logits = model_logits(model, source, bos=tokenizer.bos_id, eos=tokenizer.eos_id)(ids).astype(np.float64)
    return logits - np.logaddexp.reduce(logits)


def greedy(prefix: list[int], most: int) -> list[int]:
    """What the library's model says behind a prefix, token by token."""
    tokenizer, ids = content("translator").target_tokenizer, list(prefix)
    while len(ids) < most:
        logprobs = next_logprobs(ids)
        logprobs[[tokenizer.unk_id, tokenizer.pad_id, tokenizer.bos_id]] = -math.inf
        best = int(logprobs.argmax())
        if best == tokenizer.eos_id:
            break
        ids.append(best)
    return ids


def hypotheses(opened: Any) -> list[dict[str, Any]]:
    return opened.state("result.search.hypotheses")


def set_slider(opened: Any, name: str, value: float) -> None:
    """Move a slider by keys, as far as it goes."""
    slider = opened.page.locator(f"#beam_tree-{name}")
    steps = round((value - float(slider.input_value())) / float(slider.get_attribute("step")))
    slider.focus()
    for _ in range(abs(steps)):
        opened.after(lambda: opened.page.keyboard.press("ArrowRight" if steps > 0 else "ArrowLeft"))
    assert float(slider.input_value()) == pytest.approx(value)


def test_settings_are_moved_and_the_library_finds_the_same(open_page: Any) -> None:
    opened = open_page("translator")
    wanted: dict[str, Any] = {"beam_size": 4, "alpha": 0.6}
    scores = set()
    for name, value in (("beam_size", 5), ("alpha", 1.2)):
        opened.after(lambda name=name, value=value: opened.page.locator(f"#beam_tree-{name}").fill(str(value)))
        wanted[name] = value
        scores.add(agree_on(opened, wanted))
    opened.after(lambda: opened.page.get_by_label("Length penalty", exact=True).select_option("average"))
    scores.add(agree_on(opened, wanted | {"length_penalty": "average"}))
    opened.after(lambda: opened.page.get_by_label("Length penalty", exact=True).select_option("none"))
    assert opened.page.locator("#beam_tree-alpha").is_disabled()
    scores.add(agree_on(opened, wanted | {"length_penalty": "none"}))
    assert len(scores) == 4
    opened.after(lambda: opened.page.locator("#beam_tree-restore").click())
    agree_on(opened, {})
    assert opened.state("store.get('settings')") == {}


def agree_on(opened: Any, wanted: dict[str, Any]) -> float:
    """The page's hypotheses are the library's under these settings; the best one's score."""
    beam = wanted.get("beam_size", 4)
    best = user("translator").translate_n_best([TEXT], **wanted, n_best=beam)[0]
    found = hypotheses(opened)
    assert [one["text"] for one in found] == [one.text for one in best]
    assert [one["score"] for one in found] == pytest.approx([one.score for one in best], rel=1e-4)
    assert opened.page.locator("#output").text_content() == best[0].text
    table = opened.page.locator("#beam_tree tbody")
    assert table.locator(".hypothesis").all_text_contents() == [one.text or "(empty)" for one in best]
    scores = [float(one.replace("−", "-")) for one in table.locator("tr td:last-child").all_text_contents()]
    assert scores == pytest.approx([one.score for one in best], abs=6e-4)
    return round(best[0].score, 5)


def test_a_token_is_forced_and_the_rest_is_decoded_anew(open_page: Any) -> None:
    opened = open_page("translator")
    page = opened.page
    set_slider(opened, "beam_size", 1)
    most = opened.state("result.search.bound")
    assert hypotheses(opened)[0]["ids"] == greedy([], most)
    before = hypotheses(opened)[0]["ids"]
    column = page.locator("#alternatives .column[data-token='target:2']")
    other = column.locator(".cell.press:not(.head)").nth(1)
    opened.after(other.click)
    ids = hypotheses(opened)[0]["ids"]
    assert ids[:2] == before[:2]
    assert ids[2] != before[2]
    assert ids == greedy(ids[:3], most)
    assert opened.state("store.get('written')") == ids[:3]
    assert "3 tokens are held" in page.locator("#alternatives").inner_text()
    assert page.locator("#output").text_content() == content("translator").target_tokenizer.decode(ids)
    opened.after(lambda: page.locator("#beam_tree-beam_size").fill("4"))
    for one in hypotheses(opened):
        assert one["ids"][:3] == ids[:3]
        ends = [content("translator").target_tokenizer.eos_id] if one["finished"] else []
        own = [*one["ids"], *ends]
        total = sum(float(next_logprobs(own[:at])[id]) for at, id in enumerate(own))
        assert one["logprob"] == pytest.approx(total, rel=1e-4)
    opened.after(page.locator("#alternatives .free").click)
    assert hypotheses(opened)[0]["text"] == user("translator").translate([TEXT])[0]


def test_each_path_of_the_tree_sums_to_its_score_as_it_is_shown(open_page: Any) -> None:
    opened = open_page("translator")
    page = opened.page
    nodes, found = opened.state("result.search.nodes"), hypotheses(opened)
    settings = opened.state("result.search.settings")
    assert len(found) == 4
    for place, one in enumerate(found):
        page.locator("#beam_tree .hypothesis").nth(place).click()
        at, total, length = one["node"], 0.0, 0
        while nodes[at]["parent"] >= 0:
            total, length, at = total + nodes[at]["logprob"], length + 1, nodes[at]["parent"]
        score = total / ((5 + length) / 6) ** settings["alpha"]
        assert one["score"] == pytest.approx(score, rel=1e-5)
        shown = page.locator("#beam_tree-node").evaluate("one => ({...one.dataset})")
        assert float(shown["sum"]) == pytest.approx(total, rel=1e-5)
        assert float(shown["score"]) == pytest.approx(score, rel=1e-5)
        said = page.locator("#beam_tree-node .sum b").inner_text().replace("−", "-")
        assert float(said) == pytest.approx(score, abs=6e-5)
        assert page.locator("#beam_tree-node .term").count() == length
    drawn = page.locator("#beam_tree [data-node]").evaluate_all("all => all.map((one) => Number(one.dataset.node))")
    assert {one["node"] for one in found} <= set(drawn)
    assert all(nodes[node]["reason"] for node in drawn if nodes[node]["fate"] == "pruned")


def test_the_search_goes_on_from_a_pruned_node_that_is_chosen(open_page: Any) -> None:
    opened = open_page("translator")
    page = opened.page
    pruned = page.locator("#beam_tree .node.pruned").first
    label = pruned.get_attribute("aria-label")
    pruned.focus()
    page.keyboard.press("Enter")
    assert "pruned" in label
    assert "pruned" in page.locator("#beam_tree-node h3").inner_text()
    opened.after(page.get_by_role("button", name="Search on from here").click)
    written = opened.state("store.get('written')")
    assert written
    assert all(one["ids"][: len(written)] == written for one in hypotheses(opened))
    opened.after(page.locator("#beam_tree .free").click)
    assert hypotheses(opened)[0]["text"] == user("translator").translate([TEXT])[0]
