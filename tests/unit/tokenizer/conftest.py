"""Texts and tokenizers that the tests of this room share."""

import pytest

from plainformer.tokenizer import Tokenizer, train_bpe, train_character, train_word

SENTENCES = [
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "Ein kleines Mädchen klettert in ein Spielhaus aus Holz.",
    "Two young, White males are outside near many bushes.",
    "A little girl climbing into a wooden playhouse at 10:45.",
    "यह एक इनडोर दृश्य है",
    "कमरे में एक आदमी की कुर्सी है",
    "Several men in hard hats are operating a giant pulley system.\n",
] * 3

NASTY = [
    "",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\t \t",
    " two  spaces ",
    "line\r\nline\n\n\rline\n",
    "<pad><s></s><unk>",
    "a </s> b",
    "<0x41>",
    " <0x41><0xFF>\x41",
    "<0xE0><0xA4>",
    "▁a▁▁",
    "Ġa",
    "\x00",
    "a\x00b\x7f\x80",
    "\ufeffBOM",
    "\ufffd\ufffe\uffff",
    "\u0301",
    " \u0301a",
    "e\u0301 é Å \u212b",
    "में की क्ष क\u094d\u200dष क\u094d\u200cष १२३",
    "\u093f\u094d",
    "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 🏳\ufe0f\u200d🌈 1\ufe0f\u20e3",
    "\U0001f1e9\U0001f1ea\U0010ffff",
    "zero\u200bwidth\u2060\u00ad",
    "שלום \u202eabc\u202c مرحبا",
    "\u3000中文 日本語\u00a0fin\u2028\u2029\x85",
    "don't — “quote” … 10,000.50 §½²",
    "ﬁ Ⅷ ㎏",
    "=" * 300,
    "ab" * 700,
]


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    return SENTENCES


@pytest.fixture(scope="session")
def nasty() -> list[str]:
    return NASTY


@pytest.fixture(scope="session")
def bpe() -> Tokenizer:
    return train_bpe(SENTENCES, 431)


@pytest.fixture(scope="session")
def running() -> Tokenizer:
    """Byte-pair encoding of running text, without a space before it."""
    return train_bpe(SENTENCES, 431, lead_space=False)


@pytest.fixture(scope="session")
def characters() -> Tokenizer:
    return train_character(SENTENCES)


@pytest.fixture(scope="session")
def words() -> Tokenizer:
    return train_word(SENTENCES, 97)
