"""The paper's functions by the fastest twin that serves: one file an operation, one table of twins in it.

Every twin computes what its equation does; `tests/laws/test_kernel_laws.py` holds all tables to that.
"""
