"""Folders in the layout of the Hugging Face library, in and out: each family of theirs as a configuration of ours."""
