# Everything from python3 alone, in .venv: `make demo` on a fresh clone is enough.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# More arguments for pytest: make test ARGS="-k beam -x"
ARGS ?=

.PHONY: help venv demo test test-slow lint clean
.DELETE_ON_ERROR:

help:
	@echo 'make demo       install, train a small translator on the built-in phrasebook, use it'
	@echo 'make venv       install plainformer in $(VENV)'
	@echo 'make test       install what the tests need, run all but the slow ones'
	@echo 'make test-slow  the slow tests'
	@echo 'make lint       format, lint and types'
	@echo 'make clean      remove $(VENV) and what the tools left; runs/ and data/ stay'

venv: $(VENV)/.installed

demo: $(VENV)/.installed
	$(BIN)/plainformer demo

test: $(VENV)/.installed-test
	$(BIN)/pytest -m 'not slow' $(ARGS)

# pytest ends with 5 where no test is chosen, which is no failure here.
test-slow: $(VENV)/.installed-test
	$(BIN)/pytest -m slow $(ARGS) || test $$? -eq 5

lint: $(VENV)/.installed-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

# The stamps are younger than what they were made from, so that a second run starts at once. They are written last: a
# step that broke off is done again.
$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("plainformer needs Python 3.11 or newer; name one: make PYTHON=python3.12" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/.made
	@echo 'installing plainformer in $(VENV)'
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(VENV)/.made
	@echo 'installing plainformer and what its tests need in $(VENV)'
	$(PIP) --editable '.[test]'
	@touch $(VENV)/.installed $@

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests -type d \( -name __pycache__ -o -name .ruff_cache -o -name .pytest_cache \) -prune -exec rm -rf {} +
