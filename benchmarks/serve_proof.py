"""What a server withstands: `python -m benchmarks.serve_proof [--requests N] [--model TRANSLATOR]`.

Small random models, a translator and a language model, are asked by 64 clients at random moments, of random lengths,
beams, settings and seeds, whole and streamed; every answer is compared with the one that the model gives alone. Memory
is read after a tenth of the requests, and after all. Then 100 clients leave in the middle of their texts, more ask than
there is room for, and the server is killed and started again; with `--model`, so is one of this model, whose caches
are warm then.
"""

import argparse
import asyncio
import json
import random
import signal
import socket
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from benchmarks import clients

CLIENTS, DISTINCT, LEAVING = 64, 150, 100
WORDS = ["ba", "cb", "dc", "ed", "fe", "gf", "hg", "ih"]
PROMPTS = ["the ", "a man, a cat\nthe moon and the", "moon", "über 10 Nächte the sun a man " * 4, "a"]
GROWTH, READY = 1.05, 5.0  # what memory may grow by; seconds

Case = tuple[tuple[str, Any], Any]
"""A request, and what its answer says."""


def main() -> int:
    parser = argparse.ArgumentParser(description="What a server withstands.")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--model", type=Path, help="a translator's folder, from en to de")
    options = parser.parse_args()

    from plainformer.cli.work import begin_work

    begin_work()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        translator, writer = _models(folder)
        draw = random.Random(7)
        cases = [_translation(draw, translator) for _ in range(DISTINCT)] + [
            _completion(draw, writer) for _ in range(DISTINCT)
        ]
        print(f"{len(cases)} answers are known", flush=True)
        models = [f"en-de={folder / 'translator'}", str(folder / "writer")]
        ends = [
            _answers(models, folder, cases, draw, options.requests),
            _leaving(models, folder),
            _overload(models, folder),
        ]
        ends.append(_killed(models, folder, cases[0][0]))
        if options.model:
            asked = ("/translate", {"q": "A man is sitting on a bench.", "source": "en", "target": "de"})
            ends.append(_killed([f"en-de={options.model}"], folder, asked))
    return 0 if all(ends) else 1


def _models(folder: Path) -> tuple[Any, Any]:
    """Saved, and loaded again: weights twice as large as at the start, so that predictions are far from uniform."""
    import equinox as eqx
    import jax

    import plainformer
    from plainformer.folder import ModelFolder, save_folder
    from plainformer.models import LanguageModel, LanguageModelConfig, Transformer, TransformerConfig
    from plainformer.tokenizer import train_bpe, train_word

    def larger(model: Any) -> Any:
        return jax.tree.map(lambda leaf: 2.0 * leaf if eqx.is_inexact_array(leaf) else leaf, model)

    words = train_word([" ".join(WORDS)], 13)
    sizes: dict[str, Any] = {"d_model": 12, "d_ff": 20, "heads": 2, "encoder_layers": 1, "decoder_layers": 2}
    config = TransformerConfig(source_vocab=13, target_vocab=13, **sizes, tie="none", pad_vocab_to=1)
    save_folder(ModelFolder(larger(Transformer(config, key=jax.random.key(11))), words, words), folder / "translator")
    pieces = train_bpe(["the moon and the sun", "a man, a cat\n", "über 10 Nächte — नमस्ते"], 330)
    shape = LanguageModelConfig(vocab=pieces.vocab_size, d_model=12, d_ff=23, heads=2, layers=2, context=70)
    save_folder(ModelFolder(larger(LanguageModel(shape, key=jax.random.key(3))), pieces, pieces), folder / "writer")
    return plainformer.load(folder / "translator"), plainformer.load(folder / "writer")


def _translation(draw: random.Random, translator: Any) -> Case:
    texts = [" ".join(draw.choices(WORDS, k=draw.randint(1, 24))) for _ in range(draw.choice([1, 1, 1, 2, 4]))]
    more = draw.choice([0, 0, 1, 5])
    asked: dict[str, Any] = {"q": texts if len(texts) > 1 else texts[0], "source": "en", "target": "de"}
    changes: dict[str, Any] = {}
    if more:
        asked["alternatives"] = more
        changes = {"n_best": 1 + more, "beam_size": max(1 + more, translator.settings.beam_size)}
    best = [translator.translate_n_best([text], **changes)[0][0].text for text in texts]
    return ("/translate", asked), best if len(texts) > 1 else best[0]


def _completion(draw: random.Random, writer: Any) -> Case:
    how: dict[str, Any] = {"max_tokens": draw.randint(1, 60), "seed": draw.randrange(1000)}
    how |= draw.choice([{}, {"temperature": 0.0}, {"top_p": 0.8, "top_k": 90}, {"repetition_penalty": 1.3}])
    prompt, samples, stop = draw.choice(PROMPTS), draw.choice([1, 1, 2]), draw.choice([[], ["a", "the"]])
    texts = writer.generate([prompt], samples=samples, stop=stop, **how)[0]
    asked = how | {"model": "writer", "prompt": prompt, "n": samples, "stop": stop, "stream": draw.random() < 0.5}
    return ("/v1/completions", asked), texts


def _said(path: str, body: Any, answer: bytes) -> Any:
    """What an answer says."""
    if path == "/translate":
        return json.loads(answer)["translatedText"]
    if not body["stream"]:
        return [choice["text"] for choice in json.loads(answer)["choices"]]
    texts = [""] * body["n"]
    for choice in (choice for part in clients.events(answer) for choice in part["choices"]):
        texts[choice["index"]] += choice["text"]
    return texts


def _start(models: list[str], folder: Path, *more: str) -> tuple[str, Any]:
    command = [sys.executable, "-m", "plainformer", "serve", "--no-log", "--port", "0", *more, *models]
    return clients.start(command, folder / "log")


def _answers(models: list[str], folder: Path, cases: list[Case], draw: random.Random, count: int) -> bool:
    url, process = _start(models, folder, "--timeout", "900")  # what is new to the caches is compiled meanwhile
    chosen = [draw.choice(cases) for _ in range(count)]
    wrong, sizes, began = 0, [], time.perf_counter()
    for part in (chosen[: count // 10], chosen[count // 10 :]):
        pauses = [draw.expovariate(20.0) for _ in part]
        found = clients.load(url, [request for request, _ in part], CLIENTS, pauses)
        wrong += sum(
            _said(*request, answer) != expected for (request, expected), answer in zip(part, found.answers, strict=True)
        )
        sizes.append(clients.resident(process))
    seconds = time.perf_counter() - began
    process.kill()
    print(f"{count:,} requests of {CLIENTS} clients in {seconds:.0f} s: {wrong} other than alone, 0 failed")
    print(f"memory after {count // 10:,}: {sizes[0]:.0f} MiB, after {count:,}: {sizes[1]:.0f} MiB", flush=True)
    return wrong == 0 and sizes[1] <= GROWTH * sizes[0]


def _counts(url: str) -> dict[str, int]:
    """Of the language model."""
    lines = clients.get(url, "/metrics").decode().splitlines()
    named = [line.split() for line in lines if line.startswith("plainformer_engine") and 'model="writer"' in line]
    return {name.removeprefix("plainformer_engine_").split("{")[0]: int(float(value)) for name, value in named}


def _leaving(models: list[str], folder: Path) -> bool:
    """100 clients who leave in the middle of texts that do not end."""
    url, process = _start(models, folder, "--max-tokens", "100000")
    parts = urlsplit(url)
    endless = {"model": "writer", "prompt": "the ", "max_tokens": 100_000, "stream": True, "stop": []}
    connections = [socket.create_connection((parts.hostname, parts.port)) for _ in range(LEAVING)]
    for seed, connection in enumerate(connections):
        connection.sendall(clients.request(parts, "/v1/completions", endless | {"seed": seed}))
    end = time.monotonic() + 60.0
    while (counts := _counts(url))["running"] + counts["waiting"] < LEAVING // 2 and time.monotonic() < end:
        time.sleep(0.05)
    held = counts["running"] + counts["waiting"]
    began = time.perf_counter()
    for connection in connections:
        connection.close()
    before = _counts(url)["turns_total"]
    while (counts := _counts(url))["running"] + counts["waiting"] and time.monotonic() < end + 60.0:
        time.sleep(0.005)
    seconds, turns = time.perf_counter() - began, counts["turns_total"] - before
    process.kill()
    print(
        f"{LEAVING} clients left, {held} of them with texts under way: all places are free after "
        f"{seconds * 1e3:.0f} ms and {turns} turns"
    )
    return counts["running"] + counts["waiting"] == 0


def _overload(models: list[str], folder: Path) -> bool:
    """More than there is room for: refused at once, and answered again afterwards."""
    url, process = _start(models, folder, "--waiting", "8")
    body = {"model": "writer", "prompt": "the ", "max_tokens": 300, "n": 8, "seed": 1}

    async def ask() -> tuple[int, str, float]:
        return await asyncio.to_thread(_status, url, body)

    async def all_of_them() -> list[tuple[int, str, float]]:
        return await asyncio.gather(*[ask() for _ in range(48)])

    found = asyncio.run(all_of_them())
    refused = [(after, seconds) for status, after, seconds in found if status == 503]
    later = _status(url, body)[0]
    process.kill()
    slowest = max((seconds for _, seconds in refused), default=0.0)
    print(f"48 requests at once: {len(refused)} answered 503, in {slowest * 1e3:.0f} ms at most; afterwards {later}")
    return bool(refused) and all(int(after) >= 1 for after, _ in refused) and later == 200


def _status(url: str, body: Any) -> tuple[int, str, float]:
    content, began = json.dumps(body).encode(), time.perf_counter()
    request = urllib.request.Request(f"{url}/v1/completions", content, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=120) as reply:
            return reply.status, "", time.perf_counter() - began
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers["Retry-After"], time.perf_counter() - began


def _killed(models: list[str], folder: Path, asked: tuple[str, Any]) -> bool:
    """Ended by SIGKILL in the middle of work, and started again: when it is ready, and what it answers first."""
    url, process = _start(models, folder)
    first = clients.load(url, [asked], 1).answers
    parts = urlsplit(url)
    for _ in range(16):
        socket.create_connection((parts.hostname, parts.port)).sendall(clients.request(parts, *asked))
    process.send_signal(signal.SIGKILL)
    process.wait()
    began = time.perf_counter()
    url, process = _start(models, folder)
    ready, computed = time.perf_counter() - began, clients.computed(process)
    again = clients.load(url, [asked], 1)
    process.kill()
    print(
        f"killed and started again: ready after {ready:.1f} s ({computed:.1f} of a core), "
        f"the first answer {again.seconds * 1e3:.0f} ms later"
    )
    return ready <= READY and again.answers == first


if __name__ == "__main__":
    raise SystemExit(main())
