"""A Marian model of the base shape translates 512 captions of Multi30k with a beam of 4.

The sources are the captions in pieces of a joint byte-pair encoding of 10,000, learnt from the training text; how the
translations come to have real lengths is told in `benchmarks.marian`. All libraries may sort and batch as they like, in
batches of at least 32 where there are so many of a length. CTranslate2 takes part with all threads in one translation,
and with one thread each in as many translations at once, as its guide advises for throughput.
"""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ctranslate, marian, multi30k
from benchmarks.agreement import same_tokens
from benchmarks.row import Contestant, Ratio, Row, chosen, per_second
from benchmarks.translator import ours

SENTENCES, BEAM, BATCH = 512, 4, 32
ABREAST = "abreast"
OURS = ("plainformer float32", "plainformer bfloat16", "plainformer int8", "plainformer w8a8")

Texts = Sequence[Sequence[int]]
"""Ids without special tokens."""


def rows(options: Namespace) -> dict[str, Row]:
    """The one row."""
    kinds = [kind for kind in ctranslate.precisions() if kind in ("float32", "int8")]
    peers = [f"{ctranslate.NAME} {kind}{how}" for kind in kinds for how in ("", f" {ABREAST}")]
    exact = [name for name in peers if "float32" in name]
    row = Row(
        title=f"Marian base, beam {BEAM}, {SENTENCES} captions of Multi30k",
        module="decode_marian",
        case="base",
        contestants=[Contestant(name) for name in (*OURS, *peers, "Hugging Face float32")],
        goals=(Ratio(1.5, over=tuple(exact)), Ratio(2.5, over=("Hugging Face float32",))),
        check=same_tokens(0.99, exact=[*exact, "Hugging Face float32"], length=0.01),
        held_equal="The same weights and sources; in float32 99 % of the translations or more are the same, id for id. "
        "Ours in fewer bits are held to nothing; their shares are printed. Weights drawn at random lose more by "
        "rounding than trained ones.",
        unit=per_second("sentences"),
        rounds=7,
        missing="" if options.data else "give the folder of Multi30k, --data",
    )
    return {"marian-base": row}


def sources(folder: Path) -> list[list[int]]:
    """The captions in pieces; whoever comes first writes the ids down."""
    kept = folder / "marian-sources.json"
    if not kept.exists():
        data = chosen(folder, "data")
        lines = (data / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()
        kept.write_text(json.dumps(multi30k.prepare(data, folder).tokenizer.encode_batch(lines[:SENTENCES])))
    return json.loads(kept.read_text())


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one sentence, and all translations."""
    texts = sources(folder)
    make = {"plainformer": _ours, ctranslate.NAME: _ctranslate, "Hugging": _hugging_face}[name.split()[0]]
    translate = make(texts, name, folder, threads)
    tokens = [list(map(int, text)) for text in translate()]

    def turn() -> float:
        began = time.perf_counter()
        translate()
        return (time.perf_counter() - began) / len(texts)

    lengths = [len(text) + 1 for text in texts]
    flops = sum(marian.SHAPE.search_flops(length, length, BEAM) for length in lengths) / len(texts)
    return turn, {"tokens": tokens, "flops": flops, "warm_up": 0}


def _ours(texts: Texts, name: str, folder: Path, threads: int) -> Callable[[], Texts]:
    from plainformer.decode import GenerationSettings, generate
    from plainformer.quantize.prepare import prepare
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory

    keep_freed_memory()
    keep_compiled_programs()
    model = ours(marian.SHAPE, marian.marian_weights(), sinusoidal_order="half", activation="silu")
    precision = name.split()[1]
    model = model if precision == "float32" else prepare(model, precision)
    settings = GenerationSettings(beam_size=BEAM)
    special = {"bos": marian.PAD, "pad": marian.PAD, "eos": marian.EOS, "source_eos": marian.SOURCE_END}

    def translate() -> Texts:
        return [found[0].ids for found in generate(model, texts, settings, **special)]

    return translate


def _ctranslate(texts: Texts, name: str, folder: Path, threads: int) -> Callable[[], Texts]:
    import ctranslate2

    abreast = threads if name.endswith(ABREAST) else 1
    how = {"inter_threads": abreast, "intra_threads": threads // abreast}
    translator = ctranslate2.Translator(str(marian.converted(folder)), compute_type=name.split()[1], **how)
    rows = [list(map(str, [*text, marian.SOURCE_END])) for text in texts]

    def translate() -> Texts:
        found = translator.translate_batch(rows, beam_size=BEAM, max_batch_size=BATCH)
        return [list(map(int, result.hypotheses[0])) for result in found]

    return translate


def _hugging_face(texts: Texts, name: str, folder: Path, threads: int) -> Callable[[], Texts]:
    import torch

    torch.set_num_threads(threads)
    model = marian.hugging_face(marian.marian_weights())
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    batches = [order[start : start + BATCH] for start in range(0, len(order), BATCH)]

    def translate() -> Texts:
        found: dict[int, list[int]] = {}
        for batch in batches:
            longest = max(len(texts[index]) for index in batch) + 1
            rows = [[*texts[index], marian.SOURCE_END] for index in batch]
            ids = torch.tensor([row + [marian.PAD] * (longest - len(row)) for row in rows])
            mask = (ids != marian.PAD).long()
            made = model.generate(ids, attention_mask=mask, num_beams=BEAM, max_new_tokens=longest + 50)[:, 1:]
            found |= {index: row[: row.index(marian.EOS)] for index, row in zip(batch, made.tolist(), strict=True)}
        return [found[index] for index in range(len(texts))]

    return translate
