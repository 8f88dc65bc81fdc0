"""Programs for machines that are not here: lowered for them, and read.

The text of a lowered program says which kernels it calls and which arrays it makes. What a kernel answers, only its
machine can tell.
"""

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import AbstractMesh, AxisType, NamedSharding, PartitionSpec

from plainformer import devices
from plainformer.data.block import Blocks
from plainformer.data.loader import Batch
from plainformer.data.masking import MaskedBatch
from plainformer.equations.masks import causal_mask, padding_mask
from plainformer.kernels.xla import chunked_cross_entropy
from plainformer.models import (
    EncoderConfig,
    LanguageModel,
    LanguageModelConfig,
    MaskedLanguageModel,
    Transformer,
    TransformerConfig,
)
from plainformer.nn.attention import MultiHeadAttention
from plainformer.nn.stack import scanned
from plainformer.nn.trace import traced
from plainformer.objective import LanguageObjective, MaskedObjective, TranslationObjective
from plainformer.programs import compiled as program_module
from plainformer.train.mesh import abstract_mesh, batch_sharding, shardings
from plainformer.train.optimizer import make_optimizer
from plainformer.train.schedule import constant
from plainformer.train.state import initial_state
from plainformer.train.step import StepSettings, make_step

# Lengths are those of no other axis, so that an array of scores is known by its shape.
ROWS, TARGET, SOURCE, D_MODEL, HEADS, KEY = 2, 256, 512, 192, 3, jax.random.key(0)
SCORES = re.compile(rf"tensor<(\d+x)*({TARGET}|{SOURCE})x({TARGET}|{SOURCE})x(f32|bf16)>")

FORWARD = {"cuda": [r"@__cudnn$fmhaSoftmax("], "tpu": ["@tpu_custom_call", "splash_mha_fwd"]}
BACKWARD = {"cuda": [r"@__cudnn$fmhaSoftmaxBackward("], "tpu": ["splash_mha_dq", "splash_mha_dkv"]}
KERNELS = ("__cudnn", "tpu_custom_call")

both_machines = pytest.mark.parametrize("machine", ["cuda", "tpu"])


@pytest.fixture(autouse=True)
def another_machine(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the `machine` of the test would say of itself; its library too, of which JAX asks the version."""
    for module in (devices, chunked_cross_entropy):
        monkeypatch.setattr(module, "platform", lambda: request.getfixturevalue("machine"))
    monkeypatch.setattr(devices, "default_device", lambda: SimpleNamespace(platform="another"))
    monkeypatch.setattr(program_module, "compiler_options", dict)
    cudnn = SimpleNamespace(cudnn_get_version=lambda: 91000)
    monkeypatch.setattr("jax._src.cudnn.fused_attention_stablehlo.cuda_versions", cudnn)


def lowered(machine: str, function: Callable, *args: Any) -> str:
    """The program of `function` for a `machine`; of the arguments' arrays the shapes are enough."""
    arrays, rest = eqx.partition(args, lambda leaf: eqx.is_array(leaf) or isinstance(leaf, jax.ShapeDtypeStruct))
    jitted = jax.jit(lambda arrays: eqx.filter(function(*eqx.combine(arrays, rest)), eqx.is_array))
    return jitted.trace(arrays).lower(lowering_platforms=(machine,)).as_text()


def check_calls(text: str, names: list[str]) -> None:
    for name in names:
        assert name in text, f"{name} is not called"


def check_no_scores(text: str) -> None:
    assert not (found := SCORES.search(text)), f"there is {found.group()}"


# ---------------------------------------------------------------------------------------------------------------------
# One attention
# ---------------------------------------------------------------------------------------------------------------------


def layer(d_k: int = 64, kv_heads: int = HEADS, dtype: str = "bfloat16") -> MultiHeadAttention:
    made = eqx.filter_eval_shape(MultiHeadAttention, D_MODEL, HEADS, d_k, d_k, bias=True, kv_heads=kv_heads, key=KEY)
    return cast_shapes(made, dtype)


def cast_shapes(tree: Any, dtype: str) -> Any:
    return jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, dtype), tree)


def hidden(seq: int, dtype: str = "bfloat16") -> jax.ShapeDtypeStruct:
    return jax.ShapeDtypeStruct((ROWS, seq, D_MODEL), dtype)


def causal(attention: Any, x: Any, memory: Any, valid: Any) -> jax.Array:
    return attention(x, causal_mask(TARGET))


def padded(attention: Any, x: Any, memory: Any, valid: Any) -> jax.Array:
    return attention(memory, padding_mask(valid))


def crossed(attention: Any, x: Any, memory: Any, valid: Any) -> jax.Array:
    return attention(x, padding_mask(valid), memory)


def unmasked(attention: Any, x: Any, memory: Any, valid: Any) -> jax.Array:
    return attention(x, None, memory)


def inputs(dtype: str = "bfloat16") -> tuple[jax.ShapeDtypeStruct, ...]:
    return hidden(TARGET, dtype), hidden(SOURCE, dtype), jax.ShapeDtypeStruct((ROWS, SOURCE), bool)


def gradient_of(function: Callable) -> Callable:
    """With respect to the layer and what it looks at."""

    def gradient(attention: Any, x: Any, memory: Any, valid: Any) -> Any:
        def loss(seen: Any) -> jax.Array:
            return function(*seen, valid).astype(jnp.float32).sum()

        return eqx.filter_grad(loss)((attention, x, memory))

    return gradient


@both_machines
@pytest.mark.parametrize("kv_heads", [HEADS, 1], ids=["heads apart", "heads grouped"])
@pytest.mark.parametrize("call", [causal, padded, crossed, unmasked])
def test_attention_on_16_bits_is_the_machines_own_kernel(call: Callable, kv_heads: int, machine: str) -> None:
    value = lowered(machine, call, layer(kv_heads=kv_heads), *inputs())
    check_calls(value, FORWARD[machine])
    check_no_scores(value)
    gradient = lowered(machine, gradient_of(call), layer(kv_heads=kv_heads), *inputs())
    check_calls(gradient, FORWARD[machine] + BACKWARD[machine])
    check_no_scores(gradient)


@both_machines
def test_keys_that_heads_share_are_there_once(machine: str) -> None:
    """Repeated, keys and values would have the source's length and an axis of all heads."""
    repeated = re.compile(rf"tensor<{ROWS}x({HEADS}x{SOURCE}|{SOURCE}x{HEADS}|{HEADS}x64x{SOURCE})x")
    assert repeated.search(lowered(machine, gradient_of(crossed), layer(kv_heads=HEADS), *inputs()))
    assert not repeated.search(lowered(machine, gradient_of(crossed), layer(kv_heads=1), *inputs()))


@both_machines
@pytest.mark.parametrize(
    ("one", "dtype"), [(layer(dtype="float32"), "float32"), (layer(d_k=36), "bfloat16")], ids=["32 bits", "odd width"]
)
def test_what_a_kernel_cannot_serve_goes_by_products(one: MultiHeadAttention, dtype: str, machine: str) -> None:
    text = lowered(machine, gradient_of(crossed), one, *inputs(dtype))
    assert not any(kernel in text for kernel in KERNELS)
    with pytest.raises(AssertionError, match="there is tensor<"):
        check_no_scores(text)


@both_machines
def test_who_looks_at_the_weights_gets_them(machine: str) -> None:
    text = lowered(machine, lambda one, x: traced(one)(x, causal_mask(TARGET)), layer(), hidden(TARGET))
    assert not any(kernel in text for kernel in KERNELS)


# ---------------------------------------------------------------------------------------------------------------------
# Whole training steps
# ---------------------------------------------------------------------------------------------------------------------

SHAPE: dict[str, Any] = {"d_model": D_MODEL, "d_ff": 320, "heads": HEADS}
LANGUAGE = LanguageModelConfig(vocab=50, context=TARGET, layers=2, kv_heads=1, position="rotary", **SHAPE)
MASKED = EncoderConfig(vocab=50, context=TARGET, layers=2, **SHAPE)
TRANSLATION = TransformerConfig(source_vocab=50, target_vocab=50, encoder_layers=1, decoder_layers=1, **SHAPE)


def some(*shapes: int, of: Any = np.int32) -> Any:
    return np.zeros(shapes, of)


def some_steps() -> dict[str, tuple[Any, Any, Any]]:
    """What is trained, on what objective, and a batch."""
    target, real = some(ROWS, TARGET), some(ROWS, TARGET, of=bool)
    pairs = Batch(some(ROWS, SOURCE), some(ROWS, SOURCE, of=bool), target, target, real)
    hiding = MaskedBatch(target, real, some(ROWS, 40), some(ROWS, 40), some(ROWS, 40, of=bool))
    return {
        "language model": ((LanguageModel, LANGUAGE), LanguageObjective(), Blocks(target, target, real)),
        "masked language model": ((MaskedLanguageModel, MASKED), MaskedObjective(), hiding),
        "translator": ((Transformer, TRANSLATION), TranslationObjective(smoothing=0.1), pairs),
    }


def step_of(name: str, compute_dtype: str, accumulate: int = 1) -> tuple[Callable, Any, Any]:
    """An update, a state and a batch; of state and batch, the shapes."""
    (kind, config), objective, batch = some_steps()[name]
    optimizer = make_optimizer(constant(peak=0.01), clip=1.0)
    settings = StepSettings(accumulate=accumulate, compute_dtype=compute_dtype)
    step = make_step(objective, optimizer, settings, KEY)
    state = eqx.filter_eval_shape(lambda key: initial_state(kind(config, key=key), optimizer), KEY)
    return (
        lambda state, batch: step(state, batch),
        state,
        eqx.filter_eval_shape(lambda: jax.tree.map(jnp.asarray, batch)),
    )


@both_machines
@pytest.mark.parametrize("name", some_steps())
def test_a_step_in_bfloat16_has_the_kernels_and_no_scores(name: str, machine: str) -> None:
    text = lowered(machine, *step_of(name, "bfloat16"))
    check_calls(text, FORWARD[machine] + BACKWARD[machine])
    check_no_scores(text)


@both_machines
def test_a_step_in_float32_is_everywhere_the_same_program(machine: str) -> None:
    text = lowered(machine, *step_of("translator", "float32"))
    assert not any(kernel in text for kernel in KERNELS)


def over_a_mesh(tree: Any, devices: int, *axes: str) -> Any:
    """Shapes, spread as `train.mesh` spreads arrays, over devices that nobody has."""
    spread = NamedSharding(AbstractMesh((devices,), ("data",), axis_types=(AxisType.Auto,)), PartitionSpec(*axes))
    return jax.tree.map(
        lambda leaf: (
            jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=spread)
            if isinstance(leaf, jax.ShapeDtypeStruct)
            else leaf
        ),
        tree,
    )


@both_machines
def test_layers_in_a_loop_have_the_kernels_too(machine: str) -> None:
    step, state, batch = step_of("language model", "bfloat16")
    text = lowered(machine, step, eqx.filter_eval_shape(scanned, state), batch)
    check_calls(text, ["stablehlo.while", *FORWARD[machine], *BACKWARD[machine]])
    check_no_scores(text)


@pytest.mark.parametrize("machine", ["tpu"])
@pytest.mark.parametrize("accumulate", [1, 2])
def test_many_devices_have_the_kernels_too(accumulate: int, machine: str) -> None:
    """A TPU's stand where each device sees its own rows alone. cuDNN's split themselves, but on real devices only."""
    step, state, batch = step_of("translator", "bfloat16", accumulate)
    batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((16, *leaf.shape[1:]), leaf.dtype), batch)
    text = lowered(machine, step, over_a_mesh(state, 4), over_a_mesh(batch, 4, "data"))
    check_calls(text, FORWARD[machine] + BACKWARD[machine])
    check_no_scores(text)
    assert f"tensor<{16 // 4 // accumulate}x{HEADS}x{TARGET}x64xbf16>" in text


@pytest.mark.parametrize("machine", ["tpu"])
def test_devices_that_share_heads_have_the_kernels_too(machine: str) -> None:
    step, state, batch = step_of("translator", "bfloat16")
    batch = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((16, *leaf.shape[1:]), leaf.dtype), batch)
    mesh = abstract_mesh(f"data=2,tensor={HEADS}", 2 * HEADS)
    text = lowered(machine, step, over(state, shardings(state, mesh)), over(batch, batch_sharding(mesh)))
    check_calls(text, FORWARD[machine] + BACKWARD[machine])
    check_no_scores(text)
    assert f"tensor<{batch.source.shape[0] // 2}x1x{TARGET}x64xbf16>" in text


def over(tree: Any, where: Any) -> Any:
    """Shapes, spread as is said of each, or of all."""
    of_each = isinstance(where, NamedSharding)
    return jax.tree.map(
        lambda leaf, sharding: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype, sharding=sharding) if sharding else leaf,
        tree,
        jax.tree.map(lambda _: where, tree) if of_each else where,
    )
