"""Lines of a file as vectors, in an array of NumPy, by the Hugging Face library: the mean of a line's hidden states.

python -m benchmarks.peers.transformers_embed FOLDER FILE OUTPUT
"""

import sys
from pathlib import Path

import numpy as np
import torch
from transformers import AutoModel, AutoTokenizer

BATCH = 32  # lines, those of like length together, as sentence-transformers does it


def main() -> None:
    folder, file, output = sys.argv[1:]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModel.from_pretrained(folder, add_pooling_layer=False).eval()
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    order = sorted(range(len(lines)), key=lambda index: -len(lines[index]))
    vectors = np.zeros((len(lines), model.config.hidden_size), np.float32)
    with torch.inference_mode():
        for start in range(0, len(order), BATCH):
            members = order[start : start + BATCH]
            given = tokenizer([lines[index] for index in members], padding=True, return_tensors="pt")
            hidden = model(**given).last_hidden_state
            mask = given["attention_mask"][:, :, None].to(hidden.dtype)
            vectors[members] = ((hidden * mask).sum(1) / mask.sum(1)).numpy()
    np.save(output, vectors)


if __name__ == "__main__":
    main()
