"""`python -m plainformer`."""

from plainformer.cli.main import run

if __name__ == "__main__":
    run()
