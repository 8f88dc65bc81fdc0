"""The CPU kernels: Python that Numba compiles, called by XLA."""
