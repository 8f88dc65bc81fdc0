"""LibreTranslate's API: its client works as it is, and gets what the model alone gives."""

import urllib.error
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from plainformer.decode.translator import Translator
from plainformer.serve.app import Doors
from plainformer.serve.house import Bounds, house_of
from plainformer.serve.libretranslate import MOST_ALTERNATIVES, beam_for
from plainformer.serve.limits import Limits
from plainformer.serve.security import Keys
from plainformer.serve.tagged import placed
from running import ask, running

SMALL = Limits(hypotheses=6)


@pytest.fixture(scope="module")
def url(translator: Translator) -> Iterator[str]:
    models: Any = {"one": (translator, ("en", "de")), "other": (translator, ("de", "pt-BR"))}
    with running(house_of(models, limits=SMALL, bounds=Bounds(texts=40, characters=4000))) as address:
        yield address


def test_the_official_client_works_unchanged(url: str, translator: Translator) -> None:
    client = pytest.importorskip("libretranslatepy", reason="the client of LibreTranslate is not installed")
    api = client.LibreTranslateAPI(url)
    assert api.translate("gf ih", "en", "de") == translator.translate(["gf ih"])[0]
    assert api.languages() == [
        {"code": "en", "name": "English", "targets": ["de"]},
        {"code": "de", "name": "German", "targets": ["pt-BR"]},
        {"code": "pt-BR", "name": "Portuguese (BR)", "targets": []},
    ]
    found = api.detect("das ist ein Haus, und es ist nicht klein")
    assert found[0]["language"] == "de"
    assert found[0]["confidence"] > 90
    assert api.detect("the house is not small, and they like it")[0]["language"] == "en"
    with pytest.raises(urllib.error.HTTPError, match="400"):
        api.translate("ba", "en", "fr")


def test_a_key_is_asked_for_and_taken(translator: Translator) -> None:
    client = pytest.importorskip("libretranslatepy", reason="the client of LibreTranslate is not installed")
    models: Any = {"one": (translator, ("en", "de"))}
    with running(house_of(models, limits=SMALL, needs_key=True), Doors(Keys.of(["wrong", "secret ü"]))) as url:
        assert client.LibreTranslateAPI(url, "secret ü").translate("fe", "en", "de") == translator.translate(["fe"])[0]
        for key in (None, "", "secret", "wrong "):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                client.LibreTranslateAPI(url, key).translate("ba", "en", "de")
        body = {"q": "ba", "source": "en", "target": "de"}
        assert ask(f"{url}/translate", body, headers={"Authorization": "Bearer wrong"}).status == 200
        assert ask(f"{url}/translate", body | {"api_key": 3}).status == 403
        assert ask(f"{url}/frontend/settings").json["keyRequired"] is True
        assert ask(f"{url}/health").json == {"status": "ok"}
        assert ask(f"{url}/metrics").status == 401
        assert "security" in ask(f"{url}/openapi.json").json["paths"]["/translate"]["post"]


def test_lists_alternatives_and_languages_come_in_the_form_that_they_were_asked_in(
    url: str, translator: Translator
) -> None:
    body = {"q": ["dc hg", "ih"], "source": "en", "target": "de", "alternatives": 2}
    found = ask(f"{url}/translate", body).json
    options = translator.translate_n_best(["dc hg", "ih"], n_best=3, beam_size=3)
    assert found["translatedText"] == [one[0].text for one in options]
    expected = [[*dict.fromkeys(other.text for other in one[1:] if other.text != one[0].text)] for one in options]
    assert found["alternatives"] == expected
    assert ask(f"{url}/translate", body | {"q": "ih"}).json["alternatives"] == expected[1]
    assert "alternatives" not in ask(f"{url}/translate", body | {"alternatives": 0}).json
    one, four = (ask(f"{url}/translate", body | {"alternatives": count}).json for count in (1, 4))
    assert [len(each) for each in one["alternatives"]] <= [1, 1]
    assert len(four["alternatives"][0]) > len(one["alternatives"][0])
    german = "das ist ein Haus, und es ist nicht klein"
    one = ask(f"{url}/translate", {"q": german, "source": "auto", "target": "pt-BR"}).json
    assert one["detectedLanguage"]["language"] == "de"
    several = ask(f"{url}/translate", {"q": [german, german], "source": "auto", "target": "de"}).json
    assert several["translatedText"] == [german, german]  # which it is already
    assert [each["language"] for each in several["detectedLanguage"]] == ["de", "de"]


def test_however_many_alternatives_are_asked_for_there_are_few_beams() -> None:
    for own in (1, 3, 5, 30):
        sizes = [beam_for(1 + number, own) for number in range(1, MOST_ALTERNATIVES + 1)]
        assert len({*sizes}) <= 4
        assert all(size >= max(own, 2 + at) for at, size in enumerate(sizes))


def test_forms_are_read_as_json_is(url: str, translator: Translator) -> None:
    fields = {"q": "gf ih & dc", "source": "en", "target": "de", "format": "text"}
    expected = {"translatedText": translator.translate(["gf ih & dc"])[0]}
    coded = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    assert ask(f"{url}/translate", urlencode(fields).encode(), headers=coded).json == expected
    parts = [f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{fields[name]}\r\n' for name in fields]
    body = "".join([*parts, "--x--\r\n"]).encode()
    assert ask(f"{url}/translate", body, headers={"Content-Type": "multipart/form-data; boundary=x"}).json == expected


def test_long_texts_are_put_together_as_they_were(url: str, translator: Translator) -> None:
    sentences = ["fe", "Dc hg!", "Ih.", "ih"]
    text = "\n  fe\t\n Dc hg!  Ih.\r\n\r\n\t☺\nih\n"
    gaps = ["\n  ", "\t\n ", "  ", "\r\n\r\n\t☺\n", "\n"]
    done = translator.translate(sentences)
    assert done[0]
    assert done[0] != done[3]
    expected = gaps[0] + "".join(one + gap for one, gap in zip(done, gaps[1:], strict=True))
    asked = {"q": text, "source": "en", "target": "de"}
    assert ask(f"{url}/translate", asked).json["translatedText"] == expected
    assert ask(f"{url}/translate", asked | {"q": " ☺\n"}).json["translatedText"] == " ☺\n"
    endless = ask(f"{url}/translate", asked | {"q": "fe " * 1300})
    assert endless.status == 200
    assert endless.json["translatedText"].strip()


def test_tags_are_kept_and_the_text_in_them_is_translated(url: str, translator: Translator) -> None:
    whole, *own = translator.translate(["dc hg ih", "dc hg", "ih"])
    assert all(own)
    one, two = placed(whole, own, [" "]) or own
    document = "<p class=\"ih\">dc hg <b title='ih'>ih</b><br/>\n<code>ih</code></p>"
    expected = f"<p class=\"ih\">{one} <b title='ih'>{two}</b><br/>\n<code>ih</code></p>"
    asked = {"q": document, "source": "en", "target": "de", "format": "html"}
    assert ask(f"{url}/translate", asked).json == {"translatedText": expected}
    assert ask(f"{url}/translate", asked | {"q": [document, "<br>"]}).json == {"translatedText": [expected, "<br>"]}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"q": None}, "q: "),
        ({"q": []}, "missing q parameter"),
        ({"q": 3}, "q: "),
        ({"q": ["ba"] * 41}, "q has 41 texts; give at most 40"),
        ({"q": "ba " * 2000}, "q has 6,000 characters; give at most 4,000"),
        ({"source": "zz"}, "zz is not supported"),
        ({"target": "zz" * 100}, "is not supported"),
        ({"target": "pt-BR"}, "pt-BR is not supported as a target of en"),
        ({"format": "xml"}, "format: "),
        ({"alternatives": "many"}, "alternatives: "),
        ({"alternatives": False}, "alternatives: it must be a whole number"),
        ({"alternatives": 1.5}, "alternatives: it must be a whole number"),
        ({"alternatives": "²"}, "alternatives: it must be a whole number"),
        ({"alternatives": 10**9}, "alternatives: "),
    ],
)
def test_what_is_wrong_is_said_in_its_form(url: str, changes: dict[str, Any], said: str) -> None:
    reply = ask(f"{url}/translate", {"q": "ba", "source": "en", "target": "de"} | changes)
    assert reply.status == 400
    assert list(reply.json) == ["error"]
    assert said in reply.json["error"]


def test_what_is_missing_is_named(url: str) -> None:
    body = {"q": "ba", "source": "en", "target": "de"}
    for name in body:
        reply = ask(f"{url}/translate", {other: value for other, value in body.items() if other != name})
        assert (reply.status, reply.json) == (400, {"error": f"Invalid request: missing {name} parameter"})
