"""LOSS -> UPDATE: schedules, the step, the loop, and what is kept of a run."""
