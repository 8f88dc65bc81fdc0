"""Byte-pair encoding (Sennrich, Haddow and Birch 2016), on characters, with bytes for the rare ones.

The most frequent pair of neighbouring tokens inside a piece becomes a token, again and again until the vocabulary is
full. A character outside the alphabet is spelt in UTF-8 bytes, so with `byte_fallback` no text is unknown.
"""

import json
import re
from collections.abc import Iterable, Iterator

import tokenizers
from tokenizers.decoders import ByteFallback, Fuse, Sequence as Chain
from tokenizers.models import BPE
from tokenizers.trainers import BpeTrainer

from plainformer.errors import InputError
from plainformer.tokenizer.character import count_characters, number, ranked_characters, reserved_tokens, too_small
from plainformer.tokenizer.pieces import corpus, cut, drop_leading_space, lead_with_space
from plainformer.tokenizer.special import SpecialTokens
from plainformer.tokenizer.tokenizer import Tokenizer


def train_bpe(
    texts: Iterable[str],
    vocab_size: int,
    *,
    special: SpecialTokens = SpecialTokens(),
    byte_fallback: bool = True,
    min_frequency: int = 2,
    character_coverage: float | None = None,
    lead_space: bool = True,
) -> Tokenizer:
    """Learn a byte-pair encoding. The same texts give the same tokenizer, byte for byte.

    Args:
        texts: sentences or documents; for a joint vocabulary, those of both languages. They are gone through several
            times; a generator, which can be gone through but once, is put into a list.
        vocab_size: the largest number of tokens, special tokens, bytes and characters included. Little text may yield
            fewer.
        special: the special tokens; they take the first ids.
        byte_fallback: spell a character outside the alphabet in bytes (256 tokens) instead of making it `unk`.
        min_frequency: a pair seen less often is not merged.
        character_coverage: the share of the text, in (0, 1], whose characters get a token of their own. If not given,
            0.9999 with `byte_fallback`, and all of it without: no character of the text is then `unk`.
        lead_space: put a space before each text, so that the first word of a sentence is a word like the others. For
            running text, False: its parts, cut where a line ends, then give the tokens of the whole.

    Returns:
        A tokenizer whose ids are: special tokens, bytes if any, characters by code point, merges in the order learnt.

    Raises:
        InputError: no text, text that is not Unicode, or a `vocab_size` that cannot hold the characters.
    """
    coverage = _coverage(character_coverage, byte_fallback)
    texts = corpus(texts)
    reserved = reserved_tokens(special, byte_fallback=byte_fallback)
    counts = count_characters(texts)
    if lead_space:
        counts[" "] += sum(1 for _ in texts)
    # The space that is put before each text is in the alphabet however rare it is.
    alphabet = sorted({*(" " if lead_space else ""), *ranked_characters(counts, coverage=coverage)})
    least = len(reserved) + len(alphabet)
    if vocab_size < least:
        raise too_small(vocab_size, at_least=least, holds=f"{len(reserved)} reserved and {len(alphabet)} characters")

    spans = _spans_within(alphabet, texts, " " if lead_space else "")
    learnt, merges = _learn_merges(spans, vocab_size - len(reserved), min_frequency)
    backend = tokenizers.Tokenizer(
        BPE(
            vocab=number([*reserved, *learnt]),
            merges=merges,
            unk_token=special.unk,
            byte_fallback=byte_fallback,
            fuse_unk=False,
        )
    )
    backend.pre_tokenizer = cut()
    backend.decoder = Chain([ByteFallback(), Fuse()])
    if lead_space:
        backend.normalizer = lead_with_space()
        backend.decoder = Chain([ByteFallback(), Fuse(), drop_leading_space()])
    return Tokenizer(backend, special)


def _coverage(given: float | None, byte_fallback: bool) -> float:
    """The share of the text whose characters get a token. Raises InputError for one that is none."""
    if given is None:
        return 0.9999 if byte_fallback else 1.0
    if not 0 < given <= 1:
        raise InputError(f"character_coverage is {given}", fix="choose a share above 0 and at most 1")
    return given


def _learn_merges(spans: Iterable[str], size: int, min_frequency: int) -> tuple[list[str], list[tuple[str, str]]]:
    """The learnt tokens (the characters of `spans` first, `size` at most) and the merges, both in order."""
    learner = tokenizers.Tokenizer(BPE())
    learner.pre_tokenizer = cut()
    trainer = BpeTrainer(vocab_size=size, min_frequency=min_frequency, show_progress=False)
    learner.train_from_iterator(spans, trainer)
    model = json.loads(learner.to_str())["model"]
    return sorted(model["vocab"], key=model["vocab"].__getitem__), [(left, right) for left, right in model["merges"]]


def _spans_within(alphabet: list[str], texts: Iterable[str], before: str) -> Iterator[str]:
    """The texts, each after what is put `before` it, cut at characters outside the alphabet.

    The trainer can limit its alphabet too, but would then skip a rare character and count its neighbours as a pair that
    the text never had, and would choose between equally rare ones by the order of a hash table, new in every run.
    """
    outside = re.compile(f"[^{re.escape(''.join(alphabet))}]+")
    for text in texts:
        yield from filter(None, outside.split(before + text))
