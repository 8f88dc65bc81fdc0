"""The decoding laws on a trained model and real text, which take too long for a test.

    python tests/laws/decoding_program.py runs/multi30k-tiny-quick data/multi30k/test_2016_flickr.en

Beam search over all sentences in batches must give what it gives one sentence at a time, and what the uncached,
unbatched definition (decode/reference.py) gives on the first `--reference` of them. Two outputs that differ are a tie
where their scores are within 1e-5. Ends with exit code 1 where anything but a tie differs.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import plainformer
from plainformer.decode import Hypothesis, generate, reference

TIE = 1e-5


def compare(name: str, found: Sequence[Hypothesis], expected: Sequence[Hypothesis], lines: Sequence[str]) -> bool:
    """Say how two lists of best hypotheses differ; whether they are equal but for ties."""
    pairs = list(zip(found, expected, strict=True))
    different = [index for index, (a, b) in enumerate(pairs) if (a.ids, a.finished) != (b.ids, b.finished)]
    ties = [index for index in different if abs(pairs[index][0].score - pairs[index][1].score) <= TIE]
    largest = max((abs(a.score - b.score) for a, b in pairs if a.ids == b.ids), default=0.0)
    print(
        f"{name}: {len(pairs):,} sentences, {len(pairs) - len(different):,} equal token for token, "
        f"{len(ties)} tied within {TIE:g}, {len(different) - len(ties)} different; "
        f"largest difference of equal outputs' scores {largest:.1e}"
    )
    for index in different:
        (a, b), kind = pairs[index], "tie" if index in ties else "DIFFERENT"
        print(f"  {kind}: sentence {index + 1}: {lines[index]}\n    {a.score:.7f} {a.ids}\n    {b.score:.7f} {b.ids}")
    return len(different) == len(ties)


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

    batched, alone = search(1024), search(1)
    expected = []
    for source in sources[: options.reference]:
        next_logits = reference.model_logits(model, source, bos=target.bos_id, eos=target.eos_id)
        expected += reference.beam_search(next_logits, settings.bound(len(source) + 1), settings, **special)
    equal = compare("in batches and one at a time", batched, alone, lines)
    equal &= compare("in batches and by the definition", batched[: len(expected)], expected, lines)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
