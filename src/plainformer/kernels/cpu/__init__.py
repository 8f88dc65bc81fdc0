"""Twins on CPUs, compiled by Numba (the extra `cpu`): here is JAX's side of them, `code/` has the kernels."""
