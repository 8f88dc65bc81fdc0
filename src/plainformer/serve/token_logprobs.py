"""How probable the tokens of a text are, as OpenAI's completions say it."""

from typing import Any

from plainformer.decode.text_generator import TextGenerator, TextScore
from plainformer.tokenizer.stream import TextStream

MOST_TOP = 0  # tokens beside the written one at each place


def of_text(writer: TextGenerator, text: str, score: TextScore, start: int) -> dict[str, Any]:
    """The tokens of a text from a character on, with their log-probabilities (nats) and places.

    A place is counted from that character on. The first token of a text has no log-probability, but where something
    stands before every text. A token that is part of a character only is spelt as in the vocabulary.
    """
    (ids,) = writer.encode_scored([text])
    logprobs: list[float | None] = [None, *score.logprobs]
    if writer.tokenizer.leads_with_bos:
        ids, logprobs = ids[1:], logprobs[1:]
    stream, at = TextStream(writer.tokenizer), 0
    found: dict[str, Any] = {"tokens": [], "token_logprobs": [], "text_offset": [], "top_logprobs": None}
    for id, logprob in zip(ids, logprobs, strict=True):
        said = stream.push([id])
        if at + len(said) > start or (not said and at >= start):
            found["tokens"].append(said or writer.tokenizer.token(id))
            found["token_logprobs"].append(logprob)
            found["text_offset"].append(max(0, at - start))
        at += len(said)
    return found
