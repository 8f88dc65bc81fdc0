"""Lines of numbers, translated by Joey NMT into lines of numbers on standard output.

python -m benchmarks.peers.joey_translate FOLDER FILE BEAM THREADS COUNT
"""

import json
import sys
import tempfile
from pathlib import Path

import torch

from benchmarks import joey
from benchmarks.handed import handed


def main() -> None:
    folder, _, beam, threads, count = sys.argv[1:]
    torch.set_num_threads(int(threads))
    given = handed(Path(folder))
    model = joey.joey_model(given.shape, given.weights, given.special, given.norm_position)
    rows = json.loads((Path(folder) / "sentences.json").read_text())[: int(count)]
    lines = [" ".join(map(str, row)) for row in rows]
    work = Path(tempfile.mkdtemp(dir=Path.cwd()))
    translate = joey.translate_with(model, lines, work, batch=joey.BATCH, beam=int(beam), alpha=given.alpha)
    sys.stdout.writelines(f"{line}\n" for line in translate())


if __name__ == "__main__":
    main()
