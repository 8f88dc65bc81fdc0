"""Times of a step worked out by hand, on chips that are easy to reckon with."""

import pytest

from plainformer.errors import InputError
from plainformer.mesh_shape import MeshShape
from plainformer.plan.chips import CHIPS, Chip, chip_named
from plainformer.plan.hlo import Amount, Collective
from plainformer.plan.meshes import factorings
from plainformer.plan.place import sizes
from plainformer.plan.roofline import times

EASY = Chip("easy", 1000.0, 100.0, 1e9, 10.0, 5.0, 4, 1.0, True, "by hand")
STEP = {"operations": 4000.0, "useful": 3000.0, "traffic": 50.0, "mesh": MeshShape(3, 2, 2)}


def exchanged(kind: str, axis: str, size: int) -> float:
    """Seconds of one exchange on three times two times two devices, four of which are near."""
    return times(EASY, "bfloat16", exchanged={Collective(kind, axis): Amount(1, size)}, **STEP).interconnect


@pytest.mark.parametrize(
    ("kind", "axis", "seconds"),
    [
        # Two devices, one next to the other: half of 60 bytes at 5 a second; to sum, there and back.
        ("all-gather", "tensor", 6.0),
        ("all-reduce", "tensor", 12.0),
        # Two times two devices are the whole of what is near.
        ("reduce-scatter", "fsdp", 6.0),
        ("all-gather", "fsdp+tensor", 9.0),
        # Three devices, each among others: two thirds of 60 bytes at 1 a second.
        ("all-reduce", "data", 80.0),
        ("collective-permute", "data", 60.0),
        ("all-to-all", "data+tensor", 50.0),
    ],
)
def test_an_exchange_takes_what_a_ring_of_its_axis_sends(kind, axis, seconds):
    assert exchanged(kind, axis, 60) == pytest.approx(seconds)


def test_the_slowest_binds_and_the_step_lies_between_it_and_the_sum():
    found = times(EASY, "bfloat16", exchanged={Collective("all-gather", "tensor"): Amount(2, 20)}, **STEP)
    assert (found.compute, found.memory, found.interconnect) == (4.0, 5.0, 2.0)
    assert (found.binds, found.least, found.most) == ("memory", 5.0, 11.0)
    assert found.mfu(found.least) == pytest.approx(0.6)  # 3000 of 5 x 1000
    slower = times(EASY, "float32", exchanged={}, **STEP)
    assert (slower.compute, slower.binds) == (40.0, "compute")


def test_every_chip_has_a_source_and_is_found_by_its_name():
    assert all(chip_named(name) == chip and len(chip.source) > 10 for name, chip in CHIPS.items())
    with pytest.raises(InputError, match="did you mean h100"):
        chip_named("H100x")


def test_all_meshes_of_eight_and_twelve_devices():
    # As many as ordered ways to share out the prime factors: of 2^3 among three axes (5 over 2), of 3 three.
    assert len(set(factorings(8))) == 10
    assert len(set(factorings(12))) == 18
    assert all(shape.size == 12 for shape in factorings(12))


def test_mesh_and_devices_must_agree():
    assert sizes("data=2,fsdp=4", None) == (MeshShape(2, 4, 1), 8)
    assert sizes("data=0,tensor=2", 8) == (MeshShape(4, 1, 2), 8)
    assert sizes(None, 16) == (None, 16)
    with pytest.raises(InputError, match="is 8 devices, and --devices is 16"):
        sizes("data=2,fsdp=4", 16)
    with pytest.raises(InputError, match="say how many"):
        sizes("data=0", None)
