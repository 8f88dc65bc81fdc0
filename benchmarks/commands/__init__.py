"""Whole processes, as a user starts them: importing, reading, compiling and the work, each cold and warm.

Every turn is a process of its own, from its start to its end or to the line that reports a step. Cold is an empty
folder for what plainformer keeps between runs (compiled programs, CPU kernels, encoded text), and for what PyTorch's
compiler keeps; warm is one that a run before has filled. The files themselves are in memory in both. A peer's process
is a small script in `benchmarks.peers` or the peer's own command, started in turn with ours; where it keeps nothing, it
is the same process cold and warm. With each figure stand the programs that were compiled in it and the most memory that
the process had.
"""

from benchmarks.commands.rows import rows, set_up

__all__ = ["rows", "set_up"]
