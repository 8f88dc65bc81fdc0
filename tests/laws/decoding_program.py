"""The decoding laws on a trained model and real text, which take too long for a test.

    python tests/laws/decoding_program.py runs/multi30k-tiny-quick data/multi30k/test_2016_flickr.en

Beam search over all sentences in batches must give what it gives one sentence at a time, and what the uncached,
unbatched definition (decode/reference.py) gives on the first `--reference` of them. Two outputs that differ are a tie
where their scores are within 1e-5, or where the definition finds one of them, and the other one when two extensions
within 1e-5 of each other, of which one stayed in its beam, are exchanged (`ties.py`): what shows a tie is printed. Ends
with exit code 1 where anything but a tie differs, or equal outputs' scores do by more.
"""

import argparse
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from ties import Outcomes, compare, outcomes

import plainformer
from plainformer.decode import Hypothesis, generate, reference


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", help="folder of a run or a model")
    parser.add_argument("text", type=Path, help="source sentences, one a line")
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--reference", type=int, default=50, metavar="N", help="sentences for the slow definition")
    options = parser.parse_args(arguments)

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

    def asked(index: int) -> tuple[reference.NextLogits, int]:
        next_logits = reference.model_logits(model, sources[index], bos=target.bos_id, eos=target.eos_id)
        return next_logits, settings.bound(len(sources[index]) + 1)

    def define(index: int) -> Outcomes:
        return outcomes(*asked(index), settings, **special)

    few = range(min(options.reference, len(sources)))
    expected = [reference.beam_search(*asked(index), settings, **special)[0] for index in few]
    batched, alone = search(1024), search(1)
    equal = compare("in batches and one at a time", batched, alone, define)
    equal &= compare("in batches and by the definition", batched[: len(expected)], expected, define)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
