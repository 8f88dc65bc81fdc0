"""Which devices a program runs on, and how many cores and what instructions the CPU has."""

import os
import platform as system
from pathlib import Path
from typing import Any


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def processor() -> str:
    """What it is called, with how many cores of it this process may use; of an accelerator its name alone."""
    device = default_device()
    if device.platform != "cpu":
        return str(device.device_kind)
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        name = next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = system.processor() or system.machine()
    return f"{name}, {cores()} cores"


def cpu_description() -> list[str]:
    """Which it is, and what it can do, as Linux says of the first; elsewhere, as Python does."""
    try:
        with Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
            first = lines.read(1 << 14).partition("\n\n")[0]
    except OSError:
        return [system.machine(), system.processor()]
    names = "vendor_id", "cpu family", "model", "flags", "Features", "CPU implementer", "CPU part"
    return [line for line in first.splitlines() if line.startswith(names)]


def default_device() -> Any:
    """The `jax.Device` that a program runs on unless it is told another."""
    import jax

    settings: Any = jax.config  # whose attributes no type knows
    device = settings.jax_default_device or jax.local_devices()[0]
    return jax.local_devices(backend=device)[0] if isinstance(device, str) else device


def platform() -> str:
    """Whose kernels the default device runs: `cpu`, `cuda` (from Ampere on, the first with kernels), `tpu` or `other`.

    It is asked while a program is traced. `jax.lax.platform_dependent` would trace all kernels on every machine, and
    JAX's entry to cuDNN cannot be traced without it.
    """
    device = default_device()
    if device.platform in ("cpu", "tpu"):
        return str(device.platform)
    is_cuda = device.platform == "gpu" and "cuda" in device.client.platform_version
    return "cuda" if is_cuda and float(device.compute_capability) >= 8.0 else "other"


def devices_of(x: Any) -> int:
    """Over how many devices an array, or one that is traced, is spread by its mesh."""
    import jax

    return max(jax.typeof(x).sharding.mesh.size, 1)


def on_one_cpu(x: Any) -> bool:
    """Whether an array, or one that is traced, is on a single device, and that no accelerator."""
    return default_device().platform == "cpu" and devices_of(x) == 1


def on_one_accelerator(x: Any) -> bool:
    """Whether an array, or one that is traced, is on a single device that is not a CPU."""
    return default_device().platform != "cpu" and devices_of(x) == 1
