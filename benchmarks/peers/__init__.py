"""Peers' whole processes, written as a user of theirs would: each a script that imports its library alone."""
