"""What chips can do, by their makers' data sheets: operations, memory and links a second."""

from difflib import get_close_matches
from typing import NamedTuple

from plainformer.errors import InputError
from plainformer.plan.words import Number

TERA, GIGA = 1e12, 1e9


class Chip(NamedTuple):
    """One device.

    Attributes:
        name: as `--chip` gives it.
        bfloat16, float32: operations a second of matrix products, without sparsity, of arrays of that dtype as JAX
            multiplies them unless it is told otherwise (float32: TF32 on NVIDIA's, one bfloat16 pass on TPUs).
        memory: bytes of the device.
        bandwidth: bytes a second from and to that memory.
        link: bytes a second that it sends to its neighbours, in one direction.
        group: devices that are joined by such links.
        network: bytes a second that it sends beyond, in one direction.
        has_fused_attention: whether attention there keeps no scores, in 16 bits.
        source: where the figures are from.
    """

    name: str
    bfloat16: float
    float32: float
    memory: float
    bandwidth: float
    link: float
    group: int
    network: float
    has_fused_attention: bool
    source: str

    def rate(self, dtype: str) -> Number:
        """Operations a second in a compute dtype."""
        return self.bfloat16 if dtype == "bfloat16" else self.float32


def _gpu(name: str, bfloat16: Number, tf32: Number, memory: Number, bandwidth: Number, link: Number, network: Number,
         source: str) -> Chip:  # fmt: skip
    """An NVIDIA GPU, eight to a host; TFLOP/s, GB, GB/s."""
    rates = bfloat16 * TERA, tf32 * TERA
    return Chip(name, *rates, memory * GIGA, bandwidth * GIGA, link * GIGA, 8, network * GIGA, True, source)


def _tpu(name: str, bfloat16: Number, memory: Number, bandwidth: Number, link: Number, pod: int, source: str) -> Chip:
    """A TPU; TFLOP/s, GB, GB/s. Beyond its pod there is the data centre's network, 25 GB/s a host of four."""
    rate = bfloat16 * TERA
    return Chip(name, rate, rate, memory * GIGA, bandwidth * GIGA, link * GIGA, pod, 6.25 * GIGA, True, source)


# NVLink is given as both directions together, and halved here; a network card of 400 (200) Gbit/s goes with each GPU of
# a DGX H100 (A100). Of TPUs the links of a chip are given together, both directions, and halved too.
CHIPS: dict[str, Chip] = {
    chip.name: chip
    for chip in (
        _gpu("a100", 312, 156, 80, 2039, 300, 25, "NVIDIA A100 80GB SXM data sheet (2021); DGX A100 data sheet"),
        _gpu("h100", 989.4, 494.7, 80, 3350, 450, 50, "NVIDIA H100 SXM5 data sheet and white paper (2022)"),
        _gpu("h200", 989.4, 494.7, 141, 4800, 450, 50, "NVIDIA H200 SXM data sheet (2024)"),
        _gpu("b200", 2250, 1125, 180, 8000, 900, 50, "NVIDIA DGX B200 data sheet (2024), an eighth of it"),
        _tpu("v4", 275, 32, 1228, 150, 4096, "Google Cloud, TPU v4 system architecture"),
        _tpu("v5e", 197, 16, 819, 200, 256, "Google Cloud, TPU v5e system architecture"),
        _tpu("v5p", 459, 95, 2765, 300, 8960, "Google Cloud, TPU v5p system architecture"),
        _tpu("v6e", 918, 32, 1640, 400, 256, "Google Cloud, TPU v6e system architecture"),
        # Two cores; devices of a CPU are threads of it, and exchange through its memory.
        Chip("cpu", 203e9, 203e9, 24e9, 30.4e9, 15.2e9, 1 << 20, 15.2e9, False,
             "two cores of a Zen 4 EPYC, measured (dev/LOG.md); --measure measures this machine"),
    )
}  # fmt: skip


def chip_named(name: str) -> Chip:
    """The chip of a name. Raises InputError where there is none."""
    if name in CHIPS:
        return CHIPS[name]
    near = get_close_matches(name.lower(), CHIPS, n=1)
    fix = f"did you mean {near[0]}" if near else f"the chips are {', '.join(CHIPS)}"
    raise InputError(f"there is no chip {name!r}", where="--chip", fix=fix)
