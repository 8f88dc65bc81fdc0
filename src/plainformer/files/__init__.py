"""Files as the project reads and writes them: whole or not at all, and checked."""
