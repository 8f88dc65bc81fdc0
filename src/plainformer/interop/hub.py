"""Folders of the Hugging Face hub, fetched by their names."""

import re
from pathlib import Path

from plainformer.errors import WorkError
from plainformer.extras import require

NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
"""What a name looks like: `gpt2`, `openai-community/gpt2`."""

SMALL = ("*.json", "*.model", "*.spm", "*.txt", "*.tiktoken", "*.bpe")
SAFE = ("model*.safetensors",)
PICKLES = ("pytorch_model*.bin",)


def fetched(name: str, revision: str | None = None) -> Path:
    """The folder of `name`, on this machine's disk: settings, tokenizer, and weights, pickles only if need be.

    Args:
        revision: a branch, a tag or a commit; the main branch if not given.

    Raises:
        InputError: huggingface_hub is not installed.
        WorkError: there is no such name, or the hub does not answer.
    """
    hub = require("huggingface_hub", extra="hub")
    folder = Path()
    for weights in (SAFE, PICKLES):
        try:
            folder = Path(hub.snapshot_download(name, revision=revision, allow_patterns=[*SMALL, *weights]))
        except Exception as failure:  # of the network, of the hub, of a name: the library has no common class
            first = (str(failure).strip().splitlines() or [type(failure).__name__])[0]
            fix = "check the name and the network, or give a folder"
            raise WorkError(f"cannot be fetched from the hub ({first})", where=name, fix=fix) from failure
        if any(folder.glob(weights[0])):
            break
    return folder
