"""The engine's tokenizers: the library's ids and texts, of hard texts above all; what they refuse."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers

from plainformer.errors import InputError
from plainformer.page.characters import character_classes
from plainformer.page.readable import READABLE, check_tokenizer
from plainformer.page.scripts import ENGINE
from plainformer.tokenizer import SpecialTokens, Tokenizer, byte_tokenizer, train_bpe, train_character, train_word
from plainformer.tokenizer.byte_bpe import ENCODINGS, from_ranks

ROOT = Path(__file__).parents[2]
SENTENCES = [
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "A little girl climbing into a wooden playhouse at 10:45, isn't she? They'LL see.",
    "यह एक इनडोर दृश्य है। कमरे में एक आदमी की कुर्सी है",
    "Several men in hard hats are operating a giant pulley system.\n\tdef f(x):\r\n    return x  + 1\n",
] * 3


def hard_texts() -> list[str]:
    """Those of the parity tests: strings of every plane, white space, marks, and what Unicode assigned of late."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("hard_text", ROOT / "parity" / "hard_text.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    special = ["", " ", "</s><pad>", "<0x41>", "Naïve CAFÉ—playhouse! 漢字 isn't\x00 hard\u200b\xading", "a" * 150]
    return [*SENTENCES, *special, *module.random_strings(300, seed=5)]


def merged_bytes(pieces: str | None) -> tokenizers.Tokenizer:
    """GPT-2's kind of encoding, or one that cuts by other pieces, learnt here."""
    backend = tokenizers.Tokenizer(models.BPE())
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pieces is None)
    cut = [] if pieces is None else [pre_tokenizers.Split(Regex(pieces), "isolated")]
    backend.pre_tokenizer = pre_tokenizers.Sequence([*cut, to_bytes])
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=400, initial_alphabet=alphabet, special_tokens=["<|end|>"], show_progress=False
    )
    backend.train_from_iterator(SENTENCES, trainer)
    return backend


def like_llama2() -> tokenizers.Tokenizer:
    """No pieces: a text is one, its blanks written as another sign; what is unknown are bytes."""
    backend = tokenizers.Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=420,
        show_progress=False,
        special_tokens=["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))],
        limit_alphabet=40,
    )
    marks = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    backend.normalizer = normalizers.Sequence(marks)
    backend.train_from_iterator(SENTENCES, trainer)
    whole = json.loads(backend.to_str())
    whole["model"]["byte_fallback"] = True
    whole["added_tokens"] = whole["added_tokens"][:1]
    backend = tokenizers.Tokenizer.from_str(json.dumps(whole))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    return backend


def wordpiece() -> tokenizers.Tokenizer:
    """As BERT has it."""
    letters = sorted({letter for text in SENTENCES for letter in text.lower() if letter.isascii() and letter.strip()})
    tokens = ["[UNK]", *letters, *(f"##{letter}" for letter in letters), "men", "##ing", "hard", "play", "##house"]
    backend = tokenizers.Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]"))
    backend.normalizer = normalizers.BertNormalizer()
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    return backend


NO_ROLES = SpecialTokens(None, None, None, None)
GAP = SpecialTokens(mask="<mask>")
KINDS: dict[str, Callable[[], Tokenizer]] = {
    "character": lambda: train_character(SENTENCES),
    "character with bytes": lambda: train_character(SENTENCES, 300, byte_fallback=True),
    "byte": byte_tokenizer,
    "word": lambda: train_word(SENTENCES, 60),
    "bpe": lambda: train_bpe(SENTENCES, 420, special=GAP),
    "bpe of running text": lambda: train_bpe(SENTENCES, 420, lead_space=False),
    "bpe without bytes": lambda: train_bpe(SENTENCES, 200, byte_fallback=False),
    "GPT-2": lambda: Tokenizer(merged_bytes(None), SpecialTokens(None, None, "<|end|>", None)),
    "GPT-4": lambda: Tokenizer(merged_bytes(ENCODINGS["cl100k_base"].pieces), NO_ROLES),
    "GPT-4o": lambda: Tokenizer(merged_bytes(ENCODINGS["o200k_base"].pieces), NO_ROLES),
    "BERT": lambda: Tokenizer(wordpiece(), SpecialTokens(None, None, None, "[UNK]")),
    "Llama 2": lambda: Tokenizer(like_llama2(), SpecialTokens(None, None, None, "<unk>")),
}


def described(tokenizer: Tokenizer) -> dict[str, Any]:
    """A tokenizer as a bundle has it."""
    from plainformer.page.bundle import _tokenizer

    return _tokenizer(tokenizer)


@pytest.fixture
def encode(run_node: Callable[..., Any]) -> Callable[[list[dict[str, Any]], list[str], list[list[int]]], Any]:
    """The ids of texts by tokenizers, and the texts of ids."""

    def run(tokenizers: list[dict[str, Any]], texts: list[str], ids: list[list[int]]) -> Any:
        asked = {"tokenizers": tokenizers, "texts": texts, "ids": ids}
        return run_node(Path(__file__).with_name("encode.mjs"), ENGINE, asked=asked)

    return run


def test_ids_and_texts_are_the_library_s(encode) -> None:
    texts = hard_texts()
    kinds = {name: make() for name, make in KINDS.items()}
    wanted = {name: tokenizer.encode_batch(texts) for name, tokenizer in kinds.items()}
    rows = [row[::-1] for row in wanted["byte"]]  # ids in no order that a text has
    found = encode([described(tokenizer) for tokenizer in kinds.values()], texts, rows)
    for (name, tokenizer), (ids, back, backwards) in zip(kinds.items(), found, strict=True):
        wrong = [text for text, own, other in zip(texts, ids, wanted[name], strict=True) if own != other]
        assert wrong == [], name
        assert back == tokenizer.decode_batch(wanted[name]), name
        others = [[id % tokenizer.vocab_size for id in row] for row in rows]
        assert backwards == tokenizer.decode_batch(others), name


def test_a_text_that_goes_on_is_encoded_as_the_library_does(run_node, encode) -> None:
    tokenizer = KINDS["bpe"]()
    texts = ["", " girl", "girl, at", ".. .", "\nlittle", "ü"]
    (found,) = encode([{**described(tokenizer), "inside": True}], texts, [])
    assert found[0] == [tokenizer.encode_inside(text) for text in texts]


def test_python_s_table_is_that_of_the_engine() -> None:
    names = {"normalizer": "normalizers", "pre_tokenizer": "pre_tokenizers", "model": "models", "decoder": "decoders"}
    for part, file in names.items():
        text = (ENGINE / "tokenizer" / f"{file}.js").read_text(encoding="utf-8")
        table = text[text.index(f"export const {file.upper()} = {{") :]
        table = table[: table.index("\n};")]
        assert set(re.findall(r"^  (\w+): ", table, re.MULTILINE)) == READABLE[part]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"normalizer": {"type": "Precompiled"}}, "normalizer is 'Precompiled'"),
        ({"model": {"type": "Unigram"}}, "model is 'Unigram'"),
        ({"pre_tokenizer": {"type": "Split", "pattern": {"Regex": r"\p{L}++"}}}, r"pattern with ++"),
        ({"model": {"type": "BPE", "dropout": 0.1}}, "dropout"),
    ],
)
def test_what_the_engine_does_not_read_is_refused_by_name(change: dict[str, Any], message: str) -> None:
    whole = {**KINDS["character"]().description, **change}
    with pytest.raises(InputError, match=re.escape(message)):
        check_tokenizer(whole)
    with pytest.raises(InputError, match="another library's"):
        check_tokenizer({"spiece.model": "…"})


REFUSED = [r"\p{L}++", r"[a&&[b]]", r"[a[b]]", r"^a", r"a$", r"(?>a)", r"(?i)a", r"\h", r"(a)\1", r"a?+"]
READ = [r"[^\s\]]+", r"(?i:'S|\x{41})b\z", r"(?<=a)b|\d{2}|\W", r"a+?(?!b)."]


def test_python_and_the_engine_refuse_the_same_patterns(encode) -> None:
    """Those that are not refused cut as the library does."""
    texts, made = ["ab aab'sAb ]a", "'sAb\n12a"], []
    for pattern in [*REFUSED, *READ]:
        backend = tokenizers.Tokenizer(models.BPE({"a": 0, "b": 1, "A": 2, "aa": 3, "'s": 4, " ": 5}, [("a", "a")]))
        backend.pre_tokenizer = pre_tokenizers.Split(Regex(pattern), "isolated")
        made.append(Tokenizer(backend, NO_ROLES))
    for tokenizer in made[: len(REFUSED)]:
        with pytest.raises(InputError, match="the page does not read a pattern with "):
            described(tokenizer)
    unchecked = {"special": {}, "leads_with_bos": False, "characters": {r"\p{L}": [65, 90]}}
    refused = [{"tokenizer": tokenizer.description, **unchecked} for tokenizer in made[: len(REFUSED)]]
    read = [described(tokenizer) for tokenizer in made[len(REFUSED) :]]
    found = encode([*refused, *read], texts, [])
    assert all("cannot be read here" in one["error"] for one in found[: len(REFUSED)]), found
    for (ids, _, _), tokenizer in zip(found[len(REFUSED) :], made[len(REFUSED) :], strict=True):
        assert ids == tokenizer.encode_batch(texts)


def test_classes_of_characters_are_those_of_the_library() -> None:
    classes = character_classes(KINDS["bpe"]().description)
    assert set(classes) == {r"\p{L}", r"\p{M}", r"\p{N}", r"\s"}
    assert classes[r"\s"][:4] == [0x09, 0x0D, 0x20, 0x20]
    assert all(first <= last for first, last in zip(classes[r"\p{L}"][::2], classes[r"\p{L}"][1::2], strict=True))
    assert character_classes(byte_tokenizer().description).keys() <= {r"\p{L}", r"\p{N}", r"\s"}


def test_ranks_of_tiktoken_travel_as_merges(encode, shared_data: Path) -> None:
    file = shared_data / "vocab" / "tiktoken" / "r50k_base.tiktoken"
    tokenizer = Tokenizer(from_ranks(file.read_bytes(), "r50k_base", where=str(file)), NO_ROLES)
    texts = hard_texts()[:120]
    ((ids, back, _),) = encode([described(tokenizer)], texts, [])
    assert ids == tokenizer.encode_batch(texts)
    assert back == tokenizer.decode_batch(ids)
