"""Text that tells tokenizers apart: strings of every plane, and the real corpora."""

import random
from collections.abc import Iterator
from pathlib import Path

# Where engines and Unicode versions differ, by what a character of each pool does to the rules that cut a text.
_POOLS = (
    "abcdefghijklmnopqrstuvwxyzABCXYZ",
    "ßſıİŉǅΣσςÅÉñøłþœﬁＡｚª",  # case that folds in unusual ways
    "0123456789²½Ⅷ①٣९៣𝟘𐒠",
    ".,;:!?'\"()[]<>/\\|_-–—…%&@#$€§",
    " \t\n\r\x0b\x0c\x85\xa0\u1680\u2003\u2009\u2028\u2029\u202f\u205f\u3000",  # white space
    "\x00\x01\x07\x1b\x1c\x1f\x7f\x80\x9f\xad\u061c\u180e\u200b\u200c\u200d\u200e\u2060\ufeff\ufffc\ufffd\ufffe\uffff",
    "\u0300\u0301\u0308\u0323\u0327\u0345\u034f\u0338\u20dd\u20e3\ufe0f\u3099\U0001d165",  # marks
    "अआकखगमरषिीुेो्ंःँ़१२",
    "שלוםעולםְֱֲֳِّْמרحباسل",
    "中文日本語かなカナ한국어각각가",
    "😀👨👩👧🔥🏳🌈👍🏽🇩🇪❤☕",
    "▁Ġ Ċ<s></s><pad><unk><|endoftext|>",
    # Letters, digits and marks that Unicode 15 to 17 assigned
    "\u088f\u0897\u0c5c\u1c89\u1c8a\ua7cb\ua7da\ua7dc\ua7f1\U00010d40\U00010d4e\U00010d69\U000105c0\U00011380\U00011de0"
    "\U00016d40\U00016d70\U0001cc00\U0001ccf0\U0001e5d0\U0001e6c0\U0002ebf0\U000323b0\U00033479\U0001fabe\U0001f6d8",
)
_PHRASES = (
    "'s",
    "'LL",
    "'ſ",
    "'t",
    " the",
    "\r\n",
    "\n\n",
    "  ",
    "👨\u200d👩\u200d👧",
    "🏳\ufe0f\u200d🌈",
    "1\ufe0f\u20e3",
)


def random_strings(count: int, seed: int = 0) -> list[str]:
    """Strings of up to 40 steps, each a character of a pool, one of any plane, a phrase, or a run of one character."""
    return list(_strings(count, random.Random(seed)))


def _strings(count: int, choose: random.Random) -> Iterator[str]:
    for number in range(count):
        parts = []
        pools = choose.sample(_POOLS, choose.randint(1, 4))
        for _ in range(choose.randint(0, 40)):
            kind = choose.random()
            if kind < 0.7:
                parts.append(choose.choice(choose.choice(pools)))
            elif kind < 0.85:
                parts.append(_anywhere(choose))
            elif kind < 0.95:
                parts.append(choose.choice(_PHRASES))
            else:
                parts.append(choose.choice(choose.choice(pools)) * choose.randint(2, 30))
        if number % 1000 == 0:
            parts.append(choose.choice(_POOLS[0]) * 5000)  # a very long word
        yield "".join(parts)


def _anywhere(choose: random.Random) -> str:
    """Any code point but a surrogate, assigned or not."""
    while True:
        code = choose.randrange(0x110000) if choose.random() < 0.5 else choose.randrange(0x3000)
        if not 0xD800 <= code < 0xE000:
            return chr(code)


def real_texts(folder: Path) -> list[str]:
    """The files of text in a folder of corpora, whole, their line ends as they are."""
    files = [path for path in sorted(folder.glob("*/*")) if path.is_file() and path.parent.name != "vocab"]
    return [path.read_bytes().decode("utf-8") for path in files]
