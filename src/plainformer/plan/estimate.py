"""What a step needs on each device of a mesh, from shapes and the table of `train/mesh.py`: memory, traffic, exchange.

It is a model of what a compiler for accelerators makes of a step, and quick: meshes are ranked by it. What XLA makes of
it is in `compiled`. Assumed is that

- parameters, their gradients and the optimizer's state are where the table says, in the dtypes that they have;
- what is kept for the gradient is spread over the devices that the rows are spread over and, where it has heads or the
  inner width, over `tensor`; fused attention keeps no scores, and recomputing each layer's input alone;
- gradients are there when what was kept is gone, so that the larger of both counts;
- `fsdp` gathers every parameter, in the compute dtype, and keeps it so for the backward pass, but where layers are
  recomputed, which gathers theirs again; it sums gradients by a reduce-scatter. `data` sums what is left by an
  all-reduce; `tensor` sums activations once for each sublayer forward and once backward. Recomputing repeats what is
  forward.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import jax

from plainformer.mesh_shape import MeshShape
from plainformer.models.config import TransformerConfig
from plainformer.named import named_leaves
from plainformer.plan.hlo import Amount, Collective
from plainformer.plan.operations import Kept, trace
from plainformer.plan.subject import Subject, stacks
from plainformer.plan.words import Number
from plainformer.train.mesh import abstract_mesh, logical_axes, spec_of

WIDTHS = {"float32": 4, "bfloat16": 2}


class Alike(NamedTuple):
    """Arrays that every mesh spreads alike, such as the same matrix of all layers. name: that of the first."""

    name: str
    shape: tuple[int, ...]
    bytes_each: int  # of a number
    times: int


class Outline(NamedTuple):
    """A whole training, on no mesh.

    Attributes:
        operations: of a step, forward and backward.
        operations_again: those of all layers forward, which recomputing adds.
        kept: what the forward pass keeps, and how many times each.
        layer_inputs: bytes of the inputs of all layers.
        model, optimizer: the arrays of the training's state.
        state: the same as a tree of shapes.
    """

    operations: float
    operations_again: float
    kept: Mapping[Kept, int]
    layer_inputs: int
    model: list[Alike]
    optimizer: list[Alike]
    state: Any

    @property
    def parameters(self) -> int:
        """Numbers of the model."""
        return sum(one.times * math.prod(one.shape) for one in self.model)


class Memory(NamedTuple):
    """Bytes on one device."""

    parameters: float
    optimizer: float
    gradients: float
    activations: float

    @property
    def total(self) -> Number:
        return self.parameters + self.optimizer + max(self.gradients, self.activations)


class Estimate(NamedTuple):
    """A step on each device of a mesh.

    Attributes:
        mesh: its shape.
        plain, remat: memory without recomputing layers, and with it.
        operations: of a device, as the recipe has it.
        useful: the same without what is recomputed.
        traffic: bytes from and to its memory, at least.
        exchanged: what it exchanges with others.
    """

    mesh: MeshShape
    plain: Memory
    remat: Memory
    operations: float
    useful: float
    traffic: float
    exchanged: Mapping[Collective, Amount]


def outline(subject: Subject, rows: int) -> Outline:
    """The whole, from small models traced: what one more layer adds is what each adds."""
    layers = stacks(subject.config)
    base = dict.fromkeys(layers, 1)
    first = trace(subject, replace(subject.config, **base), rows)
    operations, again, kept = first.operations, 0.0, Counter(first.kept)
    for name, count in layers.items():
        more = trace(subject, replace(subject.config, **(base | {name: 2})), rows)
        added = more.operations - first.operations
        operations += (count - 1) * added
        again += count * added / 3  # two of three products are backward
        of_layer = Counter(more.kept)
        of_layer.subtract(first.kept)
        kept.update({one: (count - 1) * times for one, times in of_layer.items()})
    state = subject.state()
    width = WIDTHS[subject.settings.compute_dtype] * subject.config.d_model
    inputs = sum(layers.values()) * rows * _length(subject, rows) * width
    return Outline(operations, again, kept, inputs, _alike(state.model), _alike(state.optimizer_state), state)


def _alike(tree: Any) -> list[Alike]:
    found: dict[Any, list[str]] = {}
    for name, leaf in named_leaves(tree).items():
        if isinstance(leaf, jax.ShapeDtypeStruct):
            key = logical_axes(name, leaf.ndim), leaf.shape, leaf.dtype.itemsize
            found.setdefault(key, []).append(name)
    return [Alike(names[0], shape, width, len(names)) for (_, shape, width), names in found.items()]


def _length(subject: Subject, rows: int) -> int:
    """Tokens of a row that the layers see."""
    return max(leaf.shape[1] for leaf in jax.tree.leaves(subject.batch(rows)) if len(leaf.shape) > 1)


class Spread(NamedTuple):
    """Arrays on a mesh. axes: of the mesh, along which each is cut. share: of its numbers, those on one device."""

    arrays: Alike
    axes: frozenset[str]
    share: int

    @property
    def size(self) -> int:
        """Bytes of all of them on one device."""
        return self.arrays.times * self.share * self.arrays.bytes_each


def estimate(subject: Subject, whole: Outline, shape: MeshShape, *, fused_attention: bool, rows: int) -> Estimate:
    """What the step of a batch of `rows` needs on each device; `whole` is the outline of `subject.rows`."""
    share = rows / subject.rows
    model = _spread(whole.model, subject, shape)
    parameters = sum(one.size for one in model)
    optimizer = sum(one.size for one in _spread(whole.optimizer, subject, shape))
    split = subject.settings.accumulate
    kept = share * _activations(subject, whole, model, shape, fused_attention) / split
    again = share * whole.layer_inputs / shape.rows / split
    deepest = max(stacks(subject.config).values())
    plain = Memory(parameters, optimizer, parameters, kept)
    remat = plain._replace(activations=min(kept, again + kept / deepest))
    is_remat = subject.settings.remat
    useful = share * whole.operations / shape.size
    operations = useful + is_remat * share * whole.operations_again / shape.size
    memory = remat if is_remat else plain
    # Weights forward and backward, gradients out and in, all of the state in and out; what is kept, out and in.
    passes = 3 if is_remat else 2
    traffic = (
        split * (passes * parameters * shape.fsdp + 2 * memory.activations)
        + 3 * parameters
        + 2 * (parameters + optimizer)
    )
    return Estimate(shape, plain, remat, operations, useful, traffic, _exchanged(subject, whole, model, shape, share))


def _spread(arrays: Iterable[Alike], subject: Subject, shape: MeshShape) -> list[Spread]:
    mesh = abstract_mesh(shape, shape.size)
    found = []
    for one in arrays:
        axes = axes_of(spec_of(one.name, one.shape, mesh, subject.config))
        parts = math.prod(getattr(shape, axis) for axis in axes)
        found.append(Spread(one, axes, math.prod(one.shape) // parts))
    return found


def axes_of(spec: Any) -> frozenset[str]:
    """The axes of a mesh along which an array is cut."""
    return frozenset(axis for part in spec for axis in (part if isinstance(part, tuple) else (part,)) if axis)


def _activations(
    subject: Subject, whole: Outline, model: Iterable[Spread], shape: MeshShape, fused_attention: bool
) -> float:
    """What one device keeps for the gradient, all layers plain."""
    config, total = subject.config, 0.0
    batch, length = subject.rows // subject.settings.accumulate, _length(subject, subject.rows)
    weights = {one.shape for one in whole.model}
    fused = fused_attention and subject.settings.compute_dtype == "bfloat16"
    if shape.fsdp > 1:  # what is gathered is kept
        gathered = sum(one.arrays.times * one.share * shape.fsdp for one in model if "fsdp" in one.axes)
        total += gathered * WIDTHS[subject.settings.compute_dtype]
    for one, count in whole.kept.items():
        if one.shape in weights:
            total += count * one.size / shape.tensor if shape.fsdp == 1 else 0.0
        elif not _is_of_batch(one.shape, batch * subject.settings.accumulate):
            total += count * one.size / (shape.fsdp * shape.tensor)
        elif fused and _is_of_scores(one.shape, length):
            continue
        else:
            by_tensor = shape.tensor if _is_split(one.shape, config) else 1
            total += count * one.size / shape.rows / by_tensor
    return total


def _is_of_batch(shape: tuple[int, ...], rows: int) -> bool:
    """Whether an array has all rows: as its first axis or, of tokens in chunks, in its first two."""
    return bool(shape) and (shape[0] % rows == 0 or (len(shape) > 2 and shape[0] * shape[1] % rows == 0))


def _is_of_scores(shape: tuple[int, ...], length: int) -> bool:
    """Whether it is of queries and keys: (batch, heads, query, key), or a part of the queries."""
    return len(shape) >= 4 and shape[-1] >= length // 4 and shape[-2] >= length // 8


def _is_split(shape: tuple[int, ...], config: Any) -> bool:
    heads = {config.heads, getattr(config, "kv_heads", 0) or config.heads}
    return shape[-1] == config.d_ff or (len(shape) >= 4 and bool(heads & set(shape[1:3])))


def _exchanged(
    subject: Subject, whole: Outline, model: Iterable[Spread], shape: MeshShape, share: Number
) -> dict[Collective, Amount]:
    """The collectives of a step by rule."""
    width, split = WIDTHS[subject.settings.compute_dtype], subject.settings.accumulate
    found: dict[Collective, list[float]] = {}

    def add(kind: str, axis: str, count: Number, size: Number) -> None:
        entry = found.setdefault(Collective(kind, axis), [0, 0.0])
        entry[0] += count
        entry[1] += size

    passes = 3 if subject.settings.remat else 2
    for arrays, axes, own in model:
        times = arrays.times
        if "fsdp" in axes:
            gathered = own * shape.fsdp * width
            add("all-gather", "fsdp", times * (passes - 1) * split, times * (passes - 1) * split * gathered)
            add("reduce-scatter", "fsdp", times * split, times * split * gathered)
        elif shape.fsdp > 1:
            add("all-reduce", "fsdp", times, times * own * arrays.bytes_each)
        if shape.data > 1:
            add("all-reduce", "data", times, times * own * arrays.bytes_each)
    if shape.tensor > 1:
        layers = stacks(subject.config)
        is_pair = isinstance(subject.config, TransformerConfig)
        sublayers = sum(count * (3 if is_pair and name.startswith("decoder") else 2) for name, count in layers.items())
        inputs = whole.layer_inputs / sum(layers.values()) * share / shape.rows
        rounds = passes * sublayers + 2  # and the embedding forward, the output projection backward
        add("all-reduce", "tensor", rounds * split, rounds * split * inputs)
    return {key: Amount(round(count), round(size)) for key, (count, size) in sorted(found.items())}
