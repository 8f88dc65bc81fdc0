"""What the tests of the engine share."""

WORDS = "ba cb dc ed fe gf hg ih"
"""Of the vocabulary of the small translator."""
