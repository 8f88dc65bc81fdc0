"""Twins on TPUs."""
