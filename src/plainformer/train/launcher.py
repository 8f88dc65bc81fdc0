"""Whether a launcher started this process as one of several. Asked before JAX is imported, which takes a second."""

import os
from collections.abc import Mapping

CLUSTERS: Mapping[str, tuple[str, ...]] = {
    "JAX's own variables": ("JAX_COORDINATOR_ADDRESS",),
    "Slurm": ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_PROCID", "SLURM_LOCALID"),
    "Open MPI": ("OMPI_MCA_orte_hnp_uri",),
    "a Kubernetes job": ("KUBERNETES_SERVICE_HOST", "JOB_COMPLETION_INDEX"),
    "a TPU pod": ("TPU_WORKER_HOSTNAMES", "TPU_WORKER_ID"),
}
"""By what a launcher sets, in all processes that it starts: JAX then finds by itself how many there are, and which."""
SIZES = "SLURM_STEP_NUM_TASKS", "OMPI_COMM_WORLD_SIZE"


def launched() -> bool:
    """Whether a launcher says that this process is one of several."""
    if any(os.environ.get(size) == "1" for size in SIZES):
        return False
    hosts = os.environ.get("TPU_WORKER_HOSTNAMES", ",")
    return "," in hosts and any(all(name in os.environ for name in names) for names in CLUSTERS.values())
