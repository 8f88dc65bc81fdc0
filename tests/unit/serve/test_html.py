"""Documents whose texts are replaced: their markup stays, byte for byte."""

import random
import time
from html.parser import HTMLParser

import pytest

from plainformer.serve.html import parts
from plainformer.serve.tagged import Tagged, placed

TAGS = ["p", "div", "b", "i", "span", "ul", "li", "a", "h1", "table", "td"]
ATTRIBUTES = [' class="x>y"', " data-a='<b>'", " hidden", ' href="/a?b=1&amp;c=2"', ' title="a man"', " value=a>b"[:8]]
ENDS = ["<br>", " <br/>\n", '<img alt="a > b">', "<!-- b -->", " <!-- -->", ". <!-- -->"]
TEXTS = ["a man", "two < three", "x & y", "ü nicht", "a\u00a0b", "1 > 0"]


class Read(HTMLParser):
    """Tags with their attributes, and texts, as Python's own parser reads them."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, ...]] = []
        self.texts: list[str] = []
        self.feed(document)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(("start", tag, self.get_starttag_text() or ""))

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(("end", tag))

    def handle_comment(self, data: str) -> None:
        self.tags.append(("comment", data))

    def handle_data(self, data: str) -> None:
        if data.strip(" \t\n"):
            self.texts.append(data.strip(" \t\n"))


def made(draw: random.Random, depth: int) -> str:
    """A random document, well-formed."""
    inner = ""
    for _ in range(draw.randint(0, 4)):
        kind = draw.random()
        if kind < 0.4 or depth == 0:
            text = draw.choice(TEXTS).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
            inner += draw.choice(["", " ", "\n  "]) + text + draw.choice(ENDS)
        elif kind < 0.5:
            inner += draw.choice(["<!-- a <b> man -->", "<script>if (a<b) {'</p>'}</script>", "<style>p>b{}</style>"])
        else:
            tag, attributes = draw.choice(TAGS), "".join(draw.sample(ATTRIBUTES, draw.randint(0, 3)))
            inner += f"<{tag}{attributes}>{made(draw, depth - 1)}</{tag}>"
    return inner


def test_a_thousand_documents_keep_their_tags_and_have_other_texts() -> None:
    draw, texts = random.Random(1), 0
    for _ in range(1000):
        document = made(draw, 5)
        found = parts(document)
        before, after = Read(document), Read(found.joined([text.upper() for text in found.texts]))
        assert after.tags == before.tags
        script = [text for text in before.texts if text.startswith(("if (a<b)", "p>b"))]
        expected = [text if text in script else text.upper() for text in before.texts]
        assert after.texts == expected
        tagged = Tagged(found)
        assert tagged.joined(tagged.texts) == found.joined(found.texts)
        after = Read(tagged.joined([text.upper() for text in tagged.texts]))
        assert (after.tags, after.texts) == (before.tags, expected)
        texts += len(found.texts)
    assert texts > 2000


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ("a < b and c <3", ["a < b and c <3"]),
        ("<p title='a'>one<p>two", ["one", "two"]),
        ('one<b class="a', ["one"]),
        ("one<!-- never", ["one"]),
        ("<!doctype html><?php x ?>one</ p>two", ["one", "two"]),
        ("<code>a <b>c</b></code> one <pre>b</pre>", ["one"]),
        ('<p translate="no">a <p>b</p> c</p>d<i class="x notranslate">e</i>', ["d"]),
        ("<textarea><p>a</textarea>one<title>two</title>", ["one", "two"]),
        ('<a href="a" b"c\'d>one</a>', ["one"]),
        ("<!-->one<!--->two<!-- -->three", ["one", "two", "three"]),
        ("&lt;p&gt; &amp; &#x41;&eacute;", ["<p> & Aé"]),
        ("</b></code>one", ["one"]),
        ("<svg><text>a</text></svg>one<svg/>two<script/>three", ["one", "two"]),
        ("", []),
    ],
)
def test_what_is_text(document: str, texts: list[str]) -> None:
    found = parts(document)
    assert list(found.texts) == texts
    joined = parts(found.joined(found.texts))
    assert (joined.texts, joined.others) == (found.texts, found.others)


@pytest.mark.parametrize(
    ("document", "texts"),
    [
        ("<p>One <b>two. Three</b> four.</p>", ["One two.", "One", "two.", "Three four.", "Three", "four."]),
        ("<p>One.</p> <i>Two.</i><br>three", ["One.", "Two.", "three"]),
        ("one <!-- a --><i>two</i>", ["one two", "one", "two"]),
        ("one <code>two</code> three", ["one", "three"]),
        ('a <i translate="no">b</i> c', ["a", "c"]),
        ("<b>a</b> " * 33, ["a"] * 33),
        ("O<b>n</b>e", ["One", "O", "n", "e"]),
    ],
)
def test_a_sentence_goes_on_through_tags_of_words(document: str, texts: list[str]) -> None:
    tagged = Tagged(parts(document))
    assert list(tagged.texts) == texts
    assert tagged.joined(tagged.texts) == document


@pytest.mark.parametrize(
    ("whole", "own", "pieces"),
    [
        ("Eins zwei drei.", ["Eins.", "Zwei", "blau."], ["Eins", "zwei", "drei."]),
        ("Der große Hund, (ja) bellt", ["Groß", "(Ja)", "bellt"], ["Der große Hund,", "(ja)", "bellt"]),
        ("Das Haus", ["Haus", "blau"], []),  # nothing would be left before the tag
        ("zwei eins", ["eins", "zwei"], []),
        ("Einszwei", ["Eins", "zwei"], []),
        ("Straẞe İ eins", ["eins", "zwei"], []),
    ],
)
def test_where_tags_stand_is_told_from_the_parts_of_a_sentence(whole: str, own: list[str], pieces: list[str]) -> None:
    assert placed(whole, own, [" "] * (len(own) - 1)) == pieces


NEVER = ["<a '", "<a \"='", "<!--", "</script ", "<script>", "<code>", "</b>", '<a """', "<", "&#x", "<a b= "]
TAGS_ALONE = ["A. <b></b>", "a<b>c</b>", "a <i>.", "<b>a b c d e f g.</b> "]


@pytest.mark.parametrize("part", [*NEVER, *TAGS_ALONE])
def test_markup_that_never_ends_takes_no_time(part: str) -> None:
    began = time.process_time()
    size = 200_000 if part in NEVER else 40_000  # sentences are many objects, checked one by one in tests
    found = parts(part * (size // len(part)))
    tagged = Tagged(found)
    tagged.joined(tagged.texts)
    assert time.process_time() - began < 2.0
