"""`python -m plainformer`."""

from plainformer.cli.main import main

if __name__ == "__main__":
    main()
