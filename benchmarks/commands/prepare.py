"""What commands are given: models, texts, and what their peers read; made once, in a process of its own.

python -m benchmarks.commands.prepare WHAT FOLDER
"""

import importlib.util
import json
import pickle
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import handed, multi30k
from benchmarks.commands.command import settings
from benchmarks.commands.decode import COUNTS
from benchmarks.commands.train import STEPS
from benchmarks.row import chosen
from benchmarks.train_epoch import joey_config

STEPS_OF_WRITER = 50  # of training: so that the best character leads the next
ENCODER = {"vocab_size": 30_522, "hidden_size": 384, "intermediate_size": 1536}
ENCODER |= {"num_hidden_layers": 6, "num_attention_heads": 12, "max_position_embeddings": 512}
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    {"translator": translator, "writer": writer, "encoder": encoder, "text": text, "pieces": pieces}[what](folder)


def translator(folder: Path) -> None:
    """The sentences, and the translator as others read it: CTranslate2's folder, Joey NMT's numbers."""
    import plainformer

    work = folder / "prepared"
    loaded: Any = plainformer.load(chosen(folder, "translator"))
    handed.hand_over(loaded, work)
    if importlib.util.find_spec("ctranslate2"):
        handed.converted(work)
    loaded.source_tokenizer.save(work / "tokenizer.json")
    lines = _sentences(folder)
    rows = loaded.source_tokenizer.encode_batch(lines)
    (work / "sentences.json").write_text(json.dumps(rows))


def writer(folder: Path) -> None:
    """A small character GPT, trained for a moment, and its export."""
    text(folder)
    work = folder / "prepared"
    few = {"train__steps": STEPS_OF_WRITER, "train__save_every": STEPS_OF_WRITER, "schedule__warmup": 10}
    given = ["--text", str(work / "text.txt"), *settings(model__context=256, model__bias=True, **few)]
    _plainformer("train", "char-gpt", *given, "--run", work / "writer")
    _plainformer("export", work / "writer", "--to", "huggingface", "-o", work / "writer-huggingface")


def encoder(folder: Path) -> None:
    """A BERT with random weights in the Hugging Face library's folder, and its import.

    Its pieces are the characters and the words of the sentences, filled up with some that nobody writes.
    """
    from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

    work, lines = folder / "prepared", _sentences(folder)
    characters = sorted(set("".join(lines).lower()) - {" "})
    words = sorted({word for line in lines for word in line.lower().split()} - set(characters))
    known = [*SPECIAL, *characters, *(f"##{character}" for character in characters), *words][: ENCODER["vocab_size"]]
    known += [f"[unused{number}]" for number in range(ENCODER["vocab_size"] - len(known))]
    theirs = work / "encoder-huggingface"
    theirs.mkdir()
    (theirs / "vocab.txt").write_text("\n".join(known) + "\n", encoding="utf-8")
    BertTokenizerFast.from_pretrained(str(theirs), do_lower_case=True).save_pretrained(str(theirs))
    BertForMaskedLM(BertConfig(**ENCODER)).save_pretrained(str(theirs))
    _plainformer("import", theirs, "-o", work / "encoder")


def text(folder: Path) -> None:
    """The language reference that comes with Python, as it is and as nanoGPT reads it."""
    from pydoc_data.topics import topics

    whole = "\n".join(topics[name] for name in sorted(topics))
    (folder / "prepared" / "text.txt").write_text(whole, encoding="utf-8")
    nano = folder / "prepared" / "nanogpt" / "text"
    nano.mkdir(parents=True, exist_ok=True)
    known = {character: id for id, character in enumerate(sorted(set(whole)))}
    ids = np.array([known[character] for character in whole], np.uint16)
    cut = len(ids) * 9 // 10
    ids[:cut].tofile(nano / "train.bin")
    ids[cut:].tofile(nano / "val.bin")
    (nano / "meta.pkl").write_bytes(pickle.dumps({"vocab_size": len(known), "stoi": known}))


def pieces(folder: Path) -> None:
    """Multi30k in pieces, and Joey NMT's settings, which log the steps that are waited for."""
    work = folder / "prepared"
    multi30k.prepare(chosen(folder, "data"), work)
    config = joey_config(work, {})
    for steps in STEPS:
        training = config["training"] | {"logging_freq": steps, "overwrite": True}
        (work / f"joey-{steps}.yaml").write_text(json.dumps(config | {"training": training}))  # JSON is YAML, too


def _sentences(folder: Path) -> Sequence[str]:
    """English lines of Multi30k, the test set's first: all of them, and in files of the counts that are translated."""
    data = chosen(folder, "data")
    lines: list[str] = []
    for name in ("test_2016_flickr.en", "train.en"):
        lines += (data / name).read_text(encoding="utf-8").splitlines()
    for count in COUNTS:
        chosen_lines = "".join(f"{line}\n" for line in lines[:count])
        (folder / "prepared" / f"sentences-{count}.en").write_text(chosen_lines, encoding="utf-8")
    return lines[: COUNTS[-1]]


def _plainformer(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "plainformer", *map(str, arguments)], check=True, stdout=sys.stderr)


if __name__ == "__main__":
    main()
