"""Lines of a file, translated by CTranslate2, to standard output.

python -m benchmarks.peers.ctranslate2_translate FOLDER FILE BEAM THREADS COMPUTE_TYPE
"""

import json
import sys
from pathlib import Path

import ctranslate2
from tokenizers import Tokenizer

BATCH = 32  # sentences: the quickest of those tried


def main() -> None:
    folder, file, beam, threads, compute_type = sys.argv[1:]
    facts = json.loads((Path(folder) / "handed.json").read_text())
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    # Many sentences go quickest one on each thread, a single one on all.
    abreast = min(int(threads), len(lines))
    translator = ctranslate2.Translator(
        f"{folder}/handed-ctranslate2",
        compute_type=compute_type,
        inter_threads=abreast,
        intra_threads=int(threads) // abreast,
    )
    eos = str(facts["special"]["eos"])
    rows = [[*map(str, found.ids), eos] for found in tokenizer.encode_batch(lines, add_special_tokens=False)]
    found = translator.translate_batch(
        rows,
        beam_size=int(beam),
        length_penalty=facts["power_of_length"],
        max_batch_size=BATCH,
        disable_unk=True,
    )
    texts = tokenizer.decode_batch([list(map(int, result.hypotheses[0])) for result in found])
    sys.stdout.writelines(f"{text}\n" for text in texts)


if __name__ == "__main__":
    main()
