"""The smallest server that batches: who asks within a few milliseconds is translated together, by CTranslate2.

python -m benchmarks.peers.ctranslate2_serve CASE FOLDER MODEL THREADS

It answers LibreTranslate's `/translate` of one sentence. Texts are tokenised as ours are: CTranslate2 is given pieces
as numbers.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import uvicorn
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from tokenizers import Tokenizer

from plainformer.serve.server import address, bound

WINDOW, BATCH = 0.005, 32  # seconds; sentences


def main() -> None:
    case, folder, model, threads = sys.argv[1:]
    tokenizer_file = Path(folder) / ("tokenizer.json" if case == "tiny" else "multi30k/tokenizer.json")
    tokenizer, how = Tokenizer.from_file(str(tokenizer_file)), _settings(case, Path(folder))
    closing = how.pop("closing")
    kind = "float32" if case == "tiny" else "int8"
    translator = ctranslate2.Translator(model, compute_type=kind, inter_threads=int(threads), intra_threads=1)
    waiting: asyncio.Queue[Any] = asyncio.Queue()
    gate = asyncio.Semaphore(int(threads))  # so many batches at once

    def translated(texts: list[str]) -> list[str]:
        rows = [[*map(str, row.ids), closing] for row in tokenizer.encode_batch(texts, add_special_tokens=False)]
        found = translator.translate_batch(rows, **how)
        return tokenizer.decode_batch([list(map(int, one.hypotheses[0])) for one in found])

    async def batches() -> None:
        running = set()
        while True:
            await gate.acquire()
            batch = [await waiting.get()]
            await asyncio.sleep(WINDOW)
            while len(batch) < BATCH and not waiting.empty():
                batch.append(waiting.get_nowait())
            task = asyncio.create_task(batch_of(batch))
            running.add(task)
            task.add_done_callback(running.discard)

    async def batch_of(batch: list[Any]) -> None:
        try:
            texts = await asyncio.to_thread(translated, [text for text, _ in batch])
            for (_, future), text in zip(batch, texts, strict=True):
                future.set_result(text)
        finally:
            gate.release()

    async def translate(request: Any) -> JSONResponse:
        future = asyncio.get_running_loop().create_future()
        waiting.put_nowait(((await request.json())["q"], future))
        return JSONResponse({"translatedText": await future})

    app, at = Starlette(routes=[Route("/translate", translate, methods=["POST"])]), bound("127.0.0.1", 0)

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            self.batches = asyncio.create_task(batches())
            print(f"ready at {address(at)}", flush=True)

    Server(uvicorn.Config(app, log_level="error")).run(sockets=[at])


def _settings(case: str, folder: Path) -> dict[str, Any]:
    if case == "marian":
        return {"beam_size": 4, "max_batch_size": BATCH, "closing": "1"}
    facts = json.loads((folder / "handed.json").read_text())
    how = {"beam_size": 5, "length_penalty": facts["power_of_length"], "max_batch_size": BATCH, "disable_unk": True}
    return how | {"closing": str(facts["special"]["eos"])}


if __name__ == "__main__":
    main()
