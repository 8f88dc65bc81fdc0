"""How probable the tokens of a text are, as OpenAI's completions say it."""

from collections.abc import Sequence
from typing import Any

from plainformer.decode.text_generator import TextGenerator, TextScore
from plainformer.decode.texts import encode_texts
from plainformer.tokenizer.stream import TextStream


def read_ids(writer: TextGenerator, prompt: str) -> list[int]:
    """The tokens that are read of a prompt before the first is drawn. Raises InputError as `TextGenerator.generate`."""
    (ids,) = encode_texts(writer.tokenizer, [prompt], "prompt", fix="give some text to go on from, such as a newline")
    return [writer.tokenizer.bos_id, *ids] if writer.tokenizer.leads_with_bos else ids


def of_ids(
    writer: TextGenerator, ids: Sequence[int], score: TextScore | None, start: int, end: int | None, *, tops: bool
) -> dict[str, Any]:
    """The tokens of a text from the `start`th on, with their log-probabilities (nats) and places.

    A place is counted in characters from that token on. The first token of a text has no log-probability, but where
    something stands before every text. A token that is part of a character only is spelt as in the vocabulary.

    Args:
        score: of the ids; None where they are too few to be scored.
        end: the character of the text before which a token that is told of begins; None, and all are.
        tops: whether the most probable tokens of each place are told of.
    """
    logprobs = [None] * len(ids) if score is None else [None, *score.logprobs]
    ranked = [None, *score.most_probable] if score is not None and score.most_probable else [None] * len(ids)
    skipped = int(writer.tokenizer.leads_with_bos)
    stream, at, first = TextStream(writer.tokenizer), 0, None
    found: dict[str, Any] = {"tokens": [], "token_logprobs": [], "text_offset": [], "top_logprobs": []}
    for place in range(skipped, len(ids)):
        said = stream.push([ids[place]])
        if place >= start and (end is None or at < end):
            first = at if first is None else first
            token = said or writer.tokenizer.token(ids[place])
            best = ranked[place]
            found["tokens"].append(token)
            found["token_logprobs"].append(logprobs[place])
            found["text_offset"].append(at - first)
            found["top_logprobs"].append(None if best is None else _by_text(writer, best, {ids[place]: token}))
        at += len(said)
    return found if tops else found | {"top_logprobs": None}


def _by_text(writer: TextGenerator, ranked: Sequence[tuple[int, float]], known: dict[int, str]) -> dict[str, float]:
    """The most probable tokens by their texts; of two that read alike the more probable."""
    found: dict[str, float] = {}
    for id, logprob in ranked:
        text = known.get(id) or writer.tokenizer.decode([id])
        found.setdefault(writer.tokenizer.token(id) if not text or "\ufffd" in text else text, logprob)
    return found
