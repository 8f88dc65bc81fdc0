"""A model of theirs, trained on with LoRA here, is a model of theirs again."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import torch
from side_by_side import CLOSE, drawn, drawn_ids
from transformers import GPT2Config, GPT2LMHeadModel

from plainformer.folder import load_folder
from plainformer.interop.export import Export, export_model
from plainformer.recipe import parse_recipe
from plainformer.runs.run import run_recipe
from plainformer.tokenizer import byte_tokenizer

RECIPE = """\
task = "language-model"
[data]
text = "{text}"
batch_size = 3
[model]
init_from = "{start}"
[tune]
lora_rank = 2
[schedule]
name = "constant"
warmup = 1
peak = 0.01
[train]
steps = 3
mesh = 1
"""


def test_a_gpt2_that_was_tuned_here_says_the_same_there(tmp_path: Path) -> None:
    """Theirs -> pairs beside it, trained -> merged -> theirs: equal logits, and other ones than before."""
    theirs, ids = tmp_path / "theirs", drawn_ids(259, 2, 9, seed=1)
    before = drawn(GPT2LMHeadModel(GPT2Config(vocab_size=259, n_positions=17, n_embd=12, n_layer=2, n_head=3)), seed=0)
    before.save_pretrained(theirs)
    byte_tokenizer().save(theirs / "tokenizer.json")
    text = tmp_path / "sea.txt"
    text.write_text("the white whale and the sea; " * 30, encoding="utf-8")
    run_recipe(parse_recipe(RECIPE.format(text=text, start=theirs)), tmp_path / "run", say=lambda line: None)
    tuned = load_folder(tmp_path / "run" / "last")
    name = export_model(Export(tuned.model, tuned.source_tokenizer, tuned.target_tokenizer), tmp_path / "again")
    assert name == "GPT2LMHeadModel"
    after = GPT2LMHeadModel.from_pretrained(tmp_path / "again").eval()
    with torch.no_grad():
        old, new = (model(torch.tensor(ids)).logits.numpy() for model in (before, after))
    model: Any = tuned.model
    ours = eqx.filter_jit(model)(jnp.asarray(ids))
    assert np.abs(new - old).max() > 0.1
    np.testing.assert_allclose(ours, new, rtol=0, atol=CLOSE)
