"""Functions compiled for each shape that they meet, kept on disk, and found again without being traced."""
