"""The decoding laws on a trained model and real text, which take too long for a test.

    python tests/laws/decoding_program.py runs/multi30k-tiny-quick data/multi30k/test_2016_flickr.en

Beam search over all sentences in batches must give what it gives one sentence at a time, and what the uncached,
unbatched definition (decode/reference.py) gives on the first `--reference` of them. Two outputs that differ are a tie
where their scores are within 1e-5, or where the definition, asked about that sentence, had two extensions within 1e-5
of each other of which only one stayed in the beam. Ends with exit code 1 where anything but a tie differs.
"""

import argparse
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import plainformer
from plainformer.decode import Hypothesis, generate, reference

TIE = 1e-5


Define = Callable[[int], tuple[Hypothesis, float]]


def compare(name: str, found: Sequence[Hypothesis], expected: Sequence[Hypothesis], define: Define) -> bool:
    """Say how two lists of best hypotheses differ; whether they are equal but for ties.

    `define` gives the definition's hypothesis for a sentence, and its narrowest decision.
    """
    pairs = list(zip(found, expected, strict=True))
    different = [index for index, (a, b) in enumerate(pairs) if (a.ids, a.finished) != (b.ids, b.finished)]
    largest = max((abs(a.score - b.score) for a, b in pairs if a.ids == b.ids), default=0.0)
    print(
        f"{name}: {len(pairs):,} sentences, {len(pairs) - len(different):,} equal token for token; "
        f"largest difference of equal outputs' scores {largest:.1e}"
    )
    ties = 0
    for index in different:
        a, b = pairs[index]
        _, gap = define(index)
        tied = min(gap, abs(a.score - b.score)) <= TIE
        ties += tied
        print(
            f"  sentence {index + 1}, {'a tie' if tied else 'DIFFERENT'}: scores {a.score:.7f} and {b.score:.7f}; the "
            f"definition's narrowest decision was by {gap:.1e}\n    {a.ids}\n    {b.ids}"
        )
    return len(different) == ties


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run or a model")
    parser.add_argument("text", type=Path, help="source sentences, one a line")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--reference", type=int, default=50, metavar="N", help="sentences for the slow definition")
    options = parser.parse_args()

    translator = plainformer.load(options.run)
    lines = options.text.read_text(encoding="utf-8").splitlines()
    sources = translator.source_tokenizer.encode_batch(lines)
    target = translator.target_tokenizer
    special: Any = {"bos": target.bos_id, "eos": target.eos_id, "pad": target.pad_id}
    model, settings = translator.model, translator.settings
    settings = replace(settings, beam_size=options.beam, n_best=1)

    def search(batch_tokens: int) -> list[Hypothesis]:
        began = time.monotonic()
        found = [best for (best,) in generate(model, sources, settings, batch_tokens=batch_tokens, **special)]
        print(
            f"beam {options.beam}, {batch_tokens} source tokens at once: {time.monotonic() - began:.0f} s", flush=True
        )
        return found

    def define(index: int) -> tuple[Hypothesis, float]:
        gaps = [math.inf]
        next_logits = reference.model_logits(model, sources[index], bos=target.bos_id, eos=target.eos_id)
        bound = settings.bound(len(sources[index]) + 1)
        (best,) = reference.beam_search(next_logits, bound, settings, on_cut=gaps.append, **special)
        return best, min(gaps)

    expected = [define(index)[0] for index in range(min(options.reference, len(sources)))]
    batched, alone = search(1024), search(1)
    equal = compare("in batches and one at a time", batched, alone, define)
    equal &= compare("in batches and by the definition", batched[: len(expected)], expected, define)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
