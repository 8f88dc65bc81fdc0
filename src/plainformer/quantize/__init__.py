"""Models for inference alone: weights laid out for products of few rows, and rounded."""
