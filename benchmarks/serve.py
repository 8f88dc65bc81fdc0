"""Servers of translators and of a language model, asked by clients in another process over the loopback.

Offline, `translate` is given all sentences at once. A server is given one with each request, by so many clients, who
send the next when they have the answer; server and clients share the cores. Transformer-Tiny is a trained model, the
Marian model of the base shape has the weights of `benchmarks.marian`, rounded to w8a8. CTranslate2 stands behind the
smallest server that batches (`benchmarks.peers.ctranslate2_serve`), and tokenises as ours does; its search of
Transformer-Tiny differs as `decode_tiny` tells. LibreTranslate (1.9.6) installs, but fetches its models when it starts,
and they were not to be had where this was measured.

A language model writes 64 tokens a request; the figure is the median time to the first of them, while all write.
"""

import json
import statistics
import sys
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import clients, ctranslate, handed, marian, multi30k
from benchmarks.contest import ContestError, Result
from benchmarks.row import MILLISECONDS, Between, Contestant, Row, chosen, nothing_to_compare, per_second

OFFLINE, OURS, PEER = "plainformer translate", "plainformer serve", f"{ctranslate.NAME} served"
CLIENTS = 1, 8, 32, 128
SENTENCES = {"tiny": 512, "marian": 192}
ALONE = 8  # a single client sends one of so many of the sentences
WRITERS = 1, 8, 32, 128
TEXTS, TOKENS = 8, 64  # of each writer; of each text
PROMPT = "The king of France"

Turn = tuple[float, dict[str, float]]


def rows(options: Namespace) -> dict[str, Row]:
    """One of each model."""
    equal = "Every answer of our servers is the offline one, in every turn; the peer's search differs."
    titles = {"tiny": "Transformer-Tiny, beam 5", "marian": "Marian base, beam 4, w8a8"}
    missing = {
        "tiny": "" if options.translator and options.data else "give --translator and --data",
        "marian": "" if options.data else "give the folder of Multi30k, --data",
    }
    peer = Contestant(f"{PEER}, 32 clients", missing="" if ctranslate.precisions() else "install ctranslate2")
    found = {}
    for case, title in titles.items():
        busy, alone = f"{OURS}, 32 clients", f"{OURS}, 1 client"
        found[f"serve-{case}"] = Row(
            title=f"{title}: {SENTENCES[case]} captions of Multi30k, offline and asked for over HTTP",
            module="serve",
            case=case,
            contestants=[Contestant(OFFLINE), *(Contestant(_named(count)) for count in CLIENTS), peer],
            goals=(Between(0.85, busy, OFFLINE), Between(4.0, busy, alone)),
            check=_same_answers,
            held_equal=equal,
            unit=per_second("sentences"),
            rounds=5,
            missing=missing[case],
            has_floors=False,
        )
    found["serve-writer"] = Row(
        title=f"A language model, {TOKENS} tokens a request, streamed: time to the first",
        module="serve",
        case="writer",
        contestants=[Contestant(_named(count)) for count in WRITERS],
        goals=(),
        check=nothing_to_compare,
        held_equal="Every text has its seed; each turn's are those of the first.",
        unit=MILLISECONDS,
        rounds=5,
        missing="" if options.writer else "give the folder of a language model, --writer",
        has_floors=False,
    )
    return found


def _named(count: int) -> str:
    return f"{OURS}, {count} client{'s' if count > 1 else ''}"


def _same_answers(results: Sequence[Result]) -> None:
    (offline,) = (one for one in results if one.name == OFFLINE)
    for result in results:
        found = result.facts["answers"]
        if result.is_ours and found != offline.facts["answers"][: len(found)]:
            raise ContestError(f"{result.name}: answers are not those of {OFFLINE}")


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], Turn], dict[str, Any]]:
    """A turn, which gives the seconds of one sentence, or to a first token, and with it latencies."""
    if name == OFFLINE:
        return _offline(case, folder)
    count = int(name.rpartition(", ")[2].split()[0])
    if case == "writer":
        return _written(count, folder)
    sentences = _sentences(folder, case)[: SENTENCES[case] if count > 1 else SENTENCES[case] // ALONE]
    url, _ = clients.start(_command(case, name, folder, threads), folder / f"{case}-{name}.log".replace(" ", "-"))
    bodies = [("/translate", {"q": sentence, "source": "en", "target": "de"}) for sentence in sentences]

    def asked() -> tuple[clients.Load, list[str]]:
        found = clients.load(url, bodies, count)
        return found, [json.loads(answer)["translatedText"] for answer in found.answers]

    _, answers = asked()

    def turn() -> Turn:
        found, again = asked()
        assert again == answers
        return found.seconds / len(bodies), _percentiles(found.latencies)

    return turn, {"answers": answers, "warm_up": 1}


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    return {f"p{share} ms": 1e3 * clients.percentile(seconds, share / 100) for share in (50, 95, 99)}


def _sentences(folder: Path, case: str) -> list[str]:
    lines = (chosen(folder, "data") / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()
    return lines[: SENTENCES[case]]


def _command(case: str, name: str, folder: Path, threads: int) -> list[str]:
    if name.startswith(PEER):
        model = handed.converted(folder) if case == "tiny" else marian.converted(folder)
        return [sys.executable, "-m", "benchmarks.peers.ctranslate2_serve", case, str(folder), str(model), str(threads)]
    if case == "tiny":
        model = f"en-de={chosen(folder, 'translator')}"
        return [sys.executable, "-m", "plainformer", "serve", "--no-log", "--port", "0", model]
    return [sys.executable, "-m", "benchmarks.served_marian", str(folder)]


def _offline(case: str, folder: Path) -> tuple[Callable[[], Turn], dict[str, Any]]:
    import time

    from plainformer.cli.work import begin_work

    begin_work()
    sentences, translator = _sentences(folder, case), _translator(case, folder)

    def turn() -> Turn:
        began = time.perf_counter()
        assert translator.translate(sentences) == answers
        return (time.perf_counter() - began) / len(sentences), {}

    answers = translator.translate(sentences)
    return turn, {"answers": answers, "warm_up": 1}


def _translator(case: str, folder: Path) -> Any:
    import plainformer

    if case == "marian":
        return marian.translator(multi30k.prepare(chosen(folder, "data"), folder).tokenizer)
    found = plainformer.load(chosen(folder, "translator"))
    handed.hand_over(found, folder)
    found.target_tokenizer.save(folder / "tokenizer.json")
    return found


def _written(count: int, folder: Path) -> tuple[Callable[[], Turn], dict[str, Any]]:
    model = chosen(folder, "writer")
    command = [sys.executable, "-m", "plainformer", "serve", "--no-log", "--port", "0", str(model)]
    url, _ = clients.start(command, folder / f"writer-{count}.log")
    (one,) = json.loads(clients.get(url, "/v1/models"))["data"]
    about = {"model": one["id"], "prompt": PROMPT, "max_tokens": TOKENS, "stream": True}
    bodies = [("/v1/completions", about | {"seed": seed}) for seed in range(count * TEXTS)]

    def texts(found: clients.Load) -> list[str]:
        return ["".join(part["choices"][0]["text"] for part in clients.events(answer)) for answer in found.answers]

    answers = texts(clients.load(url, bodies, count))

    def turn() -> Turn:
        found = clients.load(url, bodies, count)
        assert texts(found) == answers
        notes = {"p95 ms": 1e3 * clients.percentile(found.firsts, 0.95)}
        return statistics.median(found.firsts), notes | {"tokens/s": len(bodies) * TOKENS / found.seconds}

    return turn, {"warm_up": 1}
