"""What the tokens of a vocabulary say, and which begin a word."""

from collections.abc import Callable

import pytest

from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer, train_bpe, train_character, train_word
from plainformer.tokenizer.vocabulary import special_tokens, token_texts, word_starts

SPECIAL = SpecialTokens(mask="<mask>")
TEXT = 'The unbelievable cat\'s (sad) story of the dogs, 42 of them — naïve "café".\nAnd another line, या नहीं.'

MAKERS: dict[str, Callable[[], Tokenizer]] = {
    "bpe": lambda: train_bpe([TEXT] * 3, 400, special=SPECIAL),
    "bpe of running text": lambda: train_bpe([TEXT] * 3, 400, special=SPECIAL, lead_space=False),
    "words": lambda: train_word([TEXT], 60, special=SPECIAL),
    "characters": lambda: train_character([TEXT], special=SPECIAL),
    "bytes": lambda: byte_tokenizer(SpecialTokens(unk=None, mask="<mask>")),
}


@pytest.fixture(params=list(MAKERS))
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return MAKERS[request.param]()


def test_every_way_of_training_takes_a_mask_token(tokenizer: Tokenizer) -> None:
    mask = tokenizer.mask_id
    assert mask is not None
    assert tokenizer.token(mask) == "<mask>"
    assert mask not in tokenizer.encode("The <mask> cat")
    assert tokenizer.decode([mask]) == ""


def test_the_texts_of_the_tokens_are_the_text(tokenizer: Tokenizer) -> None:
    """But for the space before the first word; in a vocabulary of bytes a letter may be several."""
    texts = token_texts(tokenizer)
    assert len(texts) == tokenizer.vocab_size
    said = "".join(texts[id] for id in tokenizer.encode(TEXT))
    if "\ufffd" not in said:
        assert said.removeprefix(" ") == TEXT
    plain = "The cat's (sad) story"
    assert "".join(texts[id] for id in tokenizer.encode(plain)).removeprefix(" ") == plain
    assert [texts[id] for id in special_tokens(tokenizer).nonzero()[0]] == [""] * len(tokenizer.special.tokens())


def test_words_begin_with_space_or_a_sign(tokenizer: Tokenizer) -> None:
    """The same words, whatever the pieces; `|` stands before each that begins one."""
    texts, starts = token_texts(tokenizer), word_starts(tokenizer)
    assert starts.shape == (tokenizer.vocab_size,)
    assert not starts[special_tokens(tokenizer)].any()
    ids = tokenizer.encode("The unbelievable cat's story, या 42 of them.")
    marked = "".join(("|" if starts[id] else "") + texts[id] for id in ids).removeprefix("|").removeprefix(" ")
    if "\ufffd" in marked:  # bytes
        marked = marked.replace("\ufffd" * 6, "या")
    assert marked == "The| unbelievable| cat|'s| story|,| या| 42| of| them|."


def test_a_text_is_encoded_inside_as_it_is_within_the_whole(tokenizer: Tokenizer) -> None:
    """Cut between any two tokens where the text can be."""
    ids = tokenizer.encode(TEXT)
    cuts = 0
    for at in range(1, len(ids)):
        before = tokenizer.decode(ids[:at])
        if "\ufffd" not in before:
            assert TEXT.startswith(before)
            assert tokenizer.encode_inside(TEXT[len(before) :]) == ids[at:]
            cuts += 1
    assert cuts > 20
    assert tokenizer.encode_inside("") == []
    for text in ("\n", "\nAnd", ".", ".\n", " ", "  of"):
        whole = tokenizer.encode("cat" + text)
        assert tokenizer.encode_inside(text) == whole[len(tokenizer.encode("cat")) :]
