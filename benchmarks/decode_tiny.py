"""A trained Transformer-Tiny translates the 1,000 sentences of Multi30k's test set of 2016 with a beam of 5.

Ours goes from text to text, tokenising included. Joey NMT and CTranslate2 are given pieces as numbers and give
numbers back, which spares them that. They read the weights from a file that ours, which comes first, writes.

The searches are not the same. Ours takes a hypothesis that has ended out of the beam, which is narrower from then on.
Joey leaves it in: it goes on growing behind its end and keeps a place among the best, and the search stops once every
place of the beam has held an end, where ours goes on while a longer hypothesis could still win. So a few sentences come
out otherwise with the same weights: all 26 of the first measurement were shorter. The row asks for 95 % that do not,
and for as many tokens in all to 2 %.

CTranslate2 divides by length^alpha instead of Wu's ((5 + length) / 6)^alpha: it is shown for its speed, with an alpha
of the same slope at Multi30k's mean length, and is no part of the goal. It runs one translation on each thread, as is
best for it on so small a model.
"""

import json
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks import ctranslate, handed
from benchmarks.agreement import same_tokens
from benchmarks.row import Contestant, Ratio, Row, chosen, per_second

BEAM = 5
OURS = ("float32", "bfloat16", "w8a8")  # the first writes what the others read
JOEY = "Joey NMT"

Texts = Sequence[Sequence[int]]


def rows(options: Namespace) -> dict[str, Row]:
    """The one row."""
    peers = [f"{ctranslate.NAME} {kind}" for kind in ctranslate.precisions() if kind in ("float32", "int8")]
    needed = {"translator": "the folder of a trained model", "data": "the folder of Multi30k"}
    missing = [f"give {what}, --{name}" for name, what in needed.items() if not getattr(options, name)]
    absent = "" if options.joey else "give the Python that has it, --joey"
    joey = Contestant(JOEY, python=str(options.joey), missing=absent)
    row = Row(
        title=f"Transformer-Tiny, beam {BEAM}, the 1,000 sentences of test_2016_flickr, from text to text",
        module="decode_tiny",
        case="flickr",
        contestants=[*(Contestant(f"plainformer {kind}") for kind in OURS), joey, *map(Contestant, peers)],
        goals=(Ratio(20.0, over=(JOEY,)),),
        check=same_tokens(0.95, exact=[JOEY], length=0.02),
        held_equal="The same weights; at least 95 % of Joey's translations are ours, id for id, "
        "and all together are as long to 2 %: its beam treats ended hypotheses otherwise.",
        unit=per_second("sentences"),
        rounds=7,
        missing="; ".join(missing),
    )
    return {"tiny-flickr": row}


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one sentence, and all translations."""
    make = {"plainformer": _ours, ctranslate.NAME: _ctranslate, "Joey": _joey}[name.split()[0]]
    translate, tokens, facts = make(name, folder, threads)

    def turn() -> float:
        began = time.perf_counter()
        translate()
        return (time.perf_counter() - began) / len(tokens)

    return turn, {"tokens": tokens, "warm_up": 0} | facts


def _ours(name: str, folder: Path, threads: int) -> tuple[Callable[[], object], Texts, dict[str, Any]]:
    import plainformer
    from plainformer.decode import generate
    from plainformer.quantize.prepare import prepare
    from plainformer.runtime import keep_compiled_programs, keep_freed_memory

    keep_freed_memory()
    keep_compiled_programs()
    precision = name.split()[1]
    translator = plainformer.load(chosen(folder, "translator"), weights=precision)
    lines = (chosen(folder, "data") / "test_2016_flickr.en").read_text(encoding="utf-8").splitlines()
    texts = translator.translate(lines, beam_size=BEAM)
    pieces, said = translator.source_tokenizer, translator.target_tokenizer
    special = {"bos": said.bos_id, "eos": said.eos_id, "pad": said.pad_id}
    sources = pieces.encode_batch(lines)
    known = [id for id in range(translator.model.config.target_vocab) if id != said.unk_id]
    model = translator.model if precision == "float32" else prepare(translator.model, precision)
    found = generate(model, sources, translator.settings, **special, allowed_tokens=known)
    tokens = [list(hypotheses[0].ids) for hypotheses in found]
    assert said.decode_batch(tokens) == texts
    if precision == OURS[0]:
        handed.hand_over(translator, folder)
        (folder / "tiny-sources.json").write_text(json.dumps(sources))
    lengths = [(len(source) + 1, len(target) + 1) for source, target in zip(sources, tokens, strict=True)]
    flops = sum(handed.handed(folder).shape.search_flops(*both, BEAM) for both in lengths) / len(lines)
    return lambda: translator.translate(lines, beam_size=BEAM), tokens, {"flops": flops}


def _sources(folder: Path) -> Texts:
    return json.loads((folder / "tiny-sources.json").read_text())


def _joey(name: str, folder: Path, threads: int) -> tuple[Callable[[], object], Texts, dict[str, Any]]:
    import torch

    from benchmarks import joey

    torch.set_num_threads(threads)
    given = handed.handed(folder)
    model = joey.joey_model(given.shape, given.weights, given.special, given.norm_position)
    lines = [" ".join(map(str, source)) for source in _sources(folder)]
    translate = joey.translate_with(model, lines, folder, batch=joey.BATCH, beam=BEAM, alpha=given.alpha)
    return translate, [list(map(int, line.split())) for line in translate()], {}


def _ctranslate(name: str, folder: Path, threads: int) -> tuple[Callable[[], object], Texts, dict[str, Any]]:
    import ctranslate2

    given = handed.handed(folder)
    translator = ctranslate2.Translator(
        str(handed.converted(folder)), compute_type=name.split()[1], inter_threads=threads
    )
    rows = [list(map(str, [*source, given.special["eos"]])) for source in _sources(folder)]
    how = {"beam_size": BEAM, "length_penalty": given.power_of_length, "max_batch_size": ctranslate.BATCH}
    how |= {"disable_unk": True}

    def translate() -> Texts:
        found = translator.translate_batch(rows, **how)
        return [list(map(int, result.hypotheses[0])) for result in found]

    return translate, translate(), {}
