"""Twins on NVIDIA GPUs."""
