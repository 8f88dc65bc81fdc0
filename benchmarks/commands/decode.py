"""Trained models put to use: translating a file, writing, scoring, embedding.

CTranslate2 and Joey NMT translate with the same weights. CTranslate2's process reads and writes text, by the same
vocabulary; Joey NMT's, whose Python has no library for it, numbers, which spares it that. How their searches differ is
told in `benchmarks.decode_tiny`.
"""

import zlib
from collections.abc import Sequence
from typing import Any

from benchmarks.commands.command import Command, Peer, Place
from benchmarks.commands.process import Ran
from benchmarks.contest import ContestError, Result
from benchmarks.row import AtMost, agree

COUNTS = (1, 100, 1_000, 10_000)  # sentences of a file
BEAM, JOEY = 5, "Joey NMT"
TOKENS, PROMPT = 200, "The following "  # of a text
CLOSE = 1e-4  # numbers of vectors of length some 20


def _translate(count: int, *, beam: int = BEAM, weights: str = "float32", joey: bool = False) -> Command:
    """`translate --file` of so many sentences, beside CTranslate2 with the same beam and as many bits."""
    kind = "int8" if weights == "w8a8" else "float32"
    file = f"sentences-{count}.en"

    def ours(place: Place) -> list[str]:
        given = ["translate", place.option("translator"), "--file", str(place.prepared / file), "--beam", str(beam)]
        return given if weights == "float32" else [*given, "--weights", weights]

    def peer(module: str, *more: str) -> Any:
        def arguments(place: Place) -> list[str]:
            given = [str(place.prepared), str(place.prepared / file), str(beam), str(place.threads)]
            return ["-m", f"benchmarks.peers.{module}", *given, *more]

        return arguments

    peers = [Peer(f"CTranslate2 {kind}", peer("ctranslate2_translate", kind), package="ctranslate2")]
    if joey:
        peers.append(Peer(JOEY, peer("joey_translate", str(count)), option="joey", interpreter=True))
    how = ("greedily" if beam == 1 else f"with a beam of {beam}") + (f", {weights}" if weights != "float32" else "")
    return Command(
        f"A trained Transformer-Tiny translates a file of {count:,} sentence{'s' * (count > 1)} {how}",
        ours,
        peers,
        name="plainformer" if weights == "float32" else f"plainformer {weights}",
        needs=("translator", "data"),
        prepare="translator",
        facts=_lines,
        check=_alike,
        goals={"warm": (AtMost(3.0),)} if count == 1 else {},
        held_equal="The same weights; as many lines, and in all as many words to 5 %. The searches weigh lengths "
        "otherwise.",
    )


def _lines(place: Place, ran: Ran) -> dict[str, Any]:
    """Of every line that was printed, a checksum; and the words in all."""
    lines = ran.text.splitlines()
    return {"lines": [zlib.crc32(line.encode()) for line in lines], "words": len(ran.text.split())}


def _alike(results: Sequence[Result]) -> None:
    """As many lines and, to 5 %, words as ours; the share of the same lines is said. Joey NMT's words are numbers."""
    ours = results[0].facts
    for result in results[1:]:
        theirs = result.facts
        if len(theirs["lines"]) != len(ours["lines"]):
            raise ContestError(f"{result.name}: {len(theirs['lines'])} lines, and ours are {len(ours['lines'])}")
        if result.name == JOEY:
            continue
        same = sum(a == b for a, b in zip(ours["lines"], theirs["lines"], strict=True)) / len(ours["lines"])
        longer = theirs["words"] / ours["words"] - 1
        what = f"{same:.1%} of the lines are ours, {longer:+.1%} words"
        result.facts["same"] = {"lines": same, "longer": longer}
        print(f"  {result.name}: {what}", flush=True)
        # One sentence, or three, may well come out otherwise.
        if len(ours["lines"]) >= 100 and abs(longer) > 0.05:
            raise ContestError(f"{result.name}: {what}")


def _generate(place: Place) -> list[str]:
    return ["generate", str(place.prepared / "writer"), PROMPT, "--max-tokens", str(TOKENS), "--temperature", "0"]


def _evaluate(place: Place) -> list[str]:
    what = ["--pairs", "test_2016_flickr", "--data", place.option("data"), "--source", "en", "--target", "de"]
    return ["evaluate", place.option("translator"), *what, "--json", str(place.own / "report.json")]


def _embed(place: Place) -> list[str]:
    file = str(place.prepared / "sentences-1000.en")
    return ["embed", str(place.prepared / "encoder"), "--file", file, "--output", str(place.own / "vectors.npy")]


def _transformers_embed(place: Place) -> list[str]:
    given = [str(place.prepared / "encoder-huggingface"), str(place.prepared / "sentences-1000.en")]
    return ["-m", "benchmarks.peers.transformers_embed", *given, str(place.own / "vectors.npy")]


def _vectors(place: Place, ran: Ran) -> dict[str, Any]:
    """Some numbers of all vectors."""
    import numpy as np

    return {"vectors": np.load(place.own / "vectors.npy")[:, :4].astype(float).ravel().tolist()}


def _near(results: Sequence[Result]) -> None:
    ours = results[0].facts["vectors"]
    for result in results[1:]:
        theirs = result.facts["vectors"]
        if len(theirs) != len(ours) or max(abs(a - b) for a, b in zip(ours, theirs, strict=True)) > CLOSE:
            raise ContestError(f"{result.name}: other vectors: {theirs[:4]}, and ours are {ours[:4]}")


COMMANDS = {f"translate-{count}": _translate(count, joey=count <= 1_000) for count in COUNTS}
COMMANDS |= {
    "translate-greedy": _translate(1_000, beam=1),
    "translate-w8a8": _translate(1_000, weights="w8a8"),
    "generate": Command(
        f"A character GPT of the shape of char-gpt, context 256, writes {TOKENS} tokens, the most probable each time",
        _generate,
        [
            Peer(
                "Hugging Face",
                lambda place: [
                    "-m",
                    "benchmarks.peers.transformers_generate",
                    str(place.prepared / "writer-huggingface"),
                    PROMPT,
                    str(TOKENS),
                ],
                package="transformers",
            )
        ],
        prepare="writer",
        facts=lambda place, ran: {"text": [ran.text.rstrip("\n")]},
        check=agree("text"),
        held_equal="The same weights, by `plainformer export`; the same text.",
    ),
    "evaluate": Command(
        f"A trained Transformer-Tiny is scored on the 1,000 pairs of test_2016_flickr, beam {BEAM}",
        _evaluate,
        needs=("translator", "data"),
        facts=lambda place, ran: {"report": ran.text.splitlines()},
    ),
    "embed": Command(
        "An encoder of the size of MiniLM (6 layers of width 384) turns 1,000 sentences into vectors",
        _embed,
        [Peer("Hugging Face", _transformers_embed, package="transformers")],
        needs=("data",),
        prepare="encoder",
        facts=_vectors,
        check=_near,
        held_equal=f"The same weights, by `plainformer import`; the vectors agree to {CLOSE:g}.",
    ),
}
