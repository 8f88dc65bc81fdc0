"""`import plainformer` and every `--help` are light: the first answer must not wait for an engine to load."""

import subprocess
import sys

HEAVY = {"jax", "jaxlib", "numpy", "equinox", "optax", "orbax", "grain", "tokenizers", "safetensors", "pydantic"} | {
    *("sacrebleu", "torch", "transformers", "tensorflow", "altair", "starlette", "uvicorn", "tensorboardX"),
    *("prometheus_client", "py3langid"),
    *("tiktoken", "sentencepiece", "huggingface_hub"),
}

REPORT = "print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}))"


def loaded_after(code: str) -> set[str]:
    """The top-level packages that a fresh Python has loaded after `code`."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\n{REPORT}"], capture_output=True, text=True, timeout=120, check=True
    )
    return set(done.stdout.splitlines()[-1].split()[1:])


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = loaded_after("import plainformer; plainformer.InputError; plainformer.__version__")
    assert "plainformer" in loaded
    assert not loaded & HEAVY


def test_help_and_version_load_nothing_heavy() -> None:
    lines = [
        *("", "--help", "--version", "train --help", "translate --help", "generate --help", "score --help"),
        *("fill --help", "classify --help", "embed --help", "serve --help"),
        *("import --help", "export --help", "verify --help"),
        *("-h", "recipes -h", "settings -h", "recipes", "recipes demo", "merge --help"),
        *(
            "plot --help",
            "figures --help",
            "evaluate --help",
            "reproduce --help",
            "info --help",
            "demo --help",
            "data --help",
            "data fetch --help",
        ),
    ]
    loaded = loaded_after(
        "from plainformer.cli.main import main\n"
        f"for line in {lines!r}:\n"
        "    sys.argv = ['plainformer', *line.split()]\n"
        "    try: main()\n"
        "    except SystemExit: pass\n"
    )
    assert "typer" in loaded
    assert not loaded & (HEAVY - {"pydantic"})  # typer's own, in its newer versions


def test_what_is_told_of_recipes_needs_no_engine() -> None:
    loaded = loaded_after(
        "from plainformer.cli.main import main\n"
        "sys.argv = ['plainformer', 'settings']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
    )
    assert "pydantic" in loaded
    assert not loaded & (HEAVY - {"pydantic", "numpy"})
