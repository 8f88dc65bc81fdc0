"""How probable the tokens of a text are, as OpenAI's completions say it."""

from collections.abc import Sequence
from typing import Any

from plainformer.decode.text_generator import TextGenerator, TextScore
from plainformer.tokenizer.stream import TextStream


def of_text(writer: TextGenerator, text: str, score: TextScore, start: int) -> dict[str, Any]:
    """The tokens of a text from a character on, with their log-probabilities (nats) and places.

    A place is counted from that character on. The first token of a text has no log-probability, but where something
    stands before every text. A token that is part of a character only is spelt as in the vocabulary.
    """
    (ids,) = writer.encode_scored([text])
    ranked = [None, *score.most_probable] if score.most_probable else [None] * len(ids)
    rows = list(zip(ids, [None, *score.logprobs], ranked, strict=True))
    stream, at = TextStream(writer.tokenizer), 0
    names = "tokens", "token_logprobs", "text_offset", "top_logprobs"
    found: dict[str, Any] = {name: [] for name in names}
    for id, logprob, best in rows[1:] if writer.tokenizer.leads_with_bos else rows:
        said = stream.push([id])
        if at + len(said) > start or (not said and at >= start):
            token = said or writer.tokenizer.token(id)
            tops = None if best is None else _by_text(writer, best, {id: token})
            for name, value in zip(names, (token, logprob, max(0, at - start), tops), strict=True):
                found[name].append(value)
        at += len(said)
    return found if score.most_probable else found | {"top_logprobs": None}


def _by_text(writer: TextGenerator, ranked: Sequence[tuple[int, float]], known: dict[int, str]) -> dict[str, float]:
    """The most probable tokens by their texts; of two that read alike the more probable."""
    found: dict[str, float] = {}
    for id, logprob in ranked:
        text = known.get(id) or writer.tokenizer.decode([id])
        found.setdefault(writer.tokenizer.token(id) if not text or "\ufffd" in text else text, logprob)
    return found
