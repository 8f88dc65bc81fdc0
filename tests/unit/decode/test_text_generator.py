"""A prompt in, a text out: stop strings, scores by hand, and what is refused."""

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from plainformer.decode import SamplingSettings
from plainformer.decode.text_generator import TextGenerator, TextScore
from plainformer.errors import InputError, WorkError
from plainformer.tokenizer import Tokenizer, train_bpe, train_character

CHARACTERS = train_character(["abcdefg \n"])
MERGED = train_bpe(["abc abc abc", "über"], 300)


def scripted(toys: SimpleNamespace, text: str, tokenizer: Tokenizer = CHARACTERS, **options: Any) -> TextGenerator:
    """A model that says `text` after any first token, then eos for ever."""
    ids = [0, *tokenizer.encode(text), *[tokenizer.eos_id] * 50]
    model = toys.script(ids, tokenizer.vocab_size, context=len(ids), **options)
    return TextGenerator(model, tokenizer, SamplingSettings(max_tokens=40, temperature=0.0))


def said(writer: TextGenerator, prompt: str = "a", **options: Any) -> str:
    """By `generate` and by `stream`, which must agree."""
    ((text,),) = writer.generate([prompt], **options)
    pieces = list(writer.stream(prompt, **options))
    assert "".join(pieces) == text
    assert all(pieces)
    return text


@pytest.mark.parametrize(
    ("stop", "expected"),
    [
        ([], "abcabd gab"),
        (["abd"], "abc"),  # its beginning comes twice
        (["d g"], "abcab"),
        (["bd", "abd"], "abc"),  # both are complete at once: the longer
        (["abcabd", "bca"], "a"),  # the one that is complete first
        (["abca", "bcabd"], ""),
        (["ab"], ""),
        (["gab"], "abcabd "),  # at the very end
        (["gabe", "bb"], "abcabd gab"),  # held back in vain, given out when the text ends
        (["", "c"], "ab"),
        ("d g", "abcab"),
    ],
)
def test_a_text_ends_before_the_first_stop_string(toys: SimpleNamespace, stop: list[str], expected: str) -> None:
    assert said(scripted(toys, "abcabd gab"), stop=stop) == expected


def test_what_could_begin_a_stop_string_waits(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abcabd gab")
    assert list(writer.stream("a", stop=["abd"])) == ["abc"]
    assert list(writer.stream("a", stop=["cad"])) == ["a", "b", "cab", "d", " ", "g", "a", "b"]


def test_a_stop_string_is_found_across_tokens_and_inside_one(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abc abc über", MERGED)
    assert len(MERGED.encode("abc abc über")) < 8
    assert said(writer) == " abc abc über"  # the prompt is a token, and the script begins with a space
    assert said(writer, stop=["bc ü"]) == " abc a"
    assert said(writer, stop=["b"]) == " a"


def test_writing_ends_when_every_text_has_its_stop_string(toys: SimpleNamespace) -> None:
    slides: list[int] = []
    model = toys.bigram(np.zeros((CHARACTERS.vocab_size,) * 2), context=100)
    writer = TextGenerator(model, CHARACTERS, SamplingSettings(max_tokens=100_000))
    found = writer.generate(["a", "b"], samples=3, stop=["a"], on_slide=lambda: slides.append(1))
    assert len(slides) < 5
    assert all("a" not in text for texts in found for text in texts)


def test_samples_come_one_after_the_other_and_live(toys: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens are characters, and some samples end by themselves: by eos, at `b` or where they are cut."""
    vocab = CHARACTERS.vocab_size
    model = toys.bigram(np.zeros((vocab, vocab)))
    writer = TextGenerator(model, CHARACTERS, SamplingSettings(max_tokens=9, seed=3))
    for rows in (64, 4):  # together, or four and three
        monkeypatch.setattr("plainformer.decode.text_generator.MOST_ROWS", rows)
        pieces = list(writer.stream_samples("a", samples=7, stop=["bc", "d"]))
        order = [piece.sample for piece in pieces]
        assert order == sorted(order)
        parts = [[piece for piece in pieces if piece.sample == sample] for sample in range(7)]
        assert len(parts[0]) > 1  # as it is written
        assert [["".join(piece.text for piece in part) for part in parts]] == writer.generate(
            ["a"], samples=7, stop=["bc", "d"]
        )
        ends = {(part[-1].finished, sum(piece.tokens for piece in part)) for part in parts}
        assert all(piece.finished is None for part in parts for piece in part[:-1])
        assert (False, 9) in ends
        assert {tokens for finished, tokens in ends if not finished} == {9}
        assert len(ends) > 2


def test_a_stop_string_at_the_last_token_is_an_end(toys: SimpleNamespace) -> None:
    *_, last = scripted(toys, "abcd").stream_samples("a", stop=["d"], max_tokens=4)
    assert (last.text, last.finished) == ("", True)
    *_, last = scripted(toys, "abcd").stream_samples("a", max_tokens=4)
    assert last.finished is False
    *_, last = scripted(toys, "abcd").stream_samples("a", max_tokens=5)
    assert last.finished is True  # by the token that ends a text


def test_many_rows_are_written_in_parts_and_come_back_in_order(toys: SimpleNamespace) -> None:
    """Row 5 + i of the table leads to token 5 + i + 1: the text says which prompt it belongs to."""
    letters = "abcdefg"
    vocab = CHARACTERS.vocab_size
    table = 50.0 * np.roll(np.eye(vocab), 1, axis=1)
    table[CHARACTERS.encode("g")[0]] = table[CHARACTERS.encode("f")[0]]
    writer = TextGenerator(toys.bigram(table), CHARACTERS, SamplingSettings(max_tokens=1, temperature=0.0))
    prompts = [("ba" * (i % 5))[: i % 9] + letters[i % 6] for i in range(70)]
    assert writer.generate(prompts) == [[letters[i % 6 + 1]] for i in range(70)]
    assert writer.generate([]) == []


def test_special_tokens_are_never_written(toys: SimpleNamespace) -> None:
    """All logits are equal, so each special token would come once in thirteen; eos is scarce, and ends a text."""
    table = np.zeros((CHARACTERS.vocab_size,) * 2)
    table[:, CHARACTERS.eos_id] = -4.0
    writer = TextGenerator(toys.bigram(table), CHARACTERS, SamplingSettings(max_tokens=90))
    lengths = [len(text) for text in writer.generate(["a"], samples=40)[0]]
    assert max(lengths) == 90
    assert min(lengths) < 90


def test_rows_of_a_model_that_are_no_tokens_are_never_written(toys: SimpleNamespace) -> None:
    """A checkpoint may have more rows than its tokenizer has tokens; here these are by far the most probable."""
    table = np.zeros((CHARACTERS.vocab_size + 3,) * 2)
    table[:, CHARACTERS.vocab_size :] = 9.0
    writer = TextGenerator(toys.bigram(table), CHARACTERS, SamplingSettings(max_tokens=30))
    assert any(writer.generate(["a"], samples=5)[0])


def test_a_prompt_stands_behind_bos_where_the_tokenizers_file_says_so(toys: SimpleNamespace) -> None:
    """After bos comes the prompt's letter, so that the text begins with the second of the script."""
    framed = CHARACTERS.framed(bos=True)
    ids = [framed.bos_id, *framed.encode("abc"), framed.eos_id]
    model = toys.script(ids, framed.vocab_size, context=len(ids))
    settings = SamplingSettings(max_tokens=40, temperature=0.0)
    assert (framed.leads_with_bos, CHARACTERS.leads_with_bos) == (True, False)
    assert TextGenerator(model, framed, settings).generate(["a"]) == [["bc"]]
    assert TextGenerator(model, CHARACTERS, settings).generate(["a"]) == [["abc"]]
    scores = TextGenerator(model, framed, settings).score(["a"])  # a single token: bos is what it comes after
    assert [len(score.logprobs) for score in scores] == [1]


# ---------------------------------------------------------------------------------------------------------------------
# Scores and search
# ---------------------------------------------------------------------------------------------------------------------


def test_a_score_known_by_hand(toys: SimpleNamespace) -> None:
    """All logits are equal: every token costs the logarithm of the vocabulary's size."""
    vocab = CHARACTERS.vocab_size
    writer = TextGenerator(toys.bigram(np.zeros((vocab, vocab)), pad_vocab_to=64), CHARACTERS)
    long, short = writer.score(["abcab", "ga"])
    assert long.tokens == ("a", "b", "c", "a", "b")
    np.testing.assert_allclose(long.logprobs, [-math.log(vocab)] * 4, rtol=1e-6)
    assert long.logprob == pytest.approx(-4 * math.log(vocab))
    assert long.perplexity == pytest.approx(vocab)
    assert short.perplexity == pytest.approx(vocab)
    assert long.bits_per_byte == pytest.approx(math.log2(vocab))


def test_what_is_certain_costs_nothing_and_not_less() -> None:
    """No negative zero, which JSON has, too."""
    assert str(TextScore(("a", "b"), (0.0,), 1).bits_per_byte) == "0.0"


def test_a_perplexity_beyond_all_numbers_is_infinite(toys: SimpleNamespace) -> None:
    table = np.zeros((CHARACTERS.vocab_size,) * 2)
    table[:, CHARACTERS.encode("a")] = 1e4
    (score,) = TextGenerator(toys.bigram(table), CHARACTERS).score(["ab"])
    assert score.logprob == pytest.approx(-1e4)
    assert score.perplexity == math.inf


def test_the_most_probable_tokens_of_each_place_are_told(toys: SimpleNamespace) -> None:
    """Of a text that is longer than is read at once, too; what only fills up the vocabulary is never one of them."""
    vocab, text = CHARACTERS.vocab_size, "abcdefg abcdefg abc"
    table = np.random.default_rng(3).normal(size=(vocab, vocab))
    writer = TextGenerator(toys.bigram(table, pad_vocab_to=64, context=7), CHARACTERS)
    logprobs = table - np.log(np.exp(table).sum(axis=1, keepdims=True))
    (score,) = writer.score([text], top=20)
    for ranked, id in zip(score.most_probable, CHARACTERS.encode(text)[:-1], strict=True):
        order = np.argsort(-logprobs[id])[:20]
        assert [other for other, _ in ranked] == order.tolist()
        np.testing.assert_allclose([each for _, each in ranked], logprobs[id, order], rtol=1e-5, atol=1e-5)
    (short,) = writer.score([text], top=2)
    assert short.most_probable == tuple(ranked[:2] for ranked in score.most_probable)
    assert writer.score([text])[0].most_probable == ()
    with pytest.raises(InputError, match="21 tokens of each place are asked for"):
        writer.score([text], top=21)


def test_bytes_are_those_of_the_scored_tokens(toys: SimpleNamespace) -> None:
    """A first token is a word with its space, a space, a letter of two bytes, or one byte of a letter."""
    writer = TextGenerator(toys.bigram(np.zeros((MERGED.vocab_size,) * 2)), MERGED)
    for text in ("abc abc", "  abc", "über", "ü", "日本", "\nabc"):
        ids = MERGED.encode(text)
        (score,) = writer.score([text])
        rest = b"".join(MERGED.token(id).encode() for id in ids[1:] if not MERGED.token(id).startswith("<0x"))
        spelt = sum(MERGED.token(id).startswith("<0x") for id in ids[1:])
        assert score.scored_bytes == len(rest) + spelt, text


def test_a_search_gives_texts_with_their_scores(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abc abc über", MERGED)
    (first, second), _ = writer.search(["a", "b"], max_tokens=30, beam_size=3, n_best=2)
    assert (first.text, first.finished) == (" abc abc über", True)
    assert first.score > second.score
    assert first.logprob == pytest.approx(0.0, abs=1e-6)  # as good as certain


# ---------------------------------------------------------------------------------------------------------------------
# What is refused
# ---------------------------------------------------------------------------------------------------------------------


def test_what_cannot_be_written_from_is_refused(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abc")
    with pytest.raises(InputError, match="prompt 2: the prompt is empty; give some text"):
        writer.generate(["a", ""])
    with pytest.raises(InputError, match=r"prompt 1: the model's vocabulary does not have 'xé'; leave it out"):
        writer.generate(["axaéx"])
    with pytest.raises(InputError, match="one text was given where a list of prompts is expected"):
        writer.generate("abc")
    with pytest.raises(InputError, match="0 samples"):
        writer.generate(["a"], samples=0)
    with pytest.raises(InputError, match="0 samples"):
        next(writer.stream_samples("a", samples=0))
    with pytest.raises(InputError, match="prompt 1: the prompt is empty"):
        next(writer.stream(""))


def test_wrong_settings_are_refused(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abc")
    with pytest.raises(InputError, match=r"unknown setting heat; the settings are end_tokens, .*, max_tokens, min_p"):
        writer.generate(["a"], heat=1.0)
    with pytest.raises(InputError, match=r"generation.top_p: top_p is 2.0"):
        writer.generate(["a"], top_p=2.0)
    with pytest.raises(InputError, match=r"generation.temperature: temperature is .hot. and must be of type float"):
        writer.generate(["a"], temperature="hot")
    with pytest.raises(InputError, match="max_tokens is 0"):
        writer.search(["a"], max_tokens=0)
    with pytest.raises(InputError, match="unknown setting temperature"):
        writer.search(["a"], temperature=0.5)


def test_what_cannot_be_scored_is_refused(toys: SimpleNamespace) -> None:
    writer = scripted(toys, "abc")
    with pytest.raises(InputError, match="text 2: the text has one token"):
        writer.score(["ab", "a"])
    with pytest.raises(InputError, match="text 1: the text is empty"):
        writer.score([""])
    with pytest.raises(InputError, match="text 1: the model's vocabulary does not have 'x'"):
        writer.score(["axb"])
    for wrong in ("", "a", "axb"):
        with pytest.raises(InputError, match=r"^file:7: the "):
            writer.score(["ab", wrong], where=["file:5", "file:7"])


def test_a_model_without_finite_outputs_is_a_failure(toys: SimpleNamespace) -> None:
    writer = TextGenerator(toys.bigram(np.full((CHARACTERS.vocab_size,) * 2, np.nan)), CHARACTERS)
    with pytest.raises(WorkError, match="here: the model's log-probabilities are not finite"):
        writer.score(["ab"], where=["here"])
    settings: list[dict[str, Any]] = [{"temperature": 0.0}, {"temperature": 1.0}, {"temperature": 1.0, "top_k": 3}]
    for how in settings:
        with pytest.raises(WorkError, match=r"^the model's log-probabilities are not finite"):
            writer.generate(["ab"], **how, max_tokens=3)
