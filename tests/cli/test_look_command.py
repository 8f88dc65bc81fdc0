"""`plainformer look`: a page with the model in it, or of its arrays; and what is refused, in one line."""

import re

import pytest

import plainformer


def carried(page) -> str:
    """What a page has: a `bundle`, or a `recording`."""
    (kind,) = re.findall(r'<script type="application/json" id="(bundle|recording)">', page.read_text(encoding="utf-8"))
    return kind


def test_a_page_is_written_and_how_to_open_it_is_said(cli, models, tmp_path):
    page = tmp_path / "page.html"
    out = cli("look", models["masked"], "the m<mask>n", "-o", page).written()
    size = page.stat().st_size / 1e6
    assert out == f"{page}: {size:.1f} MB; open it in a browser: {page.as_uri()}\n"
    assert carried(page) == "bundle"


def test_a_model_that_is_too_large_stays_and_that_is_said(cli, models, tmp_path):
    page = tmp_path / "page.html"
    out = cli("look", models["masked"], "the m<mask>n", "-o", page, "--max-size", 0.001, "--title", "A <b>").written()
    assert "MB, the arrays of this text without the model; open it" in out
    assert carried(page) == "recording"
    text = page.read_text(encoding="utf-8")
    assert "the model is larger than the 0.001 MB of a page (--max-size)" in text
    assert "<title>A &lt;b></title>" in text.replace("&gt;", ">")


def test_text_comes_from_standard_input_too(cli, models, tmp_path):
    page = tmp_path / "page.html"
    cli("look", models["masked"], "-o", page, stdin=b"the m<mask>n\n").written()
    assert '"text": "the m\\u003cmask>n"' in page.read_text(encoding="utf-8")


def test_a_file_that_is_there_is_kept_unless_told(cli, models, tmp_path):
    page = tmp_path / "page.html"
    page.write_text("mine")
    error = cli("look", models["masked"], "the moon", "-o", page).error(2)
    assert error == f"{page}: there is such a file already; name another, or replace it (--overwrite)"
    assert page.read_text() == "mine"
    cli("look", models["masked"], "the moon", "-o", page, "--overwrite").written()
    assert carried(page) == "bundle"


def test_of_a_text_that_is_too_long_it_is_said_what_was_cut(cli, models, tmp_path):
    reader = plainformer.load(models["masked"])
    text = "the moon " * 60
    count = len(reader.tokenizer.encode(text))
    most = reader.max_text_tokens
    assert count > most
    outcome = cli("look", models["masked"], text, "-o", tmp_path / "page.html")
    said = (
        f"the text has {count:,} tokens, of which the model reads the first {most:,} tokens: {count - most:,} are cut"
    )
    assert (outcome.code, outcome.err) == (0, said + "\n")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["", "-o", "page.html"], "the text is empty; give some text"),
        ([" \n", "-o", "page.html"], "the text is empty; give some text"),
        (["the 猫", "-o", "page.html"], "text: the model's vocabulary does not have '猫'"),
        (["moon", "-o", "none/page.html"], "none: there is no such folder; make it, or name another"),
        (["moon", "-o", "."], ".: this is a folder, and a page is a file; name a file in it"),
        (["moon", "-o", "-"], "-: a page is written to a file; name one, such as page.html"),
        (["moon", "--weights", "int4"], "--weights: a page has no int4 weights; choose float32, float16, int8"),
        (["moon", "--max-size", "0"], "--max-size: a page of 0.0 MB was asked for; give more than 0"),
    ],
)
def test_bad_input_is_one_line(cli, models, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert cli("look", models["masked"], *arguments).error(2).startswith(said)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_no_model_is_refused(cli, tmp_path):
    assert str(tmp_path) in cli("look", tmp_path, "moon", "-o", tmp_path / "page.html").error(2)
    assert not (tmp_path / "page.html").exists()
