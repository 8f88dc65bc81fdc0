"""The devices of a plan: how many, and to compile for, those here, ones that a processor plays, or ones not there.

JAX compiles for TPUs where `libtpu` is installed, and for NVIDIA's GPUs where its plugin for CUDA is, though there be
none; XLA asks for the shape of the machine, and of a GPU for its description.
"""

import importlib.util
import os
from typing import Any

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape
from plainformer.plan.chips import Chip

TOPOLOGIES = {4: "2x2", 8: "2x4", 16: "4x4", 32: "4x8", 64: "8x8", 128: "8x16", 256: "16x16"}
"""Of chips of two dimensions, by their number."""

HOPPER = """\
gpu_device_info {{ threads_per_block_limit: 1024 threads_per_warp: 32 shared_memory_per_block: 49152
shared_memory_per_core: 233472 threads_per_core_limit: 2048 core_count: 132 fpus_per_core: 128
block_dim_limit_x: 2147483647 block_dim_limit_y: 65535 block_dim_limit_z: 65535 memory_bandwidth: {bandwidth}
l2_cache_size: 52428800 clock_rate_ghz: 1.98 device_memory_size: {memory} shared_memory_per_block_optin: 232448
cuda_compute_capability {{ major: 9 }} registers_per_core_limit: 65536 registers_per_block_limit: 65536 }}
platform_name: "CUDA" dnn_version_info {{ major: 9 minor: 7 }} runtime_version {{ major: 12 minor: 8 patch: 0 }}
device_description_str: "NVIDIA {name}"
"""
"""Of an H100 or H200, as XLA describes a GPU that it compiles for."""


def sizes(mesh: str | None, devices: int | None) -> tuple[MeshShape | None, int]:
    """The shape of the mesh, if one is given, and the number of devices. Raises InputError where they disagree."""
    if mesh is None:
        return None, devices or 1
    shape = MeshShape.parse(mesh)
    if devices is None:
        if 0 in shape:
            raise InputError(f"{mesh} is all devices there are", where="--mesh", fix="say how many with --devices")
        return shape, shape.size
    whole = shape.of(devices)
    if whole.size != devices:
        what = f"{mesh} is {whole.size} devices, and --devices is {devices}"
        raise InputError(what, where="--mesh", fix=f"leave one of them out, or choose sizes whose product is {devices}")
    return whole, devices


def play(devices: int, *, alone: bool = True) -> None:
    """Have the processor play so many devices, and where it is `alone`, no other be asked; chips may be compiled for
    that are not there. Where JAX was in use before, nothing changes."""
    import jax

    if alone:
        os.environ.setdefault("TPU_SKIP_MDS_QUERY", "1")  # or libtpu asks the network which TPUs there are
        os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")  # or JAX wants a GPU before it compiles for one
    try:
        jax.config.update("jax_num_cpu_devices", devices)
        if alone:
            jax.config.update("jax_platforms", "cpu")
    except RuntimeError:
        return


def played(devices: int) -> list[Any]:
    """So many devices of the processor. Raises InputError where there are fewer."""
    import jax

    found = jax.devices("cpu")
    if len(found) < devices:
        what = f"{devices} devices to compile for are wanted, and this process has {len(found)}"
        raise InputError(what, fix=f"start it with XLA_FLAGS=--xla_force_host_platform_device_count={devices}")
    return list(found[:devices])


def absent(chip: Chip, devices: int) -> list[Any]:
    """So many chips that are not there, to compile for.

    Raises:
        InputError: there is no compiler for them here, or it does not know such a machine.
    """
    from jax.experimental import topologies

    try:
        if chip.name in ("v5e", "v6e"):
            _need("libtpu", "the package libtpu")
            if devices not in TOPOLOGIES:
                raise InputError(
                    f"there is no {chip.name} of {devices} chips", fix="choose a power of two from 4 to 256"
                )
            return list(topologies.get_topology_desc(f"{chip.name}:{TOPOLOGIES[devices]}", "tpu").devices)
        if chip.name in ("h100", "h200"):
            _need("jax_plugins.xla_cuda12", "JAX for CUDA (jax[cuda12])")
            about = HOPPER.format(name=chip.name.upper(), bandwidth=int(chip.bandwidth), memory=int(chip.memory))
            hosts = -(-devices // chip.group)
            machine = f"1x{hosts}x{devices // hosts}"
            return list(topologies.get_topology_desc("", "cuda", target_config=about, topology=machine).devices)
    except (RuntimeError, NotImplementedError) as failure:
        reason = str(failure).partition("\n")[0]
        raise InputError(f"no program can be compiled here for {chip.name}: {reason}", where="--compiler") from failure
    raise InputError(f"it is not known how to compile for {chip.name} where there is none", where="--compiler")


def _need(module: str, package: str) -> None:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise InputError(f"there is no compiler for that chip: {package} is not installed", where="--compiler")
