"""What processes of a run tell each other, without any: the others are played by a table of what was said."""

from itertools import count
from typing import Any

import jax
import pytest

from plainformer.errors import InputError, WorkError
from plainformer.train import launcher, processes


class Said(dict[str, str]):
    """What JAX's service keeps for all processes."""

    def key_value_set(self, key: str, value: str) -> None:
        assert key not in self
        self[key] = value

    def blocking_key_value_get(self, key: str, milliseconds: int) -> str:
        return self[key]


@pytest.fixture
def as_process(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`as_process(1)`: from now on this is the second of two, which has asked nothing yet."""
    said = Said()
    monkeypatch.setattr(processes, "_client", lambda: said)
    monkeypatch.setattr(jax, "process_count", lambda: 2)

    def be(number: int) -> None:
        monkeypatch.setattr(jax, "process_index", lambda: number)
        monkeypatch.setattr(processes, "_turns", count())

    return be


def test_what_the_first_finds_all_have(as_process: Any) -> None:
    wanted = ["", None, 2.5, True]
    as_process(0)
    assert [processes.from_first(lambda one=one: one) for one in wanted] == wanted
    as_process(1)
    assert [processes.from_first(lambda: pytest.fail("not the first")) for _ in wanted] == wanted


def test_what_the_first_refuses_all_refuse(as_process: Any) -> None:
    def refuse() -> None:
        raise InputError("a run is there", where="folder", fix="add --resume")

    for number in (0, 1):
        as_process(number)
        with pytest.raises(InputError) as error:
            processes.from_first(refuse if number == 0 else lambda: pytest.fail("not the first"))
        assert str(error.value) == "folder: a run is there; add --resume"


@pytest.mark.parametrize(
    ("environment", "several"),
    [
        ({}, False),
        ({"JAX_COORDINATOR_ADDRESS": "a:1"}, True),
        ({"SLURM_JOB_ID": "7", "SLURM_STEP_NODELIST": "n[1-2]", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}, True),
        ({"SLURM_JOB_ID": "7"}, False),
        ({"OMPI_MCA_orte_hnp_uri": "x", "OMPI_COMM_WORLD_SIZE": "1"}, False),
        ({"TPU_WORKER_HOSTNAMES": "a", "TPU_WORKER_ID": "0"}, False),
        ({"TPU_WORKER_HOSTNAMES": "a,b", "TPU_WORKER_ID": "0"}, True),
    ],
)
def test_a_launcher_is_known_by_what_it_sets(
    environment: dict[str, str], several: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (*launcher.SIZES, *(name for names in launcher.CLUSTERS.values() for name in names)):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert launcher.launched() == several


def test_only_the_end_of_another_is_said_as_such() -> None:
    told = processes.lost(RuntimeError("Gloo all-reduce failed: Connection closed by peer\nmore"))
    assert isinstance(told, WorkError)
    assert "another process of this run was lost (Gloo all-reduce failed: Connection closed by peer)" in str(told)
    assert processes.lost(RuntimeError("out of memory")) is None
    assert processes.lost(InputError("heartbeat is no setting")) is None
