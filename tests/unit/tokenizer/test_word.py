"""A vocabulary of words."""

import pytest

from plainformer.errors import InputError
from plainformer.tokenizer import Tokenizer, train_word

# " b" 3, " a" 2, " c" 2, "." 1
TEXTS = ["b a c b", "a c b."]


def test_the_most_frequent_words_come_first() -> None:
    tokenizer = train_word(TEXTS, 100)
    learnt = [tokenizer.token(id) for id in range(tokenizer.vocab_size)]
    assert learnt == ["<pad>", "<s>", "</s>", "<unk>", " b", " a", " c", "."]


def test_the_vocabulary_has_the_size_asked_for() -> None:
    tokenizer = train_word(TEXTS, 4 + 2)
    assert tokenizer.vocab_size == 6
    assert tokenizer.encode("a b c.") == [5, 4, tokenizer.unk_id, tokenizer.unk_id]


def test_a_rare_word_is_left_out() -> None:
    assert train_word(TEXTS, 100, min_frequency=2).id(".") is None


def test_unknown_words_are_listed_and_counted() -> None:
    tokenizer = train_word(TEXTS, 100)
    text = "a dog b cat dog"
    assert tokenizer.unknown_pieces(text) == [" dog", " cat"]
    assert tokenizer.count_unknown(tokenizer.encode(text)) == 3
    assert tokenizer.decode(tokenizer.encode(text)) == "a b"


def test_known_text_is_kept_to_the_letter(sentences: list[str]) -> None:
    tokenizer = train_word(sentences, 1000)
    for text in sentences:
        ids = tokenizer.encode(text)
        assert tokenizer.decode(ids) == text
        assert tokenizer.count_unknown(ids) == 0


def test_special_tokens_in_text_are_text(words: Tokenizer) -> None:
    ids = words.encode("<pad></s><s>")
    assert not {words.pad_id, words.bos_id, words.eos_id} & set(ids)


def test_a_vocabulary_too_small_names_the_least() -> None:
    with pytest.raises(InputError, match=r"set vocab_size to at least 5$"):
        train_word(TEXTS, 4)
    assert train_word(TEXTS, 5).vocab_size == 5
