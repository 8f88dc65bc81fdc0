"""Byte-pair encoding."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from plainformer.errors import InputError
from plainformer.tokenizer import SpecialTokens, Tokenizer, train_bpe
from plainformer.tokenizer.pieces import corpus

# Pieces: " low" three times and " lower" once, so the alphabet is " elorw" and the pairs count (space,l) 4, (l,o) 4,
# (o,w) 4, (w,e) 1, (e,r) 1. Ties go to the pair that comes first in the alphabet: (space,l), after which (o,w) with 4
# comes before the newer (space-l,o); then (space-l,ow). What is left is rarer than min_frequency.
LOW = ["low low low lower"]
LOW_MERGES = [[" ", "l"], ["o", "w"], [" l", "ow"]]
LOW_LEAST = 4 + 256 + 6


def model(tokenizer: Tokenizer, path: Path) -> dict:
    tokenizer.save(path)
    return json.loads(path.read_text(encoding="utf-8"))["model"]


def test_merges_worked_by_hand(tmp_path: Path) -> None:
    tokenizer = train_bpe(LOW, 500)
    learnt = model(tokenizer, tmp_path / "tokenizer.json")
    assert learnt["merges"] == LOW_MERGES
    assert tokenizer.vocab_size == LOW_LEAST + 3
    assert list(learnt["vocab"]) == [
        *("<pad>", "<s>", "</s>", "<unk>"),
        *(f"<0x{value:02X}>" for value in range(256)),
        *" elorw",
        *(" l", "ow", " low"),
    ]
    assert list(learnt["vocab"].values()) == list(range(LOW_LEAST + 3))
    assert [tokenizer.token(id) for id in tokenizer.encode("lower slow")] == [
        " low",
        "e",
        "r",
        " ",
        "<0x73>",
        "l",
        "ow",
    ]


@pytest.mark.parametrize("merges", [0, 1, 2, 3])
def test_the_vocabulary_has_exactly_the_size_asked_for(merges: int, tmp_path: Path) -> None:
    tokenizer = train_bpe(LOW, LOW_LEAST + merges)
    assert tokenizer.vocab_size == LOW_LEAST + merges
    assert model(tokenizer, tmp_path / "tokenizer.json")["merges"] == LOW_MERGES[:merges]
    assert tokenizer.decode(tokenizer.encode(LOW[0])) == LOW[0]


def test_a_vocabulary_too_small_for_the_characters_names_the_least() -> None:
    with pytest.raises(InputError, match=f"set vocab_size to at least {LOW_LEAST}$"):
        train_bpe(LOW, LOW_LEAST - 1)


def test_a_pair_rarer_than_min_frequency_is_not_merged() -> None:
    assert train_bpe(LOW, 500, min_frequency=4).vocab_size == LOW_LEAST + 3
    assert train_bpe(LOW, 500, min_frequency=5).vocab_size == LOW_LEAST


def test_rare_characters_are_spelt_in_bytes() -> None:
    texts = ["a" * 95 + "é"] * 2  # the space before a text is the 97th character
    everything, most = train_bpe(texts, 400, character_coverage=1.0), train_bpe(texts, 400, character_coverage=0.98)
    assert everything.id("é") is not None
    assert most.id("é") is None
    assert [most.token(id) for id in most.encode("é")] == [" ", "<0xC3>", "<0xA9>"]


def test_no_merge_reaches_across_a_rare_character() -> None:
    # "axb" without its x must not teach the pair (a, b): nowhere else does an a come before a b.
    tokenizer = train_bpe(["axb"] * 5 + ["bb aa"] * 50, 400, character_coverage=0.98)
    learnt = [tokenizer.token(id) for id in range(4 + 256, tokenizer.vocab_size)]
    assert learnt[:3] == [" ", "a", "b"]
    assert " aa" in learnt
    assert not [token for token in learnt if "ab" in token]


@given(st.text())
def test_encode_then_decode_is_the_identity(bpe: Tokenizer, text: str) -> None:
    ids = bpe.encode(text)
    assert bpe.decode(ids) == text
    assert bpe.count_unknown(ids) == 0


# Text made of what the vocabulary itself is made of.
@given(st.lists(st.sampled_from(["<0x41>", "<0xFF>", "<pad>", "</s>", "<unk>", "<", ">", "0x", " ", "\n", "में", "A"])))
def test_tokens_spelt_in_text_are_text(bpe: Tokenizer, parts: list[str]) -> None:
    text = "".join(parts)
    ids = bpe.encode(text)
    assert bpe.decode(ids) == text
    assert not {bpe.pad_id, bpe.bos_id, bpe.eos_id, bpe.unk_id, bpe.id("<0x41>"), bpe.id("<0xFF>")} & set(ids)


def test_nasty_text_is_kept_to_the_letter(bpe: Tokenizer, nasty: list[str]) -> None:
    for text in nasty:
        assert bpe.decode(bpe.encode(text)) == text
    assert bpe.decode_batch(bpe.encode_batch(nasty)) == nasty


def test_the_empty_text_has_no_ids(bpe: Tokenizer) -> None:
    assert bpe.encode("") == []
    assert bpe.decode([]) == ""


def test_a_word_is_the_same_token_wherever_it_stands() -> None:
    tokenizer = train_bpe(["की में की में की"] * 2, 300)
    assert [tokenizer.token(id) for id in tokenizer.encode("में की में")] == [" में", " की", " में"]


def test_without_a_leading_space_merges_worked_by_hand(tmp_path: Path) -> None:
    """Pieces: "low" once, " low" twice, " lower" once: (o,w) and (l,o) 4, (space,l) 3, (w,e) and (e,r) 1."""
    tokenizer = train_bpe(LOW, 500, lead_space=False)
    # (l,o) comes before (o,w) in the alphabet, after which (lo,w) is the most frequent, then (space,low).
    assert model(tokenizer, tmp_path / "tokenizer.json")["merges"] == [["l", "o"], ["lo", "w"], [" ", "low"]]
    assert [tokenizer.token(id) for id in tokenizer.encode("low low")] == ["low", " low"]
    assert tokenizer.decode(tokenizer.encode("low low")) == "low low"
    assert train_bpe(["a"], 500, lead_space=False).id(" ") is None


@given(st.text())
def test_without_a_leading_space_the_identity_holds_too(running: Tokenizer, text: str) -> None:
    assert running.decode(running.encode(text)) == text


PARTS = st.text(st.sampled_from(" \t\n\r.aé1की🙂\u200d") | st.characters(exclude_categories=["Cs"]))


@given(st.lists(PARTS.map(lambda part: part.strip("\n\r") + "\n")))
def test_running_text_in_parts_cut_at_line_ends_has_the_ids_of_the_whole(running: Tokenizer, parts: list[str]) -> None:
    parts = [part for part in parts if part != "\n"]  # a run of line ends stays in one part
    whole = "".join(parts)
    ids = list(chain.from_iterable(running.encode_batch(parts)))
    assert ids == running.encode(whole)
    assert running.decode(ids) == whole


def test_texts_that_can_be_read_anew_are_not_kept_and_a_generator_gives_the_same() -> None:
    class Anew:
        def __iter__(self) -> Iterator[str]:
            for number in range(2000):
                yield f"low lower {number} " * 10

    assert train_bpe(Anew(), 400).fingerprint == train_bpe(iter(list(Anew())), 400).fingerprint
    assert not isinstance(corpus(Anew()), list)


def test_without_bytes_a_new_character_is_unknown() -> None:
    tokenizer = train_bpe(LOW, 50, byte_fallback=False)
    assert tokenizer.vocab_size == 4 + 6 + 3
    ids = tokenizer.encode("low x yx")
    assert tokenizer.count_unknown(ids) == 3
    assert tokenizer.unknown_characters("low x yx") == ["x", "y"]
    assert tokenizer.encode("xy") == [tokenizer.id(" "), tokenizer.unk_id, tokenizer.unk_id]


def test_without_bytes_every_character_of_the_text_is_in_it_however_rare() -> None:
    """With bytes a character that is one of 40,000 has no token of its own, and needs none."""
    texts = ["the moon and the sun"] * 2000 + ["the m\u00f6on"]
    tokenizer = train_bpe(texts, 400, byte_fallback=False)
    assert tokenizer.count_unknown(tokenizer.encode(texts[-1])) == 0
    assert train_bpe(texts, 400).id("\u00f6") is None


@pytest.mark.parametrize(
    "special",
    [
        SpecialTokens(pad=None),
        SpecialTokens(pad="pad"),  # a word
        SpecialTokens(pad="..."),
        SpecialTokens(pad="<s>"),
        SpecialTokens(mask="<0x41>"),
    ],
)
def test_special_tokens_that_text_could_become_are_refused(special: SpecialTokens) -> None:
    with pytest.raises(InputError):
        train_bpe(LOW, 500, special=special)


@pytest.mark.parametrize("coverage", [0.0, -0.5, 1.01, float("nan")])
def test_coverage_is_a_share(coverage: float) -> None:
    with pytest.raises(InputError, match="character_coverage"):
        train_bpe(LOW, 500, character_coverage=coverage)


TRAIN = """
import random, sys
from pathlib import Path
from plainformer.tokenizer import train_bpe, train_word
draw = random.Random(3)
# Short random words: many pairs, words and rare characters with the same count.
texts = [" ".join("".join(draw.choices("abcdeéüकखगीे", k=draw.randint(1, 4))) for _ in range(13)) for _ in range(211)]
train_bpe(texts + [chr(0x4E00 + i) for i in range(31)], 500, character_coverage=0.999).save(Path(sys.argv[1]))
train_word(texts, 307).save(Path(sys.argv[2]))
"""


def test_the_same_texts_give_the_same_file_in_every_process(tmp_path: Path) -> None:
    files = []
    for seed, threads, parallel in (("1", "1", "false"), ("2", "4", "true"), ("31", "2", "true")):
        bpe, words = tmp_path / f"bpe{seed}.json", tmp_path / f"words{seed}.json"
        env = os.environ | {"PYTHONHASHSEED": seed, "RAYON_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": parallel}
        subprocess.run([sys.executable, "-c", TRAIN, bpe, words], env=env, check=True)
        files.append((bpe.read_bytes(), words.read_bytes()))
    assert files[0] == files[1] == files[2]
