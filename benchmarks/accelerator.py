"""GPT-2 124M on a GPU, in bfloat16: its training step, and greedy decoding.

The peers are PyTorch's, compiled, with the flash attention that it chooses by itself (`scaled_dot_product_attention`).
All have 50,304 rows in their table, GPT-2's 50,257 filled up to a multiple of 64, as nanoGPT advises. In training
matrices are multiplied in bfloat16; parameters, moments and the loss are float32: by `train.compute_dtype` here, by
autocast there. In decoding the peers are bfloat16 throughout; ours rounds weights and the inputs of products to it, and
keeps activations and caches in float32. In "float32" a GPU multiplies in TF32, as JAX has it do.
"""

import importlib.util
from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from benchmarks import decode_gpt2, machine, train_gpt
from benchmarks.agreement import same_tokens
from benchmarks.contest import Result
from benchmarks.gpt import Shape, random_weights
from benchmarks.row import MILLISECONDS, Contestant, Ratio, Row, agree, per_second

GPT2 = Shape(layers=12, heads=12, d_model=768, context=1024, batch=16, vocab=50304)
CASES = {"train": GPT2, "decode-1": replace(GPT2, batch=1), "decode-64": replace(GPT2, batch=64)}
STEPS = 10  # of a turn of training
PROMPT, NEW = decode_gpt2.PROMPT, decode_gpt2.NEW


def rows(options: Namespace) -> dict[str, Row]:
    missing = "" if machine.gpus() else "there is no NVIDIA GPU"
    hugging_face = "" if importlib.util.find_spec("transformers") else "install transformers"
    nano = "" if options.nanogpt else "give its folder, --nanogpt"
    found = {
        "gpu-gpt2-step": Row(
            f"GPT-2 124M, training step in bfloat16, {GPT2.batch} blocks of {GPT2.context} tokens",
            "accelerator",
            "train",
            [
                Contestant("plainformer"),
                Contestant("nanoGPT compiled", missing=nano),
                Contestant("Hugging Face compiled", missing=hugging_face),
            ],
            (Ratio(1.0),),
            agree("losses", 2e-3),
            "The same weights and batches; the losses of the first three steps agree to 0.2 %.",
            MILLISECONDS,
            missing=missing,
            device="gpu",
        )
    }
    equal = {
        "decode-1": "The same weights; the row of 64 texts compares what is written.",
        "decode-64": "The same weights and prompts; 85 % of the first tokens agree. Texts part where roundings choose "
        "another token.",
    }
    for case in equal:
        found[f"gpu-gpt2-{case}"] = Row(
            f"GPT-2 124M on a GPU, greedy, {NEW} tokens after a prompt of {PROMPT}, batch {CASES[case].batch}",
            "accelerator",
            case,
            [
                Contestant("plainformer bfloat16"),
                Contestant("plainformer float32"),
                Contestant("Hugging Face bfloat16 compiled", missing=hugging_face),
                Contestant("Hugging Face bfloat16 eager", missing=hugging_face),
            ],
            (Ratio(1.0),),
            _check_first_tokens if case == "decode-64" else same_tokens(0.0, exact=()),
            equal[case],
            per_second("tokens"),
            missing=missing,
            device="gpu",
        )
    return found


def _check_first_tokens(results: Sequence[Result]) -> None:
    same_tokens(0.0, exact=())(results)
    firsts = [replace(one, facts={"tokens": [text[:1] for text in one.facts["tokens"]]}) for one in results]
    same_tokens(0.85, exact=[one.name for one in results])(firsts)


def set_up(case: str, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    """A turn, which gives the seconds of one step and the losses of the first three, or those of one token."""
    shape = CASES[case]
    return _training(shape, name, folder, threads) if case == "train" else _decoding(shape, name, folder)


def _training(shape: Shape, name: str, folder: Path, threads: int) -> tuple[Callable[[], float], dict[str, Any]]:
    data = train_gpt.batches(shape, 8)
    make = train_gpt.ours_step if name == "plainformer" else train_gpt.torch_step
    step = make(shape, random_weights(shape), name, folder, threads, on_gpu=True)
    facts: dict[str, Any] = {"flops": shape.step_flops(), "losses": [step(data[number]) for number in range(3)]}
    return train_gpt.turn_of(step, data, STEPS), facts


def _decoding(shape: Shape, name: str, folder: Path) -> tuple[Callable[[], float], dict[str, Any]]:
    if name.startswith("plainformer"):
        write = decode_gpt2.ours_writer(shape, name.split()[1], folder, 0)
    else:
        write = _hugging_face(shape, is_compiled=name.endswith("compiled"))
    return decode_gpt2.turn_of(write, shape, "bfloat16")


def _hugging_face(shape: Shape, is_compiled: bool) -> Callable[[], decode_gpt2.Texts]:
    import torch

    model = decode_gpt2.hugging_face_model(shape).to("cuda", torch.bfloat16)
    if is_compiled:  # generate() compiles by itself where the cache's size is fixed, with CUDA's graphs
        model.generation_config.cache_implementation = "static"
    ids = torch.from_numpy(decode_gpt2.prompts(shape)).to("cuda")
    mask = torch.ones_like(ids)

    def write() -> decode_gpt2.Texts:
        return model.generate(ids, attention_mask=mask, max_new_tokens=NEW, do_sample=False)[:, PROMPT:].tolist()

    return write
