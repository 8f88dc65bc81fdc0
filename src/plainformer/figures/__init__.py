"""Pictures: the curves of runs, and those that explain a Transformer by the library's own functions (extra `plots`)."""
