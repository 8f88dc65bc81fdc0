"""A blank text: translated to an empty one; where something is told of a text, refused in words, with its place.

So it is in Python and in the shell, but that lines of a stream stay in step there: `classify` gives an empty line for
one that is blank, and `fill` passes over it.
"""

import pytest

import plainformer
from plainformer.errors import InputError

KINDS = {"translate": "translator", "classify": "classifier", "embed": "masked", "fill": "masked", "score": "character"}
SAID = {
    "classify": "the text is empty; give some text",
    "embed": "the text is empty; give some text",
    "fill": "the text has no gap; write <mask> where a word is to be guessed",
    "score": "the text is empty; give some text",
}


@pytest.mark.parametrize("verb", KINDS)
def test_an_empty_text_is_answered_or_refused_alike_in_the_shell_and_in_python(cli, models, verb) -> None:
    model = models[KINDS[verb]]
    outcome, ask = cli(verb, model, ""), getattr(plainformer.load(model), verb)
    if verb == "translate":
        assert (outcome.written(), ask([""])) == ("\n", [""])
        return
    if verb == "classify":
        assert outcome.written() == "\n"
    else:
        assert outcome.error(2) == f"argument 1: {SAID[verb]}"
    with pytest.raises(InputError) as caught:
        ask([""])
    assert str(caught.value) == f"text 1: {SAID[verb]}"


@pytest.mark.parametrize(
    ("verb", "out", "code"), [("translate", "\n", 0), ("classify", "\n", 0), ("embed", "", 2), ("fill", "", 0)]
)
def test_a_blank_line_of_a_stream(cli, models, verb, out, code) -> None:
    outcome = cli(verb, models[KINDS[verb]], stdin=b" \n")
    assert (outcome.out, outcome.code) == (out, code)
