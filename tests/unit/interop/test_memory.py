"""Loading a checkpoint takes little more memory than its size."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from checkpoints import LETTERS
from numpy.random import default_rng
from safetensors.numpy import save_file

from plainformer.interop.gpt2 import GPT2, config_from
from plainformer.interop.weight_map import pairs_of

MEASURE = """
import sys
from pathlib import Path
import jax
from plainformer.folder import load_folder

def megabytes(name):
    (line,) = [line for line in open("/proc/self/status") if line.startswith(name + ":")]
    return int(line.split()[1]) / 1024

jax.numpy.zeros(3).block_until_ready()
before = megabytes("VmRSS")
content = load_folder(Path(sys.argv[1]))
jax.block_until_ready(jax.tree.leaves(content.model))
print(megabytes("VmHWM") - before)
"""


@pytest.mark.skipif(
    sys.platform != "linux",
    reason="the peak memory of a process is read from /proc/self/status, which only Linux has",
)
def test_the_peak_is_less_than_1_3_times_the_size(tmp_path: Path) -> None:
    """A GPT-2 of 200 MB, a third of it the embedding, as in the smallest real one."""
    settings = {"model_type": "gpt2", "vocab_size": 32_003, "n_embd": 512, "n_layer": 11, "n_head": 8}
    (tmp_path / "config.json").write_text(json.dumps(settings))
    LETTERS.save(tmp_path / "tokenizer.json")
    pairs = pairs_of(GPT2, config_from(settings, "here"))
    draw = default_rng(0)
    weights = {pair.theirs: draw.standard_normal(pair.shape, "float32") for pair in pairs}
    save_file(weights, tmp_path / "model.safetensors", metadata={"format": "pt"})
    size = (tmp_path / "model.safetensors").stat().st_size / 2**20
    assert 190 < size < 220
    measured = subprocess.run(
        [sys.executable, "-c", MEASURE, str(tmp_path)], capture_output=True, text=True, timeout=120, check=True
    )
    assert float(measured.stdout) < 1.3 * size
