"""Twins that XLA compiles, on every device."""
